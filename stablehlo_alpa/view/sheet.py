"""A table as plain data: printed as text or as HTML."""

from __future__ import annotations

import html
import itertools
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stablehlo_alpa.view.names import cut_left

WIDTH = 120
_GAP = "  "
_RULE = "─"
_NARROWEST = 24
_WIDEST = 36


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        head: its title.
        is_number: set to the right, never broken.
        is_name: as wide as the others leave it; what is too long keeps its end.
    """

    head: str
    is_number: bool = False
    is_name: bool = False


@dataclass(frozen=True, repr=False)
class Sheet:
    """A table.

    Attributes:
        title: above it.
        columns: its columns.
        rows: the cells, as text.
        records: what the rows were made of, one or more of a row; numbers in seconds and bytes.
        note: below it, e.g. how much is not shown.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    records: tuple[Any, ...] = field(default=())
    note: str = ""

    def text(self, width: int = WIDTH) -> str:
        """The table in so many columns of characters."""
        widths = self._widths(width)
        lines = [_line([column.head for column in self.columns], self.columns, widths)]
        lines.append(_RULE * (sum(widths) + len(_GAP) * (len(widths) - 1)))
        for row in self.rows:
            cells = [
                [cut_left(cell, most)] if column.is_name else _wrapped(cell, most)
                for cell, column, most in zip(row, self.columns, widths, strict=True)
            ]
            for texts in itertools.zip_longest(*cells, fillvalue=""):
                lines.append(_line(texts, self.columns, widths))
        body = [f" {line}".rstrip() for line in lines]
        return "\n".join([self.title, *body, *self._notes()])

    def html(self) -> str:
        """The table as an HTML element."""
        heads = "".join(f"<th>{html.escape(column.head)}</th>" for column in self.columns)
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align: {"right" if column.is_number else "left"}">'
                f"{html.escape(cell)}</td>"
                for cell, column in zip(row, self.columns, strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
        return (
            f"<div><table><caption>{html.escape(self.title)}</caption><thead><tr>{heads}</tr>"
            f"</thead><tbody>{rows}</tbody></table>{notes}</div>"
        )

    def _notes(self) -> list[str]:
        return [self.note] if self.note else []

    def _widths(self, width: int) -> list[int]:
        """The most characters of each column."""
        widths = [
            max([len(column.head), *(len(row[i]) for row in self.rows)])
            for i, column in enumerate(self.columns)
        ]
        widths = [
            most if column.is_name or column.is_number else min(most, _WIDEST)
            for most, column in zip(widths, self.columns, strict=True)
        ]
        named = [i for i, column in enumerate(self.columns) if column.is_name]
        rest = sum(most for i, most in enumerate(widths) if i not in named)
        room = (width - rest - len(_GAP) * len(widths)) // max(len(named), 1)
        for i in named:
            widths[i] = min(widths[i], max(room, _NARROWEST))
        return widths

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    """One line of a row."""
    return _GAP.join(
        cell.rjust(most) if column.is_number else cell.ljust(most)
        for cell, column, most in zip(cells, columns, widths, strict=True)
    )


def _wrapped(text: str, width: int) -> list[str]:
    """A cell in lines."""
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_on_hyphens=False)
