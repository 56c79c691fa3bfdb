"""Where two plans of a program differ, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.cost.strategy_graph import Float
from stablehlo_alpa.intra_op.solution import Solution
from stablehlo_alpa.units import format_bytes, format_seconds

_SHOWN = 20

MeshShapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Change:
    """An operator with other strategies in the two plans.

    Attributes:
        name, op: the operator.
        first, second: its strategies.
        first_s, second_s: seconds per step, resharding of its operands included.
    """

    name: str
    op: str
    first: str
    second: str
    first_s: float
    second_s: float

    @property
    def delta_s(self) -> float:
        """Seconds that the second plan takes more."""
        return self.second_s - self.first_s


@dataclass(frozen=True)
class Difference:
    """Two plans side by side, the largest changes first.

    Attributes:
        mesh_shapes: of both plans, one per part.
        compute_s, communication_s, reshard_s: seconds per step of both plans.
        memory_bytes: peak bytes per device of both plans, of the fullest part, as the planner
            counts them.
        changes: operators that both have, with other strategies or seconds.
        only_first, only_second: operators that one of them lacks.
    """

    mesh_shapes: tuple[MeshShapes, MeshShapes]
    compute_s: tuple[float, float]
    communication_s: tuple[float, float]
    reshard_s: tuple[float, float]
    memory_bytes: tuple[float, float]
    changes: tuple[Change, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    def __str__(self) -> str:
        meshes = [
            " + ".join("x".join(map(str, shape)) or "one device" for shape in shapes)
            for shapes in self.mesh_shapes
        ]
        lines = [f"{'':12}{'first':>12}{'second':>12}  (mesh {meshes[0]}, mesh {meshes[1]})"]
        for name, (one, two) in (
            ("compute", self.compute_s),
            ("collectives", self.communication_s),
            ("resharding", self.reshard_s),
        ):
            lines.append(f"{name:12}{format_seconds(one):>12}{format_seconds(two):>12}")
        one, two = self.memory_bytes
        lines.append(f"{'memory':12}{format_bytes(one):>12}{format_bytes(two):>12}")
        shown = self.changes[:_SHOWN]
        lines.append(f"{len(shown)} of {len(self.changes)} operators that differ:")
        lines += [
            f"{'+' if c.delta_s > 0 else ''}{format_seconds(c.delta_s):>10}  {c.name} ({c.op}): "
            f"{c.first} -> {c.second}"
            for c in shown
        ]
        for which, names in (("first", self.only_first), ("second", self.only_second)):
            if names:
                lines.append(f"{len(names)} operators are in the {which} plan alone")
        return "\n".join(lines)


Chosen = Sequence[tuple[PricedGraph, Solution]]
"""The parts of a plan, each on its mesh: strategies in seconds, and the chosen ones."""


def diff(first: Chosen, second: Chosen) -> Difference:
    """Compares two plans operator by operator, by name."""
    rows = [_operators(first), _operators(second)]
    changes = [
        Change(name, op, label, rows[1][name][1], seconds, rows[1][name][2])
        for name, (op, label, seconds) in rows[0].items()
        if name in rows[1] and (label, seconds) != rows[1][name][1:]
    ]
    changes.sort(key=lambda change: (-abs(change.delta_s), change.name))

    def total(quantity: str) -> tuple[float, float]:
        one, two = (sum(getattr(plan, quantity) for _, plan in parts) for parts in (first, second))
        return one, two

    shapes, peaks = (
        [
            tuple(tuple(priced.graph.mesh_shape.tolist()) for priced, _ in parts)
            for parts in (first, second)
        ],
        [max(plan.memory_peak_bytes for _, plan in parts) for parts in (first, second)],
    )
    return Difference(
        mesh_shapes=(shapes[0], shapes[1]),
        compute_s=total("compute_s"),
        communication_s=total("communication_s"),
        reshard_s=total("reshard_s"),
        memory_bytes=(peaks[0], peaks[1]),
        changes=tuple(changes),
        only_first=tuple(name for name in rows[0] if name not in rows[1]),
        only_second=tuple(name for name in rows[1] if name not in rows[0]),
    )


def operator_seconds(priced: PricedGraph, solution: Solution) -> Float:
    """float64[N] seconds of each operator under a plan, resharding of its operands included."""
    choice = solution.choice.astype(np.int64)
    seconds = priced.node_s()[priced.graph.node_offset[:-1] + choice]
    for (u, v), matrix in priced.edges.items():
        seconds[v] += matrix[choice[u], choice[v]]
    return seconds


def _operators(parts: Chosen) -> dict[str, tuple[str, str, float]]:
    """Kind, strategy and seconds by name; what several parts have, e.g. an input, is added up."""
    found: dict[str, tuple[str, str, float]] = {}
    for priced, solution in parts:
        graph = priced.graph
        seconds = operator_seconds(priced, solution).tolist()
        rows = (graph.node_offset[:-1] + solution.choice).tolist()
        own = zip(graph.node_name, graph.node_op, rows, seconds, strict=True)
        for name, op, row, time_s in own:
            label = graph.strategy_label[row]
            _, before, earlier_s = found.get(name, (op, label, 0.0))
            both = label if before == label else f"{before}, {label}"
            found[name] = (op, both, earlier_s + time_s)
    return found
