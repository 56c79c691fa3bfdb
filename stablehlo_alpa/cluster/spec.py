"""Clusters: hosts, their devices, and the links of every level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stablehlo_alpa.cluster.device import DeviceSpec, Link
from stablehlo_alpa.cluster.mesh import AXIS_NAMES, LogicalMesh, check_sizes
from stablehlo_alpa.cluster.overlap import Overlap
from stablehlo_alpa.errors import MeshError


@dataclass(frozen=True)
class Torus:
    """Devices in a grid whose neighbours are linked, numbered row-major.

    Attributes:
        shape: devices along each axis.
        closed: per axis whether the last device is linked to the first.
    """

    shape: tuple[int, ...]
    closed: tuple[bool, ...]

    def __post_init__(self) -> None:
        check_sizes("torus", self.shape)
        if len(self.closed) != len(self.shape):
            raise MeshError(f"torus {self.shape} needs {len(self.shape)} closed, got {self.closed}")

    @property
    def axes(self) -> tuple[tuple[int, bool], ...]:
        """Size and whether it is closed, of every axis."""
        return tuple(zip(self.shape, self.closed, strict=True))

    def part(self, size: int) -> Torus:
        """The first ``size`` devices, a box where the sizes allow it; an axis cut is open."""
        shape: list[int] = []
        closed: list[bool] = []
        rest = size
        for length, is_closed in reversed(self.axes):
            taken = math.gcd(rest, length)
            rest //= taken
            shape.insert(0, taken)
            closed.insert(0, is_closed and taken == length)
        if rest > 1:
            raise MeshError(
                f"{size} devices are no part of a torus {'x'.join(map(str, self.shape))}"
            )
        return Torus(tuple(shape), tuple(closed))


@dataclass(frozen=True)
class ClusterSpec:
    """Equal hosts of equal devices, which need not exist, and the links between them.

    Attributes:
        device: the device.
        num_hosts: hosts.
        devices_per_host: devices of each host.
        host_link: of a device to the others of its host, or to its neighbours on a torus; by
            default what the device usually has.
        network: of a whole host to the other hosts, shared by its devices; by default likewise.
        hosts_per_rack: hosts whose devices are linked as those of one host are (NVL72: 18).
        torus: the grid of its devices, where they are linked in one.
        overlap: what of the communication runs beside computation; None for nothing.

    Example:
        >>> ClusterSpec.preset("p4d.24xlarge:4")
        >>> ClusterSpec(preset_for("h100-80gb"), num_hosts=2, devices_per_host=8)
    """

    device: DeviceSpec
    num_hosts: int = 1
    devices_per_host: int = 1
    host_link: Link | None = None
    network: Link | None = None
    hosts_per_rack: int = 1
    torus: Torus | None = None
    overlap: Overlap | None = None

    def __post_init__(self) -> None:
        check_sizes("cluster", (self.num_hosts, self.devices_per_host))
        if self.hosts_per_rack < 1:
            raise MeshError(f"hosts_per_rack must be >= 1, got {self.hosts_per_rack}")
        if self.torus is not None and math.prod(self.torus.shape) != self.num_devices:
            raise MeshError(
                f"torus {'x'.join(map(str, self.torus.shape))} has {math.prod(self.torus.shape)} "
                f"devices, the cluster has {self.num_devices}"
            )
        object.__setattr__(self, "host_link", self.host_link or self.device.intra_host)
        object.__setattr__(self, "network", self.network or self.device.inter_host)

    @classmethod
    def preset(cls, name: str) -> ClusterSpec:
        """A cluster of machines by name, ``"p4d.24xlarge:4"``; `MACHINES` and TPU slices.

        Raises:
            MeshError: there is no such machine, or its number is none.
        """
        from stablehlo_alpa.cluster.machines import cluster_named

        return cluster_named(name)

    @classmethod
    def read(cls, path: str | Path) -> ClusterSpec:
        """The cluster that a TOML file describes.

        Raises:
            MeshError: something is missing in the file, or makes no cluster.
            OSError: the file cannot be read.
        """
        from stablehlo_alpa.cluster.file import parse_cluster

        found = parse_cluster(Path(path).read_text(encoding="utf-8"), str(path))
        if not isinstance(found, ClusterSpec):
            raise MeshError(f"{path} has [[parts]] of unlike hosts: UnlikeCluster.read it")
        return found

    def write(self, path: str | Path) -> None:
        """Writes a file that `read` makes the same cluster of."""
        from stablehlo_alpa.cluster.file import format_cluster

        Path(path).write_text(format_cluster(self), encoding="utf-8")

    @property
    def num_devices(self) -> int:
        """Devices of the cluster."""
        return self.num_hosts * self.devices_per_host

    @property
    def parts(self) -> tuple[ClusterSpec, ...]:
        """Itself: it is one part, where an `UnlikeCluster` has several."""
        return (self,)

    def first_device(self, part: int) -> int:
        """Position of its first device."""
        return 0

    @property
    def devices_per_domain(self) -> int:
        """Devices that are linked without the network: those of a host, a rack or a torus."""
        if self.torus is not None:
            return self.num_devices
        return self.devices_per_host * min(self.hosts_per_rack, self.num_hosts)

    @property
    def device_link(self) -> Link:
        """Of a device to the others of its domain."""
        return self.host_link or self.device.intra_host

    @property
    def host_network(self) -> Link:
        """Of a whole host to the others."""
        return self.network or self.device.inter_host

    def part(self, num_hosts: int, devices_per_host: int) -> ClusterSpec:
        """Its first hosts, or the first devices of one of them."""
        torus = self.torus and self.torus.part(num_hosts * devices_per_host)
        return replace(self, num_hosts=num_hosts, devices_per_host=devices_per_host, torus=torus)

    def logical_mesh(
        self, shape: Sequence[int], axis_names: Sequence[str] | None = None
    ) -> LogicalMesh:
        """Lays a mesh of ``shape`` over the devices, row-major, hosts outermost.

        Raises:
            MeshError: the shape does not hold as many devices as the cluster.
        """
        shape = tuple(int(n) for n in shape)
        if axis_names is None:
            names = AXIS_NAMES if len(shape) <= 3 else tuple(f"x{i}" for i in range(len(shape)))
            axis_names = names[: len(shape)]
        return LogicalMesh(tuple(axis_names), shape, self)
