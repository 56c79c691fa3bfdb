"""Seconds of what goes from one mesh of a cluster to another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stablehlo_alpa.cluster import Cluster, ClusterSpec, UnlikeCluster
from stablehlo_alpa.cost.kinds import CollectiveKind
from stablehlo_alpa.cost.links import find_curve
from stablehlo_alpa.cost.network import find_reached


def transfer_seconds(loads: Mapping[tuple[int, int], float], cluster: Cluster) -> float:
    """Seconds of messages that are sent at a time.

    Inside of a host, a rack or a torus the device with most to send or to receive decides; between
    them, and between parts of an unlike cluster, the host whose network has most to carry, all its
    devices sharing it.

    Args:
        loads: (sender, receiver), numbers of devices in the cluster, to bytes.
        cluster: the links.
    """
    if isinstance(cluster, UnlikeCluster):
        return _among_parts(loads, cluster)
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


def _among_parts(loads: Mapping[tuple[int, int], float], cluster: UnlikeCluster) -> float:
    """Seconds of messages within parts and between them."""
    found = [0.0]
    by_parts: dict[tuple[int, int], dict[tuple[int, int], float]] = {}
    for (sender, receiver), size in loads.items():
        pair = cluster.part_of(sender), cluster.part_of(receiver)
        own = tuple(
            device - cluster.first_device(part)
            for device, part in zip((sender, receiver), pair, strict=True)
        )
        by_parts.setdefault(pair, {})[own[0], own[1]] = size
    for pair, own_loads in by_parts.items():
        if pair[0] == pair[1]:
            found.append(transfer_seconds(own_loads, cluster.parts[pair[0]]))
            continue
        busy: dict[tuple[int, int], float] = {}
        for ends, size in own_loads.items():
            for side, (device, part) in enumerate(zip(ends, pair, strict=True)):
                host = device // cluster.parts[part].devices_per_host
                busy[side, host] = busy.get((side, host), 0.0) + size
        found.append(between_seconds(max(busy.values()), cluster, *pair))
    return max(found)


def between_seconds(size: float, cluster: UnlikeCluster, source: int, target: int) -> float:
    """Seconds in which a host of one part sends bytes to hosts of another.

    Latency and bandwidth are the link's; of the bandwidth is reached what the worse of the two
    kinds of hosts reaches of a network.

    Args:
        size: bytes.
        cluster: the parts.
        source: number of the part that sends.
        target: of the part that receives.
    """
    kind, link = CollectiveKind.COLLECTIVE_PERMUTE, cluster.between
    ends = (find_reached(cluster.parts[part].device, kind) for part in (source, target))
    efficiency = min(1.0 if end is None else end.efficiency for end in ends)
    return link.alpha_s + size / (link.bandwidth * efficiency)


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
