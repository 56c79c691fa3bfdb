"""Seconds of collectives over the axes of a logical mesh.

The payload of a collective is what one device holds of it::

    all_reduce           x: local operand
    all_gather           x: local result
    reduce_scatter       x: local operand
    all_to_all           x: local operand
    collective_permute   x: local operand
    local                x / memory bandwidth: a slice or a mask, nothing is sent

What it costs depends on where its groups lie: `cost.links`, `cost.network` and `cost.torus`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import ClusterSpec, DeviceSpec, Group, LogicalMesh
from stablehlo_alpa.cost.fits import is_measured
from stablehlo_alpa.cost.kinds import Beside, CollectiveKind, FloatArray
from stablehlo_alpa.cost.links import linked_seconds
from stablehlo_alpa.cost.network import network_seconds
from stablehlo_alpa.cost.torus import torus_seconds
from stablehlo_alpa.errors import CostError


def collective_seconds(
    kind: npt.ArrayLike,
    axes: npt.ArrayLike,
    payload_bytes: npt.ArrayLike,
    mesh: LogicalMesh,
    device: DeviceSpec,
) -> FloatArray:
    """Seconds of each of T collectives.

    Args:
        kind: int[T], values of `CollectiveKind`.
        axes: int[T], bit i set when mesh axis i takes part.
        payload_bytes: float64[T], bytes per device as in the table of this module.
        mesh: the mesh whose axes are meant.
        device: gives the memory bandwidth of local steps.

    Returns:
        float64[T] seconds. A collective over groups of one device takes none.

    Raises:
        CostError: unknown kind, an axis the mesh has not, a collective over no axis, or a payload
            that is negative or not finite.
    """
    kind, axes = (
        np.atleast_1d(np.asarray(kind, np.int64)),
        np.atleast_1d(np.asarray(axes, np.int64)),
    )
    payload = np.atleast_1d(np.asarray(payload_bytes, np.float64))
    _check(kind, axes, payload, len(mesh.shape))
    seconds = np.zeros(axes.shape)
    local = kind == CollectiveKind.LOCAL
    seconds[local] = payload[local] / device.memory_bandwidth
    for which in CollectiveKind:
        if which is CollectiveKind.LOCAL:
            continue
        is_kind = kind == which
        for mask in np.unique(axes[is_kind]).tolist():
            rows = is_kind & (axes == mask)
            seconds[rows] = group_seconds(which, mesh.groups[mask], payload[rows], mesh.cluster)
    return seconds


COMBINED_BYTES = 30 * 2**20
"""Payload up to which XLA for GPU puts collectives of a kind together that do not wait for each
other: its default, `kDefaultAllReduceCombineThreshold` in `xla/service/collective_utils.h`."""


def added_seconds(
    kind: npt.ArrayLike,
    axes: npt.ArrayLike,
    payload_bytes: npt.ArrayLike,
    beside: npt.NDArray[np.int64],
    mesh: LogicalMesh,
    device: DeviceSpec,
) -> FloatArray:
    """Seconds that collectives add to a step.

    What may run beside computation does so by the overlap of the cluster. On devices that were
    measured, small reductions of gradients are shares of one of `COMBINED_BYTES`; gathers of
    parameters are not, which are needed one after the other.

    Args:
        kind: int[T], values of `CollectiveKind`.
        axes: int[T], bit i set when mesh axis i takes part.
        payload_bytes: float64[T], bytes per device.
        beside: int64[T] `Beside` of each.
        mesh: the mesh whose axes are meant.
        device: one of its devices.
    """
    payload = np.atleast_1d(np.asarray(payload_bytes, np.float64))
    is_combined = (beside == Beside.GRADIENTS) & (payload > 0) & is_measured(device)
    sent = np.where(is_combined, np.maximum(payload, COMBINED_BYTES), payload)
    seconds = collective_seconds(kind, axes, sent, mesh, device)
    seconds[is_combined] *= payload[is_combined] / sent[is_combined]
    overlap = mesh.cluster.overlap
    if overlap is not None:
        seconds[beside == Beside.GRADIENTS] *= overlap.added(overlap.gradients)
        seconds[beside == Beside.PARAMETERS] *= overlap.added(overlap.parameters)
    return seconds


def group_seconds(
    kind: CollectiveKind, group: Group, payload: FloatArray, cluster: ClusterSpec
) -> FloatArray:
    """Seconds of collectives of one kind over groups that lie alike.

    Args:
        kind: not a local step.
        group: where they lie.
        payload: float64[T] bytes per device.
        cluster: the links.
    """
    if group.size == 1:
        return np.zeros(payload.shape)
    if group.rings:
        return torus_seconds(kind, group, payload, cluster.device_link)
    if group.crosses:
        return network_seconds(kind, group, payload, cluster)
    return linked_seconds(kind, group, payload, cluster)


def _check(
    kind: npt.NDArray[np.int64], axes: npt.NDArray[np.int64], payload: FloatArray, rank: int
) -> None:
    if not kind.shape == axes.shape == payload.shape:
        raise CostError(
            f"collectives need as many kinds, axes and payloads, got {kind.shape}, {axes.shape} "
            f"and {payload.shape}"
        )
    unknown = ~np.isin(kind, [int(k) for k in CollectiveKind])
    if unknown.any():
        raise CostError(f"unknown collective kind {int(kind[unknown][0])}")
    outside = (axes < 0) | (axes >= 1 << rank)
    if outside.any():
        raise CostError(
            f"collective over axes mask {int(axes[outside][0])}, but the mesh has {rank} axes"
        )
    bad = ~(np.isfinite(payload) & (payload >= 0))
    if bad.any():
        raise CostError(f"payload must be finite and >= 0 bytes, got {payload[bad][0]}")
    nowhere = (axes == 0) & (kind != CollectiveKind.LOCAL)
    if nowhere.any():
        name = CollectiveKind(int(kind[nowhere][0])).name.lower()
        raise CostError(f"{name} needs at least one mesh axis, got mask 0")
