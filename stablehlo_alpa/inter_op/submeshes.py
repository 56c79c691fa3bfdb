"""Parts of a cluster that a stage may run on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from stablehlo_alpa.cluster import Cluster, ClusterSpec, logical_mesh_shapes

# Up to twice as many hosts every number of them is tried, beyond that numbers of as many
# significant bits (heuristic).
_FINE = 8


@dataclass(frozen=True, order=True)
class Submesh:
    """A part of the cluster under a logical shape.

    Attributes:
        hosts, devices_per_host: its size.
        mesh_shape: the logical mesh laid over it.
        part: number of the part of an unlike cluster that it lies in.
    """

    hosts: int
    devices_per_host: int
    mesh_shape: tuple[int, ...]
    part: int = 0

    @property
    def num_devices(self) -> int:
        """Devices."""
        return self.hosts * self.devices_per_host


def submeshes(cluster: ClusterSpec, part: int = 0) -> list[Submesh]:
    """(1, 2^p) within a host and (n, M) over whole hosts, each under its logical shapes.

    Paper, section 5.2; Theorem 1 there: any choice of them with the right total covers the cluster.
    Over several hosts the last axis of a 2-D shape lies within a host or covers whole ones. The
    others (2 x 28 on seven hosts of eight), whose groups begin in one host and end in the next,
    are left out. This is a heuristic: a pipeline on one of them could be faster.

    Above 16 hosts not every number of them is there (see `host_counts`): a stage on one that is not
    has at most an eighth more hosts than one that is.

    Args:
        cluster: equal hosts.
        part: its number among the parts of an unlike cluster.
    """
    sizes = []
    per_host = cluster.devices_per_host
    size = 1
    while size < per_host:
        if per_host % size == 0:
            sizes.append((1, size))
        size *= 2
    sizes += [(hosts, per_host) for hosts in host_counts(cluster.num_hosts)]
    return [
        Submesh(hosts, devices, shape, part)
        for hosts, devices in sizes
        for shape in logical_mesh_shapes(hosts * devices, hosts)
        if hosts == 1 or len(shape) == 1 or _is_aligned(shape[-1], devices)
    ]


def host_counts(num_hosts: int) -> list[int]:
    """Numbers of whole hosts that a stage may have, ascending; all hosts are always among them.

    All up to 16, then multiples of 2 up to 32, of 4 up to 64 and so on: with the logarithm of the
    hosts, so that the search for stages does not grow with the cluster. Numbers up to 16 are all
    there, so any number of hosts can be covered.
    """
    found, step, hosts = [], 1, 1
    while hosts <= num_hosts:
        found.append(hosts)
        if hosts == 2 * step * _FINE:
            step *= 2
        hosts += step
    return sorted({*found, num_hosts})


def first_devices(sizes: Sequence[tuple[int, int]], cluster: Cluster) -> list[int]:
    """Where the devices of each mesh begin in a cluster.

    In their order, so that neighbours are close, where none reaches over the border of a host
    without need; otherwise largest first, by which none ever does (paper, Theorem 1). In each part
    of the cluster by itself.

    Args:
        sizes: of each mesh the number of its devices, and the part of the cluster that it is on.
        cluster: all devices.
    """
    starts = [0] * len(sizes)
    for part in range(len(cluster.parts)):
        own = [mesh for mesh, (_, other) in enumerate(sizes) if other == part]
        counts = [sizes[mesh][0] for mesh in own]
        if not _keep_within_hosts(counts, cluster.parts[part].devices_per_host):
            own.sort(key=lambda mesh: -sizes[mesh][0])
        begin = cluster.first_device(part)
        for mesh in own:
            starts[mesh] = begin
            begin += sizes[mesh][0]
    return starts


def _keep_within_hosts(counts: Sequence[int], per_host: int) -> bool:
    """Whether no mesh, one behind the other, has devices of more hosts than it need have."""
    ends = itertools.accumulate(counts)
    starts = ((end - count) % per_host for end, count in zip(ends, counts, strict=True))
    return all(
        start + count <= per_host or start == 0 for start, count in zip(starts, counts, strict=True)
    )


def _is_aligned(size: int, per_host: int) -> bool:
    return per_host % size == 0 or size % per_host == 0
