"""Clusters of hosts and the logical meshes laid over their devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stablehlo_alpa.cluster.device import DeviceSpec, Link
from stablehlo_alpa.errors import MeshError

AXIS_NAMES = ("x", "y", "z")


def _positive(what: str, shape: Sequence[int]) -> None:
    if not shape or any(n < 1 for n in shape):
        raise MeshError(f"{what} must have at least one axis, all sizes >= 1, got {tuple(shape)}")


@dataclass(frozen=True)
class LogicalMesh:
    """Named axes over devices, each with its link.

    Attributes:
        axis_names: one name per axis, all different.
        shape: devices along each axis.
        links: link of each axis, as one device of a group along that axis sees it.
    """

    axis_names: tuple[str, ...]
    shape: tuple[int, ...]
    links: tuple[Link, ...]

    def __post_init__(self) -> None:
        _positive("mesh", self.shape)
        if not len(self.axis_names) == len(self.shape) == len(self.links):
            raise MeshError(
                f"mesh needs one name and one link per axis, got {len(self.axis_names)} names and "
                f"{len(self.links)} links for {len(self.shape)} axes"
            )
        if len(set(self.axis_names)) != len(self.axis_names):
            raise MeshError(f"mesh axis names must differ, got {self.axis_names}")

    @property
    def num_devices(self) -> int:
        """Devices of the mesh."""
        return math.prod(self.shape)

    @property
    def axes(self) -> list[tuple[str, int]]:
        """``(name, size)`` of every axis, as the compiler takes a mesh."""
        return list(zip(self.axis_names, self.shape, strict=True))

    @property
    def pass_option(self) -> str:
        """The mesh as a pass option, ``x:2,y:4``."""
        return ",".join(f"{name}:{size}" for name, size in self.axes)


@dataclass(frozen=True)
class ClusterSpec:
    """Equal hosts of equal devices.

    Attributes:
        device: the device.
        num_hosts: hosts.
        devices_per_host: devices of each host.
    """

    device: DeviceSpec
    num_hosts: int = 1
    devices_per_host: int = 1

    def __post_init__(self) -> None:
        _positive("cluster", (self.num_hosts, self.devices_per_host))

    @property
    def num_devices(self) -> int:
        """Devices of the cluster."""
        return self.num_hosts * self.devices_per_host

    def logical_mesh(
        self, shape: Sequence[int], axis_names: Sequence[str] | None = None
    ) -> LogicalMesh:
        """Lays a mesh of ``shape`` over the devices, row-major, hosts outermost.

        The groups of an axis with stride ``t`` hold ``min(n, devices_per_host / t)`` devices of a
        host; when they reach over hosts, the other groups of the host share its network link.

        Raises:
            MeshError: the shape does not hold as many devices as the cluster.
        """
        shape = tuple(int(n) for n in shape)
        _positive("mesh", shape)
        if math.prod(shape) != self.num_devices:
            raise MeshError(
                f"mesh {shape} must hold the {self.num_devices} devices of the cluster "
                f"({self.num_hosts} hosts of {self.devices_per_host}), it holds {math.prod(shape)}"
            )
        if axis_names is None:
            names = AXIS_NAMES if len(shape) <= 3 else tuple(f"x{i}" for i in range(len(shape)))
            axis_names = names[: len(shape)]
        links = []
        stride = math.prod(shape)
        for size in shape:
            stride //= size
            links.append(self._axis_link(size, stride))
        return LogicalMesh(tuple(axis_names), shape, tuple(links))

    def _axis_link(self, size: int, stride: int) -> Link:
        inside, wire = self.device.intra_host, self.device.inter_host
        if self.num_hosts == 1 or size == 1:
            return inside
        if self.devices_per_host % (size * stride) == 0:
            return inside
        members = max(1, min(size, self.devices_per_host // stride))
        groups = max(1, self.devices_per_host // members)
        return Link(
            max(inside.alpha_s, wire.alpha_s), min(inside.bandwidth, wire.bandwidth / groups)
        )


def logical_mesh_shapes(num_devices: int, num_hosts: int = 1) -> list[tuple[int, ...]]:
    """The 1-D shape and all 2-D factorisations with both sizes above one.

    On one host the links of both axes are equal, so of ``(a, b)`` and ``(b, a)`` only the one with
    the smaller first size is kept.

    Example:
        ``logical_mesh_shapes(8) == [(8,), (2, 4)]`` and
        ``logical_mesh_shapes(8, num_hosts=2) == [(8,), (2, 4), (4, 2)]``.
    """
    if num_devices < 1 or num_hosts < 1 or num_devices % num_hosts:
        raise MeshError(f"{num_devices} devices cannot be spread evenly over {num_hosts} hosts")
    shapes: list[tuple[int, ...]] = [(num_devices,)]
    for first in range(2, num_devices):
        second, rest = divmod(num_devices, first)
        if rest == 0 and second > 1 and (num_hosts > 1 or first <= second):
            shapes.append((first, second))
    return shapes
