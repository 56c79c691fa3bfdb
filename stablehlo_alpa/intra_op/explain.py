"""Why an operator got its strategy."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.intra_op.seconds import Seconds
from stablehlo_alpa.intra_op.strategy_table import StrategyTable
from stablehlo_alpa.units import format_bytes, format_seconds


@dataclass(frozen=True)
class StrategyCost(Seconds):
    """One strategy, its neighbours as they are chosen.

    Attributes:
        label: the strategy.
        compute_s, communication_s, reshard_s: seconds per step.
        memory_bytes: sum of the operator's tensors. Bytes per device.
        is_chosen, is_allowed: chosen by the plan; allowed by the pins.
    """

    label: str
    compute_s: float
    communication_s: float
    reshard_s: float
    memory_bytes: float
    is_chosen: bool
    is_allowed: bool


@dataclass(frozen=True)
class Explanation:
    """The strategies of an operator, cheapest first, and the reason for the chosen one."""

    name: str
    op: str
    strategies: tuple[StrategyCost, ...]
    reason: str

    def __str__(self) -> str:
        chosen = next(s for s in self.strategies if s.is_chosen)
        head = ("", "strategy", "compute", "collectives", "reshard", "memory", "vs chosen")
        rows: list[tuple[str, ...]] = [head]
        for s in self.strategies:
            delta = s.total_s - chosen.total_s
            rows.append(
                (
                    "*" if s.is_chosen else " " if s.is_allowed else "x",
                    s.label,
                    *map(format_seconds, (s.compute_s, s.communication_s, s.reshard_s)),
                    format_bytes(s.memory_bytes),
                    f"{'+' if delta > 0 else ''}{format_seconds(delta)}",
                )
            )
        widths = [max(len(r[i]) for r in rows) for i in range(len(head))]
        lines = [f"{self.name} ({self.op})"]
        for r in rows:
            cells = [
                c.ljust(w) if i < 2 else c.rjust(w)
                for i, (c, w) in enumerate(zip(r, widths, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        lines.append("* chosen, x ruled out by a pinned sharding")
        return "\n".join([*lines, self.reason])


def explain(tables: Sequence[StrategyTable], name: str) -> Explanation:
    """Lists the strategies of an operator with what each would cost now.

    Args:
        tables: of a plan, one for each part that was solved.
        name: name of the operator, or a part of it that no other operator has.

    Raises:
        ShardingError: no operator, or more than one, has the name; the closest are listed.
    """
    node = _find([n for table in tables for n in table.name], name)
    for table in tables:
        if node < len(table.name):
            return explanation(table, node)
        node -= len(table.name)
    raise AssertionError("names and operators are as many")


def explanation(table: StrategyTable, node: int) -> Explanation:
    """The strategies of an operator, by its number in the table."""
    rows, chosen = table.span(node), int(table.choice[node])
    costs = [
        StrategyCost(
            table.label[row],
            float(table.compute_s[row]),
            float(table.communication_s[row]),
            float(table.reshard_s[row]),
            float(table.memory_bytes[row]),
            row - rows.start == chosen,
            bool(table.allowed[row]),
        )
        for row in range(rows.start, rows.stop)
    ]
    reason = _reason(costs, chosen)
    costs.sort(key=lambda s: (s.total_s, not s.is_chosen))
    return Explanation(table.name[node], table.op[node], tuple(costs), reason)


def _find(names: Sequence[str], name: str) -> int:
    if name in names:
        return names.index(name)
    hits = [i for i, n in enumerate(names) if name in n]
    if len(hits) == 1:
        return hits[0]
    if hits:
        listed = ", ".join(names[i] for i in hits[:8])
        raise ShardingError(f"name {name!r} is part of {len(hits)} operators: {listed}")
    close = difflib.get_close_matches(name, list(dict.fromkeys(names)), n=5, cutoff=0.0)
    raise ShardingError(f"no operator is named {name!r}, the closest are: {', '.join(close)}")


def _reason(costs: list[StrategyCost], index: int) -> str:
    chosen = costs[index]
    allowed = [s for s in costs if s.is_allowed]
    if len(allowed) == 1:
        pinned = len(costs) > 1
        return "it is the only strategy" + (" that the pinned shardings allow" if pinned else "")
    others = [s for s in allowed if s is not chosen]
    rival = min(others, key=lambda s: s.total_s)
    delta = rival.total_s - chosen.total_s
    parts = (
        ("compute", rival.compute_s - chosen.compute_s),
        ("its own collectives", rival.communication_s - chosen.communication_s),
        ("resharding with its neighbours", rival.reshard_s - chosen.reshard_s),
    )
    what, _ = max(parts, key=lambda p: p[1] if delta >= 0 else -p[1])
    if delta > 1e-12 * max(chosen.total_s, 1e-30):
        return (
            f"{chosen.label} won: the next best, {rival.label}, costs {format_seconds(delta)} more "
            f"per step, most of it for {what}"
        )
    if delta >= -1e-9 * max(chosen.total_s, 1e-30):
        return f"{chosen.label} ties with {rival.label}: either is optimal"
    return (
        f"{rival.label} would be {format_seconds(-delta)} cheaper here ({what}), but the plan "
        f"would break the memory budget or was cut short by the time limit"
    )
