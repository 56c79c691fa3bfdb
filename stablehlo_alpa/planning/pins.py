"""Masks over the strategies of inputs: what the user or a method prescribes before the ILP."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from jax.sharding import PartitionSpec

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.cost import PricedGraph, StrategyGraph
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.frontend import TracedProgram, TracedValue

Mask = npt.NDArray[np.bool_]

Pins = Callable[[TracedProgram, StrategyGraph, LogicalMesh], Mapping[int, Mask]]
"""Says, for a program on a mesh, which strategies of which nodes are allowed."""

Charge = Callable[[TracedProgram, PricedGraph, LogicalMesh, DeviceSpec], PricedGraph]
"""Adds to the seconds of strategies what they cost those who use the program."""

REPLICATED = -1


def no_pins(program: TracedProgram, graph: StrategyGraph, mesh: LogicalMesh) -> Mapping[int, Mask]:
    """Leaves everything to the ILP."""
    return {}


def input_rows(graph: StrategyGraph, index: int) -> npt.NDArray[np.int8] | None:
    """int8[S_node, K]: per strategy and mesh axis the dimension of input ``index`` it splits.

    None when the input is always replicated.
    """
    return _rows(graph, int(graph.input_node[index]), graph.input_specs[index])


def output_rows(graph: StrategyGraph, index: int) -> npt.NDArray[np.int8] | None:
    """The same for output ``index``."""
    return _rows(graph, int(graph.output_node[index]), graph.output_specs[index])


def _rows(graph: StrategyGraph, node: int, specs: Any) -> npt.NDArray[np.int8] | None:
    if node < 0 or specs is None:
        return None
    return np.asarray(specs, np.int8).reshape(-1, len(graph.mesh_axes))


def pinned_axes(value: TracedValue, spec: PartitionSpec, mesh: LogicalMesh) -> tuple[int, ...]:
    """The dimension that each mesh axis splits under ``spec``, ``REPLICATED`` for none.

    Raises:
        ShardingError: the spec does not fit the value and the mesh.
    """
    sizes = dict(mesh.axes)
    order = list(sizes)
    if len(spec) > len(value.shape):
        raise ShardingError(
            f"sharding {spec} of {value.name} names {len(spec)} dimensions, its shape "
            f"{list(value.shape)} has {len(value.shape)}"
        )
    split = dict.fromkeys(order, REPLICATED)
    for dimension, entry in enumerate(spec):
        axes = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        for axis in axes:
            if axis not in sizes:
                raise ShardingError(
                    f"sharding {spec} of {value.name} uses axis {axis!r}, the mesh has {order}"
                )
            if split[axis] != REPLICATED:
                raise ShardingError(f"sharding {spec} of {value.name} uses axis {axis!r} twice")
            split[axis] = dimension
        if list(axes) != sorted(axes, key=order.index):
            raise ShardingError(
                f"sharding {spec} of {value.name} splits dimension {dimension} on axes "
                f"{list(axes)}, they must come in the order of the mesh {order}"
            )
        product = math.prod(sizes[axis] for axis in axes)
        if value.shape[dimension] % product:
            raise ShardingError(
                f"sharding {spec} of {value.name}: dimension {dimension} of size "
                f"{value.shape[dimension]} does not divide by {product}, the product of axes "
                + " x ".join(f"{axis}={sizes[axis]}" for axis in axes)
            )
    return tuple(split[axis] for axis in order)


def pin_mask(
    program: TracedProgram,
    graph: StrategyGraph,
    mesh: LogicalMesh,
    index: int,
    spec: PartitionSpec,
) -> Mask | None:
    """Strategies of input ``index`` that hold it as ``spec`` says; None when nothing is to choose.

    Raises:
        ShardingError: the spec does not fit, or no strategy holds the input so.
    """
    return _mask(program.inputs[index], input_rows(graph, index), mesh, spec)


def pin_output_mask(
    program: TracedProgram,
    graph: StrategyGraph,
    mesh: LogicalMesh,
    index: int,
    spec: PartitionSpec,
) -> Mask | None:
    """The same for output ``index``."""
    return _mask(program.outputs[index], output_rows(graph, index), mesh, spec)


def _mask(
    value: TracedValue, rows: npt.NDArray[np.int8] | None, mesh: LogicalMesh, spec: PartitionSpec
) -> Mask | None:
    wanted = pinned_axes(value, spec, mesh)
    sizes = [size for _, size in mesh.axes]
    if rows is None:
        if any(dim != REPLICATED and n > 1 for dim, n in zip(wanted, sizes, strict=True)):
            raise ShardingError(f"{value.name} can only be replicated, pinned to {spec}")
        return None
    # An axis with one device splits nothing, whatever a strategy calls it.
    relevant = np.array([n > 1 for n in sizes])
    mask: Mask = (rows[:, relevant] == np.array(wanted, np.int8)[relevant]).all(axis=1)
    if not mask.any():
        raise ShardingError(f"no strategy of {value.name} holds it as {spec}")
    return mask


def pin_inputs(
    program: TracedProgram,
    graph: StrategyGraph,
    mesh: LogicalMesh,
    specs: Mapping[int, PartitionSpec | None],
) -> dict[int, Mask]:
    """Strategies that hold inputs as specs say, by number of the input; None leaves one free.

    Raises:
        ShardingError: as `pin_mask`.
    """
    masks: dict[int, Mask] = {}
    for index, spec in specs.items():
        if spec is not None:
            mask = pin_mask(program, graph, mesh, index, spec)
            combine(masks, int(graph.input_node[index]), mask)
    return masks


def combine(masks: dict[int, Mask], node: int, mask: Mask | None) -> None:
    """And-s a mask into those collected for its node."""
    if mask is not None:
        masks[node] = masks[node] & mask if node in masks else mask


def split_work_masks(graph: StrategyGraph) -> dict[int, Mask]:
    """Per operator with FLOPs the strategies that split its work the most."""
    masks: dict[int, Mask] = {}
    for node in range(graph.num_nodes):
        rows = slice(int(graph.node_offset[node]), int(graph.node_offset[node + 1]))
        flops = graph.strategy_flops[rows]
        if flops.size and flops.max() > 0:
            masks[node] = flops <= flops.min()
    return masks
