"""A plan: how one program is split over one mesh, what that costs, and why."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import alpa_runtime
import jax
import numpy as np
from alpa_runtime import SpmdProgram, ValueSpec
from jax.sharding import PartitionSpec
from rich.console import Console
from rich.table import Table

from stablehlo_alpa.cluster import ClusterSpec, LogicalMesh
from stablehlo_alpa.cost import CollectiveKind, PricedGraph, collective_seconds
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.intra_op import Difference, Explanation, Solution, diff, explain
from stablehlo_alpa.intra_op.diff import operator_seconds
from stablehlo_alpa.planning.compiler import run_passes

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_SHOWN_OPERATORS = 40
_WIDTH = 120


@dataclass(frozen=True)
class Collective:
    """Collectives of one kind over the same mesh axes.

    Attributes:
        kind: ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"all_to_all"`` or
            ``"collective_permute"``.
        axes: mesh axes.
        bytes: payload per device and step.
        count: how many run per step.
    """

    kind: str
    axes: tuple[str, ...]
    bytes: float
    count: float


@dataclass(frozen=True, eq=False)
class Plan:
    """How a program runs on a mesh. Printing it gives a table.

    Attributes:
        program: what was planned.
        spmd: the per-device program.
        mesh: the logical mesh chosen.
        cluster: the devices it was chosen for.
        priced: the strategies with their seconds.
        solution: the strategy of every operator.
        stages: module texts by stage: traced, merged, planned, local.
        volumes: the collectives of the planned module (arrays kind, axes, bytes, count, name).
        memory: of the local module: peak_bytes and the largest live tensors.
        remarks: what the compiler wants known, e.g. operators that it could only replicate.
    """

    program: TracedProgram
    spmd: SpmdProgram = field(repr=False)
    mesh: LogicalMesh
    cluster: ClusterSpec
    priced: PricedGraph = field(repr=False)
    solution: Solution
    stages: Mapping[str, str] = field(repr=False)
    volumes: Mapping[str, Any] = field(repr=False)
    memory: Mapping[str, Any] = field(repr=False)
    remarks: tuple[str, ...] = ()

    @cached_property
    def runtime(self) -> alpa_runtime.Plan:
        """What is run."""
        return alpa_runtime.Plan.of_program(self.spmd)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what is run to one file, for ``alpa_runtime.load``."""
        alpa_runtime.save(self.runtime, path)

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        """Sizes of the mesh axes."""
        return self.mesh.shape

    @property
    def input_shardings(self) -> Any:
        """``(args, kwargs)`` of ``PartitionSpec``, without the static arguments."""
        return jax.tree.unflatten(self.program.in_tree, _logical(self.spmd.inputs))

    @property
    def output_shardings(self) -> Any:
        """``PartitionSpec`` in the structure of the result."""
        return jax.tree.unflatten(self.program.out_tree, _logical(self.spmd.outputs))

    @property
    def step_time_s(self) -> float:
        """Predicted seconds of one call."""
        return self.solution.objective_s

    @property
    def peak_bytes(self) -> float:
        """Predicted bytes of live tensors per device at the worst point of the local module."""
        return float(self.memory["peak_bytes"])

    def module_text(self, stage: str = "local") -> str:
        """The module at a stage: ``traced``, ``merged``, ``planned`` or ``local``."""
        if stage not in self.stages:
            raise ShardingError(f"stage {stage!r} is not known, stages are {list(self.stages)}")
        return self.stages[stage]

    def export(self, form: str = "shardy") -> str:
        """The whole program with the plan's shardings, for one of XLA's partitioners.

        Args:
            form: ``"shardy"`` (``sdy.sharding_constraint``) or ``"gspmd"`` (``mhlo.sharding``).

        Raises:
            ShardingError: the form is not known.
        """
        if form not in ("shardy", "gspmd"):
            raise ShardingError(f"form is {form!r}, must be 'shardy' or 'gspmd'")
        passes = f"builtin.module(alpa-export-shardings{{form={form}}})"
        return run_passes(self.stages["planned"], passes, self.program.name)[0]

    def explain(self, name: str) -> Explanation:
        """Says which strategies an operator has, what each costs and why one was chosen."""
        return explain(self.priced, self.solution, name)

    def diff(self, other: Plan) -> Difference:
        """Says which operators another plan of the program splits differently, at which cost."""
        return diff(self.priced, self.solution, other.priced, other.solution)

    @property
    def memory_price_s_per_gib(self) -> float:
        """Seconds per step that one more GiB per device would save; 0 without a tight budget."""
        return self.solution.memory_price_s * 2**30

    def communication(self) -> list[Collective]:
        """Collectives of one step per kind and axes, most bytes first."""
        total: dict[tuple[int, int], tuple[float, float]] = {}
        arrays = (np.asarray(self.volumes[key]) for key in ("kind", "axes", "bytes", "count"))
        for kind, axes, size, count in zip(*arrays, strict=True):
            if kind == CollectiveKind.LOCAL:
                continue
            key = (int(kind), int(axes))
            old_size, old_count = total.get(key, (0.0, 0.0))
            total[key] = (old_size + float(size) * float(count), old_count + float(count))
        rows = [
            Collective(CollectiveKind(kind).name.lower(), self._axis_names(axes), size, count)
            for (kind, axes), (size, count) in total.items()
        ]
        return sorted(rows, key=lambda row: (-row.bytes, row.kind, row.axes))

    def _axis_names(self, mask: int) -> tuple[str, ...]:
        return tuple(name for i, name in enumerate(self.mesh.axis_names) if mask >> i & 1)

    def table(self, limit: int | None = _SHOWN_OPERATORS) -> str:
        """The plan as text.

        Args:
            limit: how many operators to show, the most expensive ones in program order; None for
                all of them.
        """
        buffer = io.StringIO()
        console = Console(file=buffer, width=_WIDTH, color_system=None, highlight=False)
        shape = " x ".join(f"{name}={size}" for name, size in self.mesh.axes)
        console.print(
            f"plan of {self.program.name} on {self.mesh.num_devices} x "
            f"{self.cluster.device.name}, mesh {shape or 'one device'}"
        )
        console.print(self._operator_table(limit))
        console.print(self._communication_table())
        solution = self.solution
        console.print(
            f"step {_seconds(solution.objective_s)}: compute {_seconds(solution.compute_s)}, "
            f"collectives {_seconds(solution.communication_s)}, resharding "
            f"{_seconds(solution.reshard_s)} (predicted)"
        )
        console.print(f"solved by {solution.method}: {_proved(solution)}")
        console.print(
            f"memory {_bytes(self.peak_bytes)} of {_bytes(self.cluster.device.memory_bytes)} "
            "per device at the peak"
        )
        if solution.memory_price_s:
            console.print(
                f"the memory budget binds: one more GiB per device would save "
                f"{_seconds(self.memory_price_s_per_gib)} per step"
            )
        return buffer.getvalue().rstrip()

    def __str__(self) -> str:
        return self.table()

    def _operator_table(self, limit: int | None) -> Table:
        graph, solution = self.priced.graph, self.solution
        rows = graph.node_offset[:-1] + solution.choice
        seconds = operator_seconds(self.priced, solution)
        memory = self._node_bytes()
        order = np.argsort(-seconds, kind="stable")
        shown = np.sort(order if limit is None else order[:limit])
        title = f"{len(shown)} of {graph.num_nodes} operators"
        table = Table("operator", "kind", "shape", title=title, title_justify="left")
        for head in ("sharding", "collectives"):
            table.add_column(head, overflow="fold")
        for head in ("seconds", "memory"):
            table.add_column(head, justify="right", no_wrap=True)
        shapes = self._node_shapes()
        unary = self._unary_kinds()
        for node in shown.tolist():
            table.add_row(
                graph.node_name[node],
                graph.node_op[node].removeprefix("stablehlo."),
                shapes.get(node, ""),
                graph.strategy_label[int(rows[node])],
                unary.get(node, ""),
                _seconds(seconds[node]),
                _bytes(memory[node]),
            )
        return table

    def _communication_table(self) -> Table:
        table = Table("collective", "axes", title="communication", title_justify="left")
        for head in ("per step", "bytes per device", "seconds"):
            table.add_column(head, justify="right")
        for row in self.communication():
            table.add_row(
                row.kind,
                ",".join(row.axes),
                f"{row.count:g}",
                _bytes(row.bytes),
                _seconds(self._collective_seconds(row)),
            )
        return table

    def _collective_seconds(self, row: Collective) -> float:
        axes = [i for i, name in enumerate(self.mesh.axis_names) if name in row.axes]
        mask = sum(1 << i for i in axes)
        kind = CollectiveKind[row.kind.upper()]
        if not row.count:
            return 0.0
        each = collective_seconds(
            [kind], [mask], [row.bytes / row.count], self.mesh, self.cluster.device
        )
        return row.count * float(each[0])

    def _node_bytes(self) -> np.ndarray:
        graph = self.priced.graph
        choice = self.solution.choice[graph.value_node]
        per_value = graph.value_bytes[graph.value_offset[:-1] + choice]
        return np.bincount(graph.value_node, weights=per_value, minlength=graph.num_nodes)

    def _node_shapes(self) -> dict[int, str]:
        shapes = {}
        for values, nodes in (
            (self.program.outputs, self.priced.graph.output_node),
            (self.program.inputs, self.priced.graph.input_node),
        ):
            for value, node in zip(values, nodes.tolist(), strict=True):
                shapes[node] = f"{value.dtype}[{','.join(map(str, value.shape))}]"
        return shapes

    def _unary_kinds(self) -> dict[int, str]:
        """Per node the collectives that its chosen strategy runs itself."""
        graph = self.priced.graph
        found: dict[int, list[str]] = {}
        for term, node in enumerate(graph.unary_node.tolist()):
            plan = int(graph.unary_plan[graph.unary_offset[term] + self.solution.choice[node]])
            for step in range(int(graph.plan_offset[plan]), int(graph.plan_offset[plan + 1])):
                kind = CollectiveKind(int(graph.step_kind[step]))
                axes = ",".join(self._axis_names(int(graph.step_axes[step])))
                found.setdefault(node, []).append(f"{kind.name.lower()}({axes})")
        return {node: ", ".join(names) for node, names in found.items()}


def _logical(values: tuple[ValueSpec, ...]) -> list[PartitionSpec]:
    return [value.logical_spec for value in values]


def _proved(solution: Solution) -> str:
    if solution.status == "optimal":
        return "optimal"
    reason = "stopped by the time limit, " if solution.status == "time limit" else ""
    return f"{reason}at most {solution.gap:.2g} of the seconds above the optimum"


def _seconds(value: float) -> str:
    if value == 0:
        return "0"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} us"


def _bytes(value: float) -> str:
    if value < 1:
        return "0 B"
    power = min(int(math.log2(value) // 10), len(_UNITS) - 1)
    return f"{value / 1024**power:.3g} {_UNITS[power]}"
