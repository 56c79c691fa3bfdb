"""Figures of the paper beside ours, and what is to be said of those that are far apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluation.figures import Published
from evaluation.records import Record
from evaluation.remarks import REMARKS

FAR = 0.2
"""A ratio further from 1 than this has a sentence."""


@dataclass(frozen=True)
class Cell:
    """A figure of the paper, and ours.

    Attributes:
        paper: theirs.
        record: ours; None where nothing was planned.
        count: plans that were made for it, of which ``record`` is the fastest.
        model: what the model is called.
        system_name: what is compared, as people call it.
    """

    paper: Published
    record: Record | None
    count: int
    model: str
    system_name: str

    @property
    def devices(self) -> int:
        """V100."""
        return self.paper.devices

    @property
    def system(self) -> str:
        """What is compared, as in ``measured/paper.csv``."""
        return self.paper.system

    @property
    def ours(self) -> float | None:
        """PFLOP/s."""
        return self.record.pflops if self.record is not None else None

    @property
    def ratio(self) -> float | None:
        """Ours over theirs; None where one of both is not there or 0."""
        if self.ours is None or not self.paper.value:
            return None
        return self.ours / self.paper.value

    @property
    def name(self) -> str:
        """For a sentence."""
        return f"{self.paper.family} on {self.devices}, {self.system_name}"

    @property
    def remark(self) -> str | None:
        """What is known of it."""
        return REMARKS.get((self.paper.figure, self.paper.family, self.system, self.devices))

    @property
    def predicted(self) -> str:
        """Ours for a table."""
        if self.record is None:
            return "not planned"
        if self.ours is None:
            return "does not fit" if self.record.is_too_large else "refused"
        return f"{self.ours:.4f}"

    @property
    def measured(self) -> str:
        """Theirs for a table."""
        return self.paper.outcome or f"{self.paper.value:g}"

    @property
    def ratio_text(self) -> str:
        """For a table."""
        return "" if self.ratio is None else f"{self.ratio:.2f}"

    @property
    def compared(self) -> list[str]:
        """What it is of, predicted, measured and their ratio, for a table."""
        return [
            str(self.devices),
            self.model,
            self.system_name,
            self.predicted,
            self.measured,
            self.ratio_text,
        ]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [" | ".join(heads), " | ".join("---" for _ in heads), *map(" | ".join, rows)]
    return "\n".join(f"| {line} |" for line in lines)


def stages_text(record: Record | None) -> str:
    """Meshes of the stages, equal neighbours counted."""
    if record is None or record.step_s is None:
        return ""
    runs: list[tuple[str, int]] = []
    for shape in record.stages:
        if runs and runs[-1][0] == shape:
            runs[-1] = (shape, runs[-1][1] + 1)
        else:
            runs.append((shape, 1))
    return ", ".join(f"{count} × {shape}" if count > 1 else shape for shape, count in runs)


def said_of(cells: Sequence[Cell], own: str, level: float | None, level_of: str) -> str:
    """The sentences on cells that are far off, have no figure of one of both, or beat our search.

    Args:
        cells: of one family and figure.
        own: the system that is our search.
        level: ratio of a cell that all others share the cause of; None for none.
        level_of: what that is the ratio of, for a sentence.
    """
    lines = [*_sentences(cells, level, level_of), *_beaten(cells, own)]
    if not lines:
        return ""
    return (
        f"Cells off by more than {FAR:.0%}, without a figure of one of both, or in which our "
        "search is beaten:\n\n" + "\n".join(f"- {one}" for one in lines) + "\n"
    )


def _sentences(cells: Sequence[Cell], level: float | None, level_of: str) -> Iterator[str]:
    for cell in cells:
        if cell.record is None:
            continue
        if cell.ratio is None:
            said = _without(cell)
        elif abs(cell.ratio - 1) <= FAR:
            continue
        else:
            said = f"{cell.ratio:.2f} times the paper's. {_why(cell, level, level_of)}"
        if said:
            yield f"**{cell.name}**: {said}"


def _beaten(cells: Sequence[Cell], own: str) -> Iterator[str]:
    """Where our search is slower than a plan among those that it looks for."""
    searched = {cell.devices: cell for cell in cells if cell.system == own}
    for cell in cells:
        found = searched[cell.devices]
        best, gap = found.ours, (found.record.gap if found.record else None) or 0.0
        key = "beaten", cell.paper.family, cell.system, cell.devices
        # Both figures are printed with four digits; the simulated steps have more.
        if best is not None and cell.ours is not None and cell.ours > best * (1 + 1e-4):
            faster = cell.ours / best - 1
            # The best plan may be faster by as much as the search says of its own.
            why = f"It states a gap of {gap:.1%}." if faster <= gap else "Not explained."
            yield (
                f"**{cell.name}**: {faster:.1%} faster than what our search found, by the same "
                f"prices. {REMARKS.get(key, why)}"
            )


def _why(cell: Cell, level: float | None, level_of: str) -> str:
    """What is known of the ratio: the part that all cells have, and the rest."""
    assert cell.ratio is not None
    if level is None or cell.ratio == level:
        return cell.remark or "Not explained."
    rest = cell.ratio / level
    shared = f"{level_of} has {level:.2f}, which leaves {rest:.2f}"
    if abs(rest - 1) <= FAR:
        return f"{shared}: it is that level. {cell.remark or ''}".strip()
    return f"{shared}. {cell.remark or 'That is not explained.'}"


def _without(cell: Cell) -> str:
    """Where one of both has no figure."""
    assert cell.record is not None
    if cell.ours is None:
        if cell.paper.value is None:
            return ""
        # What lives where it lacks the most is for who plans it.
        reason = cell.record.reason.partition("; largest live tensors")[0]
        return f"ours has no plan ({reason}). {cell.remark or 'Not explained.'}"
    if cell.paper.value is None:
        taken = f"{(cell.record.peak_bytes or 0) / 2**30:.1f} GiB"
        return (
            f"the paper's ran out of memory, ours takes {taken} by our account, and fits. "
            f"{cell.remark or 'Not explained.'}"
        )
    return f"the paper's is too small to be read. {cell.remark or 'Not explained.'}"


def of_linear(cell: Cell, one: Cell | None) -> tuple[str, str]:
    """Parts of so many times the throughput of one device that ours and theirs reach.

    Args:
        cell: of some devices.
        one: that of one device.
    """
    if one is None:
        return "", ""
    ours = theirs = ""
    if cell.ours is not None and one.ours:
        ours = f"{cell.ours / one.ours / cell.devices:.0%}"
    if cell.paper.value is not None and one.paper.value:
        theirs = f"{cell.paper.value / one.paper.value / cell.devices:.0%}"
    return ours, theirs


def by_devices(cells: Iterable[Cell], system: str) -> Mapping[int, Cell]:
    """Those of one system."""
    return {cell.devices: cell for cell in cells if cell.system == system}
