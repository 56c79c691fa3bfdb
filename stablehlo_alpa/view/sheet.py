"""A table as plain data: printed as text or as HTML."""

from __future__ import annotations

import html
import io
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from stablehlo_alpa.view.names import cut_left

WIDTH = 120
# Between the columns of a table without lines.
_PADDING = 2
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
        buffer = io.StringIO()
        console = Console(file=buffer, width=width, color_system=None, highlight=False)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        widths = self._widths(width)
        for column, most in zip(self.columns, widths, strict=True):
            table.add_column(
                column.head,
                justify="right" if column.is_number else "left",
                no_wrap=column.is_number or column.is_name,
                overflow="fold",
                max_width=most,
            )
        for row in self.rows:
            table.add_row(
                *(
                    cut_left(cell, most) if column.is_name else cell
                    for cell, column, most in zip(row, self.columns, widths, strict=True)
                )
            )
        console.print(table)
        lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
        return "\n".join([self.title, *(line for line in lines if line), *self._notes()])

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
        room = (width - rest - _PADDING * len(widths)) // max(len(named), 1)
        for i in named:
            widths[i] = min(widths[i], max(room, _NARROWEST))
        return widths

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.html()
