"""Seconds of what goes from one mesh of a cluster to another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.cost.kinds import CollectiveKind
from stablehlo_alpa.cost.links import find_curve
from stablehlo_alpa.cost.network import find_reached


def transfer_seconds(loads: Mapping[tuple[int, int], float], cluster: ClusterSpec) -> float:
    """Seconds of messages that are sent at a time.

    Inside of a host, a rack or a torus the device with most to send or to receive decides; between
    them the host whose network has most to carry, all its devices sharing it.

    Args:
        loads: (sender, receiver), numbers of devices in the cluster, to bytes.
        cluster: the links.
    """
    inside: dict[tuple[str, int], float] = {}
    outside: dict[tuple[str, int], float] = {}
    for (sender, receiver), size in loads.items():
        is_linked = sender // cluster.devices_per_domain == receiver // cluster.devices_per_domain
        width = 1 if is_linked else cluster.devices_per_host
        busy = inside if is_linked else outside
        for key in (("sends", sender // width), ("receives", receiver // width)):
            busy[key] = busy.get(key, 0.0) + size
    linked = link_seconds(max(inside.values()), cluster) if inside else 0.0
    return max(linked, network_transfer_seconds(max(outside.values()), cluster) if outside else 0.0)


def link_seconds(size: float, cluster: ClusterSpec) -> float:
    """Seconds in which a device sends bytes to another that it is linked to."""
    link = cluster.device_link
    curve = find_curve(cluster.device, CollectiveKind.COLLECTIVE_PERMUTE, 2, "neighbours")
    if curve is None:
        return link.alpha_s + size / link.bandwidth
    return float(curve(np.array([size]))[0])


def network_transfer_seconds(size: float, cluster: ClusterSpec) -> float:
    """Seconds in which a host sends bytes to others."""
    network = cluster.host_network
    reached = find_reached(cluster.device, CollectiveKind.COLLECTIVE_PERMUTE)
    if reached is None:
        return network.alpha_s + size / network.bandwidth
    latency = reached.hop_s or network.alpha_s
    return latency + size / (network.bandwidth * reached.efficiency)
