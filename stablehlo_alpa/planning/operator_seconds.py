"""What operators of a plan cost as they were chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stablehlo_alpa.intra_op import Seconds, StrategyTable
from stablehlo_alpa.units import format_seconds
from stablehlo_alpa.view import Column, Sheet

SHOWN = 8
"""Operators of a layer, module or stage that are shown, those that take longest (heuristic)."""

_PARTS = ("compute_s", "communication_s", "reshard_s")
_HEADS = ("compute", "collectives", "reshard")

SECONDS = tuple(Column(head, is_number=True) for head in (*_HEADS, "seconds"))
"""Columns of seconds per step: of computing, of collectives, of resharding, of all."""


@dataclass(frozen=True)
class OperatorSeconds(Seconds):
    """An operator as it was chosen.

    Attributes:
        name: of the operator.
        strategy: of it.
        compute_s, communication_s, reshard_s: seconds per step; of resharding, that of its
            operands.
    """

    name: str
    strategy: str
    compute_s: float
    communication_s: float
    reshard_s: float


def dearest_first(table: StrategyTable, nodes: Sequence[int]) -> list[OperatorSeconds]:
    """Operators of a table, those that take longest first; an input takes what updates it."""
    chosen = table.chosen
    found = [
        OperatorSeconds(
            table.name[node],
            table.label[chosen[node]],
            float(table.compute_s[chosen[node]]),
            float(table.communication_s[chosen[node]]),
            float(table.operand_reshard_s[node]),
        )
        for node in nodes
    ]
    return sorted(found, key=lambda one: -one.total_s)


def sums(operators: Iterable[Seconds]) -> tuple[float, float, float]:
    """Seconds per step of computing, of collectives and of resharding, of all of them."""
    found = list(operators)
    compute_s, communication_s, reshard_s = (sum(getattr(o, key) for o in found) for key in _PARTS)
    return compute_s, communication_s, reshard_s


def split_text(one: Seconds) -> str:
    """``compute 3 ms, collectives 0 s, reshard 1 ms``."""
    return ", ".join(
        f"{head} {format_seconds(getattr(one, key))}"
        for head, key in zip(_HEADS, _PARTS, strict=True)
    )


def second_cells(one: Seconds) -> tuple[str, ...]:
    """Cells of the columns `SECONDS`."""
    return tuple(format_seconds(getattr(one, key)) for key in (*_PARTS, "total_s"))


def operator_sheet(
    operators: Sequence[OperatorSeconds], total: int, what: str = "operators"
) -> Sheet:
    """Operators of so many, as a table."""
    rows = tuple((one.name, one.strategy, *second_cells(one)) for one in operators)
    columns = (Column("operator", is_name=True), Column("sharding"), *SECONDS)
    title = f"{len(operators)} of {total} {what}, those that take longest"
    return Sheet(title, columns, rows, tuple(operators))
