"""From a prescription to masks over the strategies of a graph, and to remarks on what cannot be."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from jax.sharding import PartitionSpec

from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.cost import StrategyGraph
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.frontend import TracedValue
from stablehlo_alpa.planning.axes import (
    REPLICATED,
    Dimensions,
    Rows,
    listed_specs,
    named_axes,
    num_parts,
    pinned_axes,
    relevant_axes,
    split_dimensions,
)
from stablehlo_alpa.planning.boundary import Boundary
from stablehlo_alpa.planning.confinement import confined
from stablehlo_alpa.planning.prescription import (
    Exactly,
    Finest,
    Near,
    Preferred,
    Prescription,
    Role,
    SplitBatch,
    Whole,
    Wish,
)
from stablehlo_alpa.planning.work import splits_most

Mask = npt.NDArray[np.bool_]
# Names that a remark lists before it counts the others.
_LISTED = 4


@dataclass(frozen=True)
class Masks:
    """What a prescription means for a graph.

    Attributes:
        nodes: node -> bool[strategies of the node], those that may be chosen.
        remarks: what was prescribed and cannot be.
    """

    nodes: dict[int, Mask]
    remarks: tuple[str, ...] = ()


def masks(
    prescription: Prescription, boundary: Boundary, graph: StrategyGraph, mesh: LogicalMesh
) -> Masks:
    """Strategies that a prescription leaves, per node of a graph.

    Exact wishes come first. Every other is kept as far as those before it allow: it never empties
    the strategies of a node.

    Args:
        prescription: by flat numbers of the step.
        boundary: the flat numbers of the graph's arguments and results.
        graph: of the step, or of a part of it.
        mesh: what the graph was made for.

    Raises:
        ShardingError: an exact wish does not fit its value and the mesh, no strategy does so, or
            two of them contradict each other.
    """
    places = _places(prescription, boundary, graph)
    found = _Collected()
    for place in places:
        if isinstance(place.wish, Exactly):
            found.require(place, _exact_mask(place.value, place.rows, mesh, place.wish.spec))
    split_batches = []
    for place in places:
        if not isinstance(place.wish, Exactly):
            is_split = _keep(place, found, mesh)
            if isinstance(place.wish, SplitBatch):
                split_batches.append(is_split)
    # A part of a step may have no batch of its own.
    if prescription.splits_work and (any(split_batches) or not split_batches):
        # Without this a small batch would be gathered and the step computed on every device.
        for node, mask in split_work_masks(graph).items():
            found.add(node, mask)
    if prescription.confinement is not None:
        for node, mask in confined(prescription.confinement, boundary, graph).items():
            found.add(node, mask)
    return Masks(found.masks, (*prescription.remarks, *found.remarks()))


def rows_of(graph: StrategyGraph, node: int, specs: Any) -> Rows | None:
    """int8[S_node, K]: per strategy and mesh axis the dimension of an input or output it splits.

    None when it is always replicated.
    """
    if node < 0 or specs is None:
        return None
    return np.asarray(specs, np.int8).reshape(-1, len(graph.mesh_axes))


def split_work_masks(graph: StrategyGraph) -> dict[int, Mask]:
    """Per operator with FLOPs the strategies that split its work the most."""
    found: dict[int, Mask] = {}
    for node in range(graph.num_nodes):
        flops = graph.strategy_flops[graph.span(node)]
        if flops.size and flops.max() > 0:
            found[node] = splits_most(flops)
    return found


@dataclass(frozen=True, eq=False)
class _Place:
    """An input or output with a wish; ``rows`` as in `rows_of`."""

    wish: Wish
    value: TracedValue
    node: int
    rows: Rows | None
    role: Role = Role.OTHER

    @property
    def label(self) -> str:
        return f"{self.value.name} {list(self.value.shape)}"


def _places(
    prescription: Prescription, boundary: Boundary, graph: StrategyGraph
) -> tuple[_Place, ...]:
    """Everything that something is wished of."""
    found = []
    for position, entry in enumerate(boundary.inputs):
        if entry is not None and entry[0] in prescription.inputs:
            node = int(graph.input_node[position])
            rows = rows_of(graph, node, graph.input_specs[position])
            role = Role.PARAMETER if graph.input_is_parameter[position] else Role.OTHER
            found.append(_Place(prescription.inputs[entry[0]], entry[1], node, rows, role))
    for position, entry in enumerate(boundary.outputs):
        if entry is not None and entry[0] in prescription.outputs:
            node = int(graph.output_node[position])
            rows = rows_of(graph, node, graph.output_specs[position])
            found.append(_Place(prescription.outputs[entry[0]], entry[1], node, rows))
    return tuple(found)


@dataclass
class _Collected:
    """Masks so far, and what there is to remark, grouped by what is said."""

    masks: dict[int, Mask] = field(default_factory=dict)
    said: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    owners: dict[int, str] = field(default_factory=dict)

    def require(self, place: _Place, mask: Mask | None) -> None:
        """Takes an exact wish in."""
        if mask is None:
            return
        if not self.add(place.node, mask):
            raise ShardingError(
                f"{place.value.name} and {self.owners[place.node]} are one value to the program "
                "and are pinned to different shardings: pin one of them"
            )
        self.owners[place.node] = place.value.name

    def left(self, place: _Place) -> Mask:
        """bool[S] strategies of a place's node that may be chosen so far."""
        assert place.rows is not None
        return self.masks.get(place.node, np.ones(len(place.rows), np.bool_))

    def add(self, node: int, mask: Mask) -> bool:
        """Takes a mask in unless it contradicts those before it; says whether it did."""
        both = self.masks[node] & mask if node in self.masks else mask
        if both.any():
            self.masks[node] = both
        return bool(both.any())

    def remarks(self) -> tuple[str, ...]:
        """One line per thing that is said."""
        lines = []
        for (how, why), names in self.said.items():
            rest = len(names) - _LISTED
            listed = ", ".join(names[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")
            lines.append(f"{listed} {'is' if len(names) == 1 else 'are'} {how}: {why}")
        return tuple(lines)


def _keep(place: _Place, found: _Collected, mesh: LogicalMesh) -> bool:
    """Keeps a wish as far as it can be; says whether the value is split over every device."""
    match place.wish:
        case Preferred(spec):
            _prefer(place, spec, found, mesh)
            return False
        case Finest(role) if role in (Role.ANY, place.role):
            achieved, wanted = _split(place, None, found, mesh), None
        case Near(spec, finest, role):
            # The axes of a dimension may come in another order than those of the mesh.
            wanted = split_dimensions(place.value, spec, mesh)
            is_meant = role in (Role.ANY, place.role)
            achieved = _split(place, wanted, found, mesh, finest if is_meant else ())
        case SplitBatch() if place.value.shape:
            wanted = (0,) * len(mesh.shape)
            achieved = _split(place, wanted, found, mesh)
        case _:
            wanted = (REPLICATED,) * len(mesh.shape)
            achieved = _split(place, wanted, found, mesh)
    shortfall = _shortfall(place, wanted, achieved, mesh)
    if shortfall is not None:
        found.said.setdefault(shortfall, []).append(place.label)
    return num_parts(achieved, mesh) == mesh.num_devices


def _prefer(place: _Place, spec: PartitionSpec, found: _Collected, mesh: LogicalMesh) -> None:
    try:
        mask = _exact_mask(place.value, place.rows, mesh, spec)
    except ShardingError:
        return
    if mask is not None:
        found.add(place.node, mask)


def _split(
    place: _Place,
    wanted: Dimensions | None,
    found: _Collected,
    mesh: LogicalMesh,
    free: Collection[str] = (),
) -> Dimensions:
    """Leaves the strategies that split a value the most, the axes where they are wanted.

    Args:
        place: the value.
        wanted: per mesh axis the dimension it may split; None for any.
        found: takes the mask.
        mesh: the mesh.
        free: axes that may split any dimension.

    Returns:
        per mesh axis the dimension that one of them splits.
    """
    whole = (REPLICATED,) * len(mesh.shape)
    if place.rows is None:
        return whole
    left = found.left(place)
    if wanted is not None:
        fits = (place.rows == np.array(wanted, np.int8)) | (place.rows == REPLICATED)
        fits |= [name in free for name in mesh.axis_names]
        left = left & (fits | ~relevant_axes(mesh)).all(axis=1)
    if not left.any():
        return whole
    parts = np.array([num_parts(row, mesh) for row in place.rows.tolist()])
    mask = left & (parts == parts[left].max())
    found.add(place.node, mask)
    return tuple(place.rows[np.flatnonzero(mask)[0]].tolist())


def _shortfall(
    place: _Place, wanted: Dimensions | None, achieved: Dimensions, mesh: LogicalMesh
) -> tuple[str, str] | None:
    """How a value is held and why, where that is not what was wished; None where it is."""
    shape, wish = place.value.shape, place.wish
    if isinstance(wish, Whole) and wish.remark:
        return "whole on every device", wish.remark
    # What is empty or has one element is nothing to split.
    if math.prod(shape) <= 1:
        return None
    parts = num_parts(achieved, mesh)
    if parts >= (2 if wanted is None else num_parts(wanted, mesh)):
        return None
    used = [name for name, dim in zip(mesh.axis_names, achieved, strict=True) if dim >= 0]
    how = f"split on {', '.join(used)} alone" if parts > 1 else "whole on every device"
    axes = named_axes(mesh)
    if wanted is None:
        sizes = [n for n in mesh.shape if n > 1]
        if any(size % n == 0 for size in shape for n in sizes):
            return how, "no operator that reads it has a strategy that splits it"
        return how, f"no dimension divides by an axis of mesh {axes}; pad one to a multiple"
    for dimension in sorted({dim for dim in wanted if dim >= 0}):
        product = num_parts([d if d == dimension else REPLICATED for d in wanted], mesh)
        size = shape[dimension] if dimension < len(shape) else 1
        if size % product:
            mend = _mend_size(size, product, mesh, isinstance(wish, SplitBatch))
            return how, f"dimension {dimension} of size {size} does not divide by {product}; {mend}"
    why = f"no strategy of the operators around it holds it so on mesh {axes}"
    if isinstance(wish, SplitBatch):
        return how, (
            f"no operator that reads it has a strategy that splits dimension 0 on mesh {axes}; "
            "where it is no batch, batch_argnums= names those that are"
        )
    return how, why


def _mend_size(size: int, product: int, mesh: LogicalMesh, is_batch: bool) -> str:
    """What makes a dimension divide."""
    padded = f"{-(-size // product) * product} would"
    common = math.gcd(size, product)
    if is_batch and len(mesh.shape) == 1 and common > 1:
        return f"{padded}, and mesh_shape={common, product // common} splits it in {common}"
    return padded


def _exact_mask(
    value: TracedValue, rows: Rows | None, mesh: LogicalMesh, spec: PartitionSpec
) -> Mask | None:
    """Strategies that hold a value as a spec says; None when there is nothing to choose.

    Raises:
        ShardingError: the spec does not fit, or no strategy holds the value so.
    """
    wanted = np.array(pinned_axes(value, spec, mesh), np.int8)
    relevant = relevant_axes(mesh)
    if rows is None:
        if (relevant & (wanted >= 0)).any():
            raise ShardingError(
                f"{value.name} can only be replicated, pinned to {spec}: no operator that reads it "
                "has a strategy that splits it; leave it out or pin it to PartitionSpec()"
            )
        return None
    free = [d for d, entry in enumerate(spec) if entry is PartitionSpec.UNCONSTRAINED]
    fits = (rows == wanted) | (np.isin(rows, free) & (wanted == REPLICATED))
    mask: Mask = (fits | ~relevant).all(axis=1)
    if not mask.any():
        raise ShardingError(
            f"no strategy of {value.name} holds it as {spec}; there are {listed_specs(rows, mesh)}"
        )
    return mask
