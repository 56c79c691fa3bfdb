"""Seconds of gathers behind a program, charged to the operators that make its results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.cost import CollectiveKind, PricedGraph, collective_seconds
from stablehlo_alpa.frontend import TracedValue
from stablehlo_alpa.planning.axes import Rows
from stablehlo_alpa.planning.pins import rows_of


def charge_gathers(
    priced: PricedGraph,
    outputs: Sequence[tuple[int, TracedValue] | None],
    gathered: Collection[int],
    mesh: LogicalMesh,
    device: DeviceSpec,
) -> PricedGraph:
    """Adds to strategies that split an output what its all-gather costs.

    Args:
        priced: the graph of a step or of a part of it.
        outputs: per result its flat number in the step and its value, where it is one of the step.
        gathered: numbers of those that are gathered where they are split.
        mesh: what the graph was priced for.
        device: likewise.
    """
    if not gathered:
        return priced
    communication = priced.communication_s.copy()
    graph = priced.graph
    for position, entry in enumerate(outputs):
        if entry is None or entry[0] not in gathered:
            continue
        node = int(graph.output_node[position])
        rows = rows_of(graph, node, graph.output_specs[position])
        if rows is not None:
            communication[graph.span(node)] += _gather_s(rows, entry[1], mesh, device)
    return replace(priced, communication_s=communication)


def _gather_s(
    rows: Rows, value: TracedValue, mesh: LogicalMesh, device: DeviceSpec
) -> npt.NDArray[np.float64]:
    """float64[S]: seconds of an all-gather of the whole result, per strategy of its operator."""
    axes = ((rows >= 0) << np.arange(rows.shape[1])).sum(axis=1)
    seconds = np.zeros(len(rows))
    split = np.flatnonzero(axes)
    if split.size:
        kinds = np.full(split.size, int(CollectiveKind.ALL_GATHER))
        size = np.full(split.size, float(value.num_bytes))
        seconds[split] = collective_seconds(kinds, axes[split], size, mesh, device)
    return seconds
