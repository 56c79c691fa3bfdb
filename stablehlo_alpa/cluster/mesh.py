"""The logical meshes that are laid over the devices of a cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from stablehlo_alpa.cluster.groups import Group, group_of, positions
from stablehlo_alpa.errors import MeshError

if TYPE_CHECKING:
    from stablehlo_alpa.cluster.spec import ClusterSpec

AXIS_NAMES = ("x", "y", "z")


@dataclass(frozen=True)
class LogicalMesh:
    """Named axes over the devices of a cluster, row-major, hosts outermost.

    Attributes:
        axis_names: one name per axis, all different.
        shape: devices along each axis.
        cluster: whose devices they are.
    """

    axis_names: tuple[str, ...]
    shape: tuple[int, ...]
    cluster: ClusterSpec

    def __post_init__(self) -> None:
        check_sizes("mesh", self.shape)
        if len(self.axis_names) != len(self.shape):
            raise MeshError(
                f"mesh needs one name per axis, got {len(self.axis_names)} names for "
                f"{len(self.shape)} axes"
            )
        if len(set(self.axis_names)) != len(self.axis_names):
            raise MeshError(f"mesh axis names must differ, got {self.axis_names}")
        if self.num_devices != self.cluster.num_devices:
            raise MeshError(
                f"mesh {self.shape} must hold the {self.cluster.num_devices} devices of the "
                f"cluster ({self.cluster.num_hosts} hosts of {self.cluster.devices_per_host}), it "
                f"holds {self.num_devices}"
            )

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

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Per mask of axes (bit i: axis i takes part) where the groups of its collectives lie."""
        cluster = self.cluster
        torus = () if cluster.torus is None else cluster.torus.axes
        return tuple(
            group_of(
                positions(self.shape, mask),
                cluster.devices_per_domain,
                cluster.devices_per_host,
                torus,
            )
            for mask in range(1 << len(self.shape))
        )


def check_sizes(what: str, shape: Sequence[int]) -> None:
    """Raises ``MeshError`` unless all sizes are positive."""
    if not shape or any(n < 1 for n in shape):
        raise MeshError(f"{what} must have at least one axis, all sizes >= 1, got {tuple(shape)}")


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
