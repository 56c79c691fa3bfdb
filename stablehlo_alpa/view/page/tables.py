"""Tables of a page that a script shows, sorts and searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stablehlo_alpa.view.page.content import OperatorContent, PageContent

# Rows of a table (heuristic: what a script filters within a frame). The rest is added up by kind.
MOST_ROWS = 4000

TEXT, NUMBER, SECONDS, BYTES, RATIO = "text", "number", "seconds", "bytes", "ratio"


@dataclass(frozen=True)
class Table:
    """Rows and how they are shown.

    Attributes:
        name: short, of letters and dashes; one of a page.
        title: above it.
        columns: head and kind of each: ``"text"``, ``"number"``, ``"seconds"``, ``"bytes"`` or
            ``"ratio"``.
        rows: texts and numbers in SI units.
        note: below it.
        tensors: per row what a picture of the tensor needs, see the script; empty where rows are no
            tensors.
    """

    name: str
    title: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""
    tensors: tuple[tuple[Any, ...], ...] = ()


def spec_text(axes: tuple[tuple[str, ...], ...]) -> str:
    """``P(None, 'x')``, as programs write it."""
    entries: list[str] = [
        "None" if not one else repr(one[0]) if len(one) == 1 else repr(one) for one in axes
    ]
    while entries and entries[-1] == "None":
        entries.pop()
    return f"P({', '.join(entries)})"


def tensor_table(page: PageContent) -> Table:
    """Parameters and other inputs, as they are split."""
    rows, tensors = [], []
    for one in page.tensors:
        stage = page.stages[one.stage]
        used = [(name, size) for name, size in stage.axes if size > 1]
        sizes = dict(used)
        axes = tuple(tuple(name for name in own if name in sizes) for own in one.axes)
        shape = f"{one.dtype}[{','.join(map(str, one.shape))}]"
        spec = spec_text(axes)
        rows.append((one.stage, one.path, one.kind, one.count, shape, spec, one.bytes))
        tensors.append((one.stage, one.shape, axes))
    columns = (
        ("stage", NUMBER),
        ("tensor", TEXT),
        ("kind", TEXT),
        ("count", NUMBER),
        ("shape", TEXT),
        ("sharding", TEXT),
        ("per device", BYTES),
    )
    title = "Parameters and other inputs"
    return Table("tensors", title, columns, tuple(rows), tensors=tuple(tensors))


def operator_table(page: PageContent, most: int = MOST_ROWS) -> Table:
    """Operators of equal layers as one row; where there are still too many, the rest by kind."""
    order = sorted(page.operators, key=lambda one: -one.time_s)
    shown = [_operator_row(one) for one in order[:most]]
    rest: dict[tuple[int, str], list[OperatorContent]] = {}
    for one in order[most:]:
        rest.setdefault((one.stage, one.op), []).append(one)
    for (stage, op), own in rest.items():
        count, seconds = sum(one.count for one in own), sum(one.time_s for one in own)
        size = sum(one.memory_bytes for one in own)
        shown.append((stage, f"(other operators: {op})", op, "", "", count, seconds, size))
    columns = (
        ("stage", NUMBER),
        ("operator", TEXT),
        ("kind", TEXT),
        ("sharding", TEXT),
        ("collectives", TEXT),
        ("count", NUMBER),
        ("seconds per step", SECONDS),
        ("memory", BYTES),
    )
    total = sum(one.count for one in page.operators)
    note = f"{total} operators; equal ones of equal layers are one row"
    if rest:
        note += f"; {len(order) - most} kinds that take least are added up"
    return Table("operators", "Operators", columns, tuple(shown), note)


def _operator_row(one: OperatorContent) -> tuple[Any, ...]:
    return (
        one.stage,
        one.name,
        one.op,
        one.strategy,
        one.collectives,
        one.count,
        one.time_s,
        one.memory_bytes,
    )


def module_table(page: PageContent) -> Table:
    """What modules cost."""
    rows = tuple(
        (one.stage, one.name, one.compute_s, one.communication_s, one.memory_bytes)
        for one in page.modules
    )
    columns = (
        ("stage", NUMBER),
        ("module", TEXT),
        ("computation", SECONDS),
        ("communication", SECONDS),
        ("memory at the peak", BYTES),
    )
    note = "seconds per step, forward and backward together"
    return Table("modules", "Modules", columns, rows, note)


def communication_table(page: PageContent) -> Table:
    """What is sent, per stage."""
    rows = tuple(
        (one.where, one.kind, ", ".join(one.axes), one.level, one.count, one.bytes, one.time_s)
        for one in page.communication
    )
    columns = (
        ("where", TEXT),
        ("kind", TEXT),
        ("axes or target", TEXT),
        ("links", TEXT),
        ("per step", NUMBER),
        ("per device", BYTES),
        ("seconds", SECONDS),
    )
    return Table("communication", "Collectives and sends", columns, rows)


def alternative_table(page: PageContent) -> Table:
    """Plans beside this one."""
    rows = tuple(
        (
            f"{one.name} (this plan)" if one.is_chosen else one.name,
            "another method" if one.is_baseline else "the search",
            one.step_s,
            one.step_s / page.step_s if one.step_s is not None and page.step_s else None,
            "fits" if one.step_s is not None else one.reason,
        )
        for one in page.alternatives
    )
    columns = (
        ("plan", TEXT),
        ("by", TEXT),
        ("step", SECONDS),
        ("of this plan", RATIO),
        ("outcome", TEXT),
    )
    return Table("alternatives", "Plans considered", columns, rows)
