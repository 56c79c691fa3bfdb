"""The tables of operators, of collectives and of live tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.cost import CollectiveKind
from stablehlo_alpa.intra_op import MemoryModel
from stablehlo_alpa.intra_op.diff import operator_seconds
from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view.folding import fold
from stablehlo_alpa.view.names import path_of
from stablehlo_alpa.view.part import Collective, Part, axes_of, make_sheet
from stablehlo_alpa.view.sheet import Column, Sheet


@dataclass(frozen=True)
class OperatorRow:
    """An operator.

    Attributes:
        part: the part of the plan that it belongs to.
        name, op: name and kind.
        strategy: shardings of its operands and results.
        collectives: what the strategy itself runs.
        time_s: seconds per step, resharding of its operands included.
        memory_bytes: per device, of its tensors.
    """

    part: str
    name: str
    op: str
    strategy: str
    collectives: str
    time_s: float
    memory_bytes: float


@dataclass(frozen=True)
class LiveRow:
    """Tensors of equal layers that are live where most memory is needed.

    Attributes:
        part: the part of the plan that they belong to.
        name: of the value, or of the operator that makes it.
        count: how many they are.
        bytes: per device, of all of them.
    """

    part: str
    name: str
    count: int
    bytes: float


def operator_rows(part: Part) -> list[OperatorRow]:
    """All operators in the order of the program."""
    graph, solution = part.priced.graph, part.solution
    strategies = (graph.node_offset[:-1] + solution.choice).tolist()
    seconds = operator_seconds(part.priced, solution).tolist()
    sizes = MemoryModel.of(graph).value_bytes(solution.choice)
    memory = np.bincount(graph.value_node, weights=sizes, minlength=graph.num_nodes).tolist()
    own = _own_collectives(part)
    return [
        OperatorRow(
            part.label,
            graph.node_name[node],
            graph.node_op[node],
            graph.strategy_label[strategies[node]],
            own.get(node, ""),
            seconds[node],
            memory[node],
        )
        for node in range(graph.num_nodes)
    ]


def _own_collectives(part: Part) -> dict[int, str]:
    """Per node the collectives that its strategy runs itself."""
    graph = part.priced.graph
    found: dict[int, Counter[str]] = {}
    for term, node in enumerate(graph.unary_node.tolist()):
        plan = int(graph.unary_plan[graph.unary_offset[term] + part.solution.choice[node]])
        for step in range(int(graph.plan_offset[plan]), int(graph.plan_offset[plan + 1])):
            kind = CollectiveKind(int(graph.step_kind[step])).name.lower()
            axes = ",".join(axes_of(int(graph.step_axes[step]), part.mesh))
            found.setdefault(node, Counter())[f"{kind}({axes})"] += 1
    return {
        node: ", ".join(name if n == 1 else f"{n} {name}" for name, n in names.items())
        for node, names in found.items()
    }


def operator_sheet(parts: Sequence[Part], limit: int | None = None) -> Sheet:
    """Operators with their strategies.

    Args:
        parts: of the plan.
        limit: rows shown at most, those that take longest; None for all.
    """
    rows = [row for part in parts for row in operator_rows(part)]
    order = sorted(range(len(rows)), key=lambda i: -rows[i].time_s)
    shown = [rows[i] for i in sorted(order[: len(rows) if limit is None else limit])]
    columns = [
        Column("operator", is_name=True),
        Column("kind"),
        Column("sharding"),
        Column("collectives"),
        Column("seconds", is_number=True),
        Column("memory", is_number=True),
    ]
    cells = [
        (
            row.part,
            [
                row.name,
                row.op.split(".")[-1],
                row.strategy,
                row.collectives,
                format_seconds(row.time_s),
                format_bytes(row.memory_bytes),
            ],
        )
        for row in shown
    ]
    return make_sheet(parts, f"{len(shown)} of {len(rows)} operators", columns, cells, shown)


def communication_sheet(parts: Sequence[Part]) -> Sheet:
    """Collectives per kind and mesh axes."""
    rows = [(part, row) for part in parts for row in part.collectives]
    columns = [
        Column("collective"),
        Column("axes"),
        Column("per step", is_number=True),
        Column("bytes per device", is_number=True),
        Column("seconds", is_number=True),
    ]
    cells = [(part.label, _collective_cells(part, row)) for part, row in rows]
    note = "" if rows else "nothing is communicated"
    return make_sheet(parts, "communication", columns, cells, [row for _, row in rows], note)


def _collective_cells(part: Part, row: Collective) -> list[str]:
    return [
        row.kind,
        ",".join(row.axes),
        f"{row.count:g}",
        format_bytes(row.bytes),
        format_seconds(part.seconds_of(row)),
    ]


def memory_rows(part: Part) -> list[LiveRow]:
    """What is live at the peak, the largest first; equal layers together."""
    inputs = {value.name for value in part.inputs}
    names = [path_of(name) if name in inputs else name for name, _ in part.live]
    sizes = [size for _, size in part.live]
    rows = [
        LiveRow(
            part.label,
            group.name,
            len(group.members),
            sum(sizes[i] for i in group.members),
        )
        for group in fold(names, sizes)
    ]
    return sorted(rows, key=lambda row: -row.bytes)


def memory_sheet(parts: Sequence[Part], limit: int | None = None) -> Sheet:
    """What takes the memory where most is needed.

    Args:
        parts: of the plan.
        limit: rows shown at most, the largest; None for all.
    """
    rows = [row for part in parts for row in memory_rows(part)]
    kept = sorted(range(len(rows)), key=lambda i: -rows[i].bytes)
    shown = [rows[i] for i in sorted(kept[: len(rows) if limit is None else limit])]
    columns = [
        Column("tensor", is_name=True),
        Column("count", is_number=True),
        Column("per device", is_number=True),
    ]
    cells = [(row.part, [row.name, str(row.count), format_bytes(row.bytes)]) for row in shown]
    peaks = ", ".join(f"{part.label} {format_bytes(part.peak_bytes)}".strip() for part in parts)
    title = f"{len(shown)} of {len(rows)} kinds of tensors live at the peak"
    return make_sheet(parts, title, columns, cells, shown, f"peak per device: {peaks}")
