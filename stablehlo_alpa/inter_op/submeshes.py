"""Parts of a cluster that a stage may run on."""

from __future__ import annotations

from dataclasses import dataclass

from stablehlo_alpa.cluster import ClusterSpec, logical_mesh_shapes


@dataclass(frozen=True, order=True)
class Submesh:
    """A part of the cluster under a logical shape.

    Attributes:
        hosts, devices_per_host: its size.
        mesh_shape: the logical mesh laid over it.
    """

    hosts: int
    devices_per_host: int
    mesh_shape: tuple[int, ...]

    @property
    def num_devices(self) -> int:
        """Devices."""
        return self.hosts * self.devices_per_host


def submeshes(cluster: ClusterSpec) -> list[Submesh]:
    """(1, 2^p) within a host and (n, M) over whole hosts, each under its logical shapes.

    Paper, section 5.2; Theorem 1 there: any choice of them with the right total covers the cluster.
    Over several hosts the last axis of a 2-D shape lies within a host or covers whole ones. The
    others (2 x 28 on seven hosts of eight), whose groups begin in one host and end in the next,
    are left out. This is a heuristic: a pipeline on one of them could be faster.
    """
    sizes = []
    per_host = cluster.devices_per_host
    size = 1
    while size < per_host:
        if per_host % size == 0:
            sizes.append((1, size))
        size *= 2
    sizes += [(hosts, per_host) for hosts in range(1, cluster.num_hosts + 1)]
    return [
        Submesh(hosts, devices, shape)
        for hosts, devices in sizes
        for shape in logical_mesh_shapes(hosts * devices, hosts)
        if hosts == 1 or len(shape) == 1 or _is_aligned(shape[-1], devices)
    ]


def _is_aligned(size: int, per_host: int) -> bool:
    return per_host % size == 0 or size % per_host == 0
