"""Seconds of collectives: alpha-beta over the axes of a logical mesh.

With n devices in a group, x payload bytes per device, latency alpha and bandwidth B::

    all_reduce           alpha + 2 (n - 1) / n * x / B    x: local operand
    all_gather           alpha +   (n - 1) / n * x / B    x: local result
    reduce_scatter       alpha +   (n - 1) / n * x / B    x: local operand
    all_to_all           alpha +   (n - 1) / n * x / B    x: local operand
    collective_permute   alpha + x / B                    x: local operand
    local                x / memory bandwidth             a slice or a mask, nothing is sent

Over several axes the group is their product, with the smallest bandwidth and the largest latency.

References:
    Ring algorithms: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
    Operations in MPICH", IJHPCA 2005. All-to-all: a device keeps 1/n of its operand and sends the
    rest once, over links of bandwidth B to every peer at a time (a switch, or NVLink).
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.errors import CostError

FloatArray = npt.NDArray[np.float64]


class CollectiveKind(IntEnum):
    """Step kinds of a reshard plan, numbered as the compiler numbers them."""

    ALL_REDUCE = 0
    ALL_GATHER = 1
    REDUCE_SCATTER = 2
    ALL_TO_ALL = 3
    COLLECTIVE_PERMUTE = 4
    LOCAL = 5


# Share of the payload that crosses the link, as (coefficient of (n - 1) / n, constant).
_TRAFFIC = {
    CollectiveKind.ALL_REDUCE: (2.0, 0.0),
    CollectiveKind.ALL_GATHER: (1.0, 0.0),
    CollectiveKind.REDUCE_SCATTER: (1.0, 0.0),
    CollectiveKind.ALL_TO_ALL: (1.0, 0.0),
    CollectiveKind.COLLECTIVE_PERMUTE: (0.0, 1.0),
}


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
    if not kind.shape == axes.shape == payload.shape:
        raise CostError(
            f"collectives need as many kinds, axes and payloads, got {kind.shape}, {axes.shape} "
            f"and {payload.shape}"
        )
    unknown = ~np.isin(kind, [int(k) for k in CollectiveKind])
    if unknown.any():
        raise CostError(f"unknown collective kind {int(kind[unknown][0])}")
    rank = len(mesh.shape)
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

    group = np.ones(axes.shape)
    alpha = np.zeros(axes.shape)
    bandwidth = np.full(axes.shape, np.inf)
    for i, (size, link) in enumerate(zip(mesh.shape, mesh.links, strict=True)):
        # An axis of one device carries nothing, so its link does not slow the others.
        used = ((axes >> i) & 1 == 1) & (size > 1)
        group[used] *= size
        alpha[used] = np.maximum(alpha[used], link.alpha_s)
        bandwidth[used] = np.minimum(bandwidth[used], link.bandwidth)
    seconds = np.zeros(axes.shape)
    for which, (ring, constant) in _TRAFFIC.items():
        rows = (kind == which) & (group > 1)
        share = ring * (group[rows] - 1) / group[rows] + constant
        seconds[rows] = alpha[rows] + share * payload[rows] / bandwidth[rows]
    local = kind == CollectiveKind.LOCAL
    seconds[local] = payload[local] / device.memory_bandwidth
    return seconds
