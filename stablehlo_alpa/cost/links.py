"""Seconds of collectives among devices that are linked directly: of a host, or of a rack."""

from __future__ import annotations

import math

from stablehlo_alpa.cluster import ClusterSpec, DeviceSpec, Group
from stablehlo_alpa.cost.curves import Curve, curves_of, short_payload
from stablehlo_alpa.cost.kinds import CollectiveKind, FloatArray, ring_share

# What a kind that was not measured is like, and how many times as much that sends.
_ALIKE = {
    CollectiveKind.ALL_GATHER: CollectiveKind.ALL_REDUCE,
    CollectiveKind.REDUCE_SCATTER: CollectiveKind.ALL_REDUCE,
    CollectiveKind.ALL_TO_ALL: CollectiveKind.ALL_GATHER,
    CollectiveKind.COLLECTIVE_PERMUTE: CollectiveKind.ALL_GATHER,
}


def linked_seconds(
    kind: CollectiveKind, group: Group, payload: FloatArray, cluster: ClusterSpec
) -> FloatArray:
    """Seconds of collectives among the devices that a group has in one domain.

    By the curve that was fitted for the device, the kind and the group size; without measurements
    ``latency + share x / bandwidth`` by the link.

    Args:
        kind: of the collectives.
        group: where their groups lie.
        payload: float64[T] bytes per device.
        cluster: the links.
    """
    place = "strided" if group.stride > 1 else "neighbours"
    curve = find_curve(cluster.device, kind, group.per_domain, place)
    if curve is None:
        link = cluster.device_link
        curve = Curve(link.alpha_s, ring_share(kind, group.per_domain) / link.bandwidth)
    return curve(payload)


def find_curve(device: DeviceSpec, kind: CollectiveKind, size: int, place: str) -> Curve | None:
    """The curve of a group size, by the nearest that was measured; None without measurements.

    Args:
        device: what was measured.
        kind: of the collective.
        size: of its groups.
        place: ``"neighbours"``, or ``"strided"``, which is as good where nothing else was measured
            (a switch).
    """
    curves = curves_of(device)
    for where in (place, "neighbours"):
        measured = curves.get((kind, where), {})
        if size in measured:
            return measured[size]
        if measured and where == "neighbours":
            near = min(measured, key=lambda one: abs(math.log(one / size)))
            share = ring_share(kind, size) / ring_share(kind, near)
            return measured[near].scaled(share, short_payload(kind, size))
    if kind not in _ALIKE:
        return None
    like = _ALIKE[kind]
    curve = find_curve(device, like, size, place)
    return curve and curve.scaled(ring_share(kind, size) / ring_share(like, size))
