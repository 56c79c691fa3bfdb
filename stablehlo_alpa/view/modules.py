"""The table of modules: what each layer costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.intra_op import MemoryModel
from stablehlo_alpa.intra_op.diff import operator_seconds
from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view.folding import fold
from stablehlo_alpa.view.names import module_of
from stablehlo_alpa.view.part import Part, make_sheet
from stablehlo_alpa.view.sheet import Column, Sheet

# Modules are opened as long as they are at most so many rows (heuristic: half a screen).
_MOST_ROWS = 16
_DEEPEST = 4

ARGUMENTS = "(inputs)"
OUTSIDE = "(outside of modules)"


@dataclass(frozen=True)
class ModuleRow:
    """A module, or equal ones of several layers.

    Attributes:
        part: the part of the plan that it belongs to.
        name: ``GPT/layer_{0..47}``.
        count: how many operators it has.
        compute_s: seconds per step.
        communication_s: seconds per step of collectives, resharding of operands included.
        memory_bytes: per device, of its tensors where the plan needs the most.
    """

    part: str
    name: str
    count: int
    compute_s: float
    communication_s: float
    memory_bytes: float

    @property
    def total_s(self) -> float:
        """Seconds per step."""
        return self.compute_s + self.communication_s


def module_rows(part: Part) -> list[ModuleRow]:
    """Modules in the order of their first operators; forward and backward together.

    The seconds of all rows are those of the step, their bytes the peak that the planner sees.
    """
    graph, choice = part.priced.graph, part.solution.choice.astype(np.int64)
    total = operator_seconds(part.priced, part.solution)
    compute = part.priced.compute_s[graph.node_offset[:-1] + choice]
    memory = MemoryModel.of(graph)
    point = part.solution.memory_peak_point
    held = memory.held(choice, point) if point >= 0 else np.zeros(graph.num_nodes)
    names = _module_names(graph.node_name, graph.node_op)
    first: dict[str, list[int]] = {}
    for node, name in enumerate(names):
        first.setdefault(name, []).append(node)
    nodes_of = list(first.values())
    rows = []
    for group in fold(list(first)):
        found = [node for i in group.members for node in nodes_of[i]]
        seconds = float(compute[found].sum())
        rows.append(
            ModuleRow(
                part.label,
                group.name,
                len(found),
                seconds,
                float(total[found].sum()) - seconds,
                float(held[found].sum()),
            )
        )
    return rows


def _module_names(names: Sequence[str], ops: Sequence[str]) -> list[str]:
    """Per operator its module, as deep as is still a short table."""
    modules = [module_of(name) for name in names]
    for depth in range(_DEEPEST, 0, -1):
        found = [
            ARGUMENTS if op == "input" else "/".join(module[:depth]) or OUTSIDE
            for module, op in zip(modules, ops, strict=True)
        ]
        if depth == 1 or len(fold(list(dict.fromkeys(found)))) <= _MOST_ROWS:
            break
    return found


def module_sheet(parts: Sequence[Part]) -> Sheet:
    """Seconds, communication and memory per module."""
    rows = [row for part in parts for row in module_rows(part)]
    columns = [
        Column("module", is_name=True),
        Column("operators", is_number=True),
        Column("seconds", is_number=True),
        Column("communication", is_number=True),
        Column("memory", is_number=True),
    ]
    cells = [
        (
            row.part,
            [
                row.name,
                str(row.count),
                format_seconds(row.total_s),
                format_seconds(row.communication_s),
                format_bytes(row.memory_bytes),
            ],
        )
        for row in rows
    ]
    title = "modules: seconds per step, communication among them; memory where most is needed"
    totals = [f"{part.label} {format_seconds(part.solution.objective_s)}".strip() for part in parts]
    note = f"all modules: {', '.join(totals)}"
    return make_sheet(parts, title, columns, cells, rows, note)
