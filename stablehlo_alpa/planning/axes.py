"""Shardings as the dimension that each mesh axis splits, and the checks of what a person wrote."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from jax.sharding import PartitionSpec

from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.frontend import TracedValue

Rows = npt.NDArray[np.int8]
"""int8[S, K]: per strategy and mesh axis the dimension of a value that it splits."""

Dimensions = tuple[int, ...]
"""Per mesh axis the dimension of a value that it splits, ``REPLICATED`` for none."""

REPLICATED = -1


def named_axes(mesh: LogicalMesh) -> str:
    """Axes with their sizes, for messages."""
    return ", ".join(f"{name}={size}" for name, size in mesh.axes)


def num_parts(dimensions: Sequence[int], mesh: LogicalMesh) -> int:
    """Parts that a value is split in: the product of the axes that split one of its dimensions."""
    return math.prod(n for dim, n in zip(dimensions, mesh.shape, strict=True) if dim >= 0)


def relevant_axes(mesh: LogicalMesh) -> npt.NDArray[np.bool_]:
    """bool[K]: an axis with one device splits nothing, whatever a strategy calls it."""
    return np.array([n > 1 for n in mesh.shape])


def listed_specs(rows: Rows, mesh: LogicalMesh) -> str:
    """The shardings of strategies, ``PartitionSpec('x'), PartitionSpec()``."""
    specs = []
    for row in np.unique(rows, axis=0).tolist():
        axes: list[list[str]] = [[] for _ in range(max([*row, REPLICATED]) + 1)]
        for name, dim in zip(mesh.axis_names, row, strict=True):
            if dim >= 0:
                axes[dim].append(name)
        entries = [tuple(names) or None for names in axes]
        specs.append(str(PartitionSpec(*entries)))
    return ", ".join(dict.fromkeys(specs))


def split_dimensions(value: TracedValue, spec: PartitionSpec, mesh: LogicalMesh) -> Dimensions:
    """The dimension that each mesh axis splits under ``spec``, ``REPLICATED`` for none.

    Raises:
        ShardingError: the spec names a dimension or an axis that is not there, or an axis twice.
    """
    order = list(mesh.axis_names)
    if len(spec) > len(value.shape):
        raise ShardingError(
            f"sharding {spec} of {value.name} names {len(spec)} dimensions, its shape "
            f"{list(value.shape)} has {len(value.shape)}"
        )
    split = dict.fromkeys(order, REPLICATED)
    for dimension, entry in enumerate(spec):
        for axis in _axes(entry):
            if axis not in split:
                raise ShardingError(
                    f"sharding {spec} of {value.name} uses axis {axis!r}, the mesh has {order}"
                )
            if split[axis] != REPLICATED:
                raise ShardingError(f"sharding {spec} of {value.name} uses axis {axis!r} twice")
            split[axis] = dimension
    return tuple(split[axis] for axis in order)


def _axes(entry: Any) -> tuple[str, ...]:
    """The mesh axes of one dimension of a spec."""
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def pinned_axes(value: TracedValue, spec: PartitionSpec, mesh: LogicalMesh) -> Dimensions:
    """The dimension that each mesh axis splits under ``spec``, ``REPLICATED`` for none.

    Raises:
        ShardingError: the spec does not fit the value and the mesh.
    """
    split = split_dimensions(value, spec, mesh)
    sizes, order = dict(mesh.axes), list(mesh.axis_names)
    for dimension, entry in enumerate(spec):
        axes = _axes(entry)
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
                + "; pad it, or leave it to the search"
            )
    return split
