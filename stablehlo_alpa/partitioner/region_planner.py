"""Plans a region on the mesh of the program around it, under the shardings that XLA proposes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from jax.sharding import Mesh, PartitionSpec

from stablehlo_alpa.api.methods import ShardParallel
from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh, cluster_of
from stablehlo_alpa.cost import CollectiveKind, PricedGraph, StrategyGraph, collective_seconds
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.frontend import TracedProgram, TracedValue
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.partitioner.recent import Recent
from stablehlo_alpa.planning import Plan, PlanOptions, plan_program
from stablehlo_alpa.planning.pins import Mask, combine, output_rows, pin_mask, pin_output_mask

_plans: Recent[Plan] = Recent(256)

Finder = Callable[[TracedProgram, StrategyGraph, LogicalMesh, int, PartitionSpec], Mask | None]
"""Strategies that hold an input, or an output, as a spec says."""

Int = npt.NDArray[np.int64]

Entries = tuple[tuple[tuple[str, ...], ...], ...]
"""Per tensor and dimension the mesh axes that split it."""


@dataclass(frozen=True)
class Proposal:
    """Shardings that XLA has found for a region's arguments and results.

    Attributes:
        inputs, outputs: per tensor and dimension the mesh axes.
    """

    inputs: Entries
    outputs: Entries

    @property
    def is_empty(self) -> bool:
        """Whether nothing is split: XLA knows nothing, or wants nothing."""
        return not any(axes for entries in (*self.inputs, *self.outputs) for axes in entries)

    def pins(
        self, program: TracedProgram, graph: StrategyGraph, mesh: LogicalMesh
    ) -> Mapping[int, Mask]:
        """What is split stays so, as far as the operators at the boundary allow it together."""
        masks: dict[int, Mask] = {}
        sides: tuple[tuple[Entries, Finder, Int], ...] = (
            (self.inputs, pin_mask, graph.input_node),
            (self.outputs, pin_output_mask, graph.output_node),
        )
        for tensors, find, nodes in sides:
            for index, entries in enumerate(tensors):
                if any(entries):
                    mask = _mask(find, program, graph, mesh, index, entries)
                    _add(masks, int(nodes[index]), mask)
        return masks

    def charge(
        self, program: TracedProgram, priced: PricedGraph, mesh: LogicalMesh, device: DeviceSpec
    ) -> PricedGraph:
        """Adds what XLA pays to have results whole that it proposes whole.

        Where it proposes nothing at all, results are the planner's choice, and nothing is charged.
        """
        if self.is_empty:
            return priced
        communication = priced.communication_s.copy()
        for index, (value, entries) in enumerate(zip(program.outputs, self.outputs, strict=True)):
            rows = output_rows(priced.graph, index)
            if rows is None or any(entries):
                continue
            span = priced.graph.span(int(priced.graph.output_node[index]))
            communication[span] += _gather_s(rows, value, mesh, device)
        return replace(priced, communication_s=communication)


def plan_region(
    program: TracedProgram,
    mesh: Mesh,
    proposal: Proposal,
    method: ShardParallel,
) -> Plan:
    """The plan of a region; equal regions under equal proposals are planned once.

    Raises:
        InfeasibleError: no plan keeps the memory budget.
        MeshError: the mesh's devices are not known.
    """
    options = replace(mesh_options(mesh, method), pins=proposal.pins, charge=proposal.charge)
    rest = (
        options.cluster,
        options.mesh_shapes,
        options.axis_names,
        options.solve,
        proposal,
    )
    return _plans.get(digest(program, rest), lambda: plan_program(program, options))


def mesh_options(mesh: Mesh, method: ShardParallel) -> PlanOptions:
    """What is planned for on a mesh of jax.

    Raises:
        MeshError: the mesh's devices are not known.
    """
    assert not isinstance(method.device, str)
    cluster = cluster_of(list(mesh.devices.flat), method.device)
    budget = method.memory_budget
    assert not isinstance(budget, str)
    return PlanOptions(
        cluster=cluster,
        mesh_shapes=(tuple(mesh.devices.shape),),
        axis_names=tuple(map(str, mesh.axis_names)),
        solve=SolveOptions(
            memory_budget=cluster.device.memory_bytes if budget is None else budget,
            time_limit_s=method.time_limit_s,
        ),
    )


def digest(program: TracedProgram, rest: Any = None) -> str:
    """Of a program, wherever in the source it stands, and of what else counts."""
    text = re.sub(r" loc\([^)]*\)|^#loc.*$", "", program.text, flags=re.MULTILINE)
    return hashlib.sha256(f"{program.name}\0{rest!r}\0{text}".encode()).hexdigest()


def _mask(
    find: Finder,
    program: TracedProgram,
    graph: StrategyGraph,
    mesh: LogicalMesh,
    index: int,
    entries: tuple[tuple[str, ...], ...],
) -> Mask | None:
    """Strategies that keep a proposal; None where none does, and XLA reshards at the border."""
    try:
        return find(program, graph, mesh, index, PartitionSpec(*entries))
    except ShardingError:
        return None


def _add(masks: dict[int, Mask], node: int, mask: Mask | None) -> None:
    """Takes a mask in unless it contradicts those before it."""
    if mask is not None and (node not in masks or (masks[node] & mask).any()):
        combine(masks, node, mask)


def _gather_s(
    rows: npt.NDArray[np.int8],
    value: TracedValue,
    mesh: LogicalMesh,
    device: DeviceSpec,
) -> npt.NDArray[np.float64]:
    """float64[S]: seconds of an all-gather of the whole result, per strategy of its operator."""
    masks = ((rows >= 0) << np.arange(rows.shape[1])).sum(axis=1)
    seconds = np.zeros(len(rows))
    split = np.flatnonzero(masks)
    if split.size:
        kinds = np.full(split.size, int(CollectiveKind.ALL_GATHER))
        size = np.full(split.size, float(value.num_bytes))
        seconds[split] = collective_seconds(kinds, masks[split], size, mesh, device)
    return seconds
