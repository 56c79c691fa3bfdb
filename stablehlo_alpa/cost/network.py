"""Seconds of collectives whose groups reach over hosts."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.cluster import ClusterSpec, DeviceSpec, Group
from stablehlo_alpa.cost.fits import fit_rows
from stablehlo_alpa.cost.kinds import CollectiveKind, FloatArray
from stablehlo_alpa.cost.links import linked_seconds


@dataclass(frozen=True)
class Reached:
    """What a kind of collective reaches of a network.

    Attributes:
        hop_s: seconds of a step between hosts.
        efficiency: share of the bandwidth.
        per_root_s: seconds per square root of the bytes that a host sends.
    """

    hop_s: float
    efficiency: float = 1.0
    per_root_s: float = 0.0


@functools.cache
def networks_of(device: DeviceSpec) -> Mapping[CollectiveKind, Reached]:
    """By kind what was reached on the hosts that a device was measured in."""
    return {
        CollectiveKind[row["kind"].upper()]: Reached(
            float(row["hop_s"]),
            float(row["efficiency"]),
            float(row.get("per_root_s", Reached.per_root_s)),
        )
        for row in fit_rows("network", device)
    }


def find_reached(device: DeviceSpec, kind: CollectiveKind) -> Reached | None:
    """What a kind reaches, or else gathers, or reductions; None without measurements."""
    reached = networks_of(device)
    for like in (kind, CollectiveKind.ALL_GATHER, CollectiveKind.ALL_REDUCE):
        if like in reached:
            return reached[like]
    return None


def host_traffic(kind: CollectiveKind, group: Group) -> float:
    """Bytes that a group sends out of a domain, per byte of payload.

    With h domains of m devices, n = h m: all-reduce reduces inside first, ``2 (h - 1) / h``; the
    ring of an all-gather or a reduce-scatter leaves a domain once, ``(n - 1) / n``; all-to-all,
    ``m (n - m) / n``; permutes at worst send all that the domain has, ``m``.
    """
    n, h, m = group.size, group.num_domains, group.per_domain
    match kind:
        case CollectiveKind.ALL_REDUCE:
            return 2 * (h - 1) / h
        case CollectiveKind.ALL_GATHER | CollectiveKind.REDUCE_SCATTER:
            return (n - 1) / n
        case CollectiveKind.ALL_TO_ALL:
            return m * (n - m) / n
    return float(m)


def num_hops(kind: CollectiveKind, group: Group) -> float:
    """Steps between domains that wait for each other: trees of reductions, rings otherwise."""
    match kind:
        case CollectiveKind.ALL_REDUCE:
            return 2 * math.ceil(math.log2(group.num_domains))
        case CollectiveKind.ALL_GATHER | CollectiveKind.REDUCE_SCATTER:
            return group.num_domains - 1
    return 1.0


def network_seconds(
    kind: CollectiveKind, group: Group, payload: FloatArray, cluster: ClusterSpec
) -> FloatArray:
    """Seconds of collectives across hosts: hops, and the slower of links and network.

    Args:
        kind: of the collectives.
        group: where their groups lie.
        payload: float64[T] bytes per device.
        cluster: the links.
    """
    network = cluster.host_network
    reached = find_reached(cluster.device, kind) or Reached(network.alpha_s)
    bandwidth = network.bandwidth * group.hosts / group.sharing * reached.efficiency
    sent = host_traffic(kind, group) * payload
    outside = sent / bandwidth + reached.per_root_s * np.sqrt(sent)
    inside = np.zeros(payload.shape)
    if group.per_domain > 1 and kind is not CollectiveKind.COLLECTIVE_PERMUTE:
        share = group.per_domain / group.size if kind is CollectiveKind.ALL_TO_ALL else 1.0
        inside = linked_seconds(kind, group, share * payload, cluster)
    return num_hops(kind, group) * reached.hop_s + np.maximum(inside, outside)
