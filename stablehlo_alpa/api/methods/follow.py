"""Shardings that the inputs have already."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from stablehlo_alpa.api.methods.method import Method
from stablehlo_alpa.errors import MeshError, ShardingError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.option_checks import checked_axis_names, settle
from stablehlo_alpa.planning import Near, Prescription


@dataclass(frozen=True)
class FollowedMesh:
    """A mesh that inputs lie on.

    Attributes:
        axes: names and sizes.
        devices: of this process, flattened; None where there are none.
        number: of the mesh in the session of a cluster; None in this process.
    """

    axes: tuple[tuple[str, int], ...]
    devices: tuple[jax.Device, ...] | None
    number: int | None = None

    @classmethod
    def of(cls, sharding: Any) -> FollowedMesh | None:
        """The mesh of a sharding; None of one that names no mesh."""
        if isinstance(sharding, NamedSharding):
            mesh = sharding.mesh
            is_there = isinstance(mesh, jax.sharding.Mesh)
            devices = tuple(mesh.devices.flat) if is_there else None
            return cls(tuple(mesh.shape.items()), devices)
        if hasattr(sharding, "mesh_axes"):
            return cls(tuple(sharding.mesh_axes), None, sharding.mesh)
        return None

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(name for name, _ in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(size for _, size in self.axes)

    def __str__(self) -> str:
        ids = [device.id for device in self.devices or ()]
        return f"{dict(self.axes)}" + (f" of devices {ids}" if ids else "")


@dataclass(frozen=True)
class FollowParallel(Method):
    """Inputs keep the shardings that they have, on the meshes that they lie on.

    Arrays with other shardings, or on another mesh, get a plan of their own. The state of a
    pipeline lies on several meshes: its stages are those of the function as well.

    Attributes:
        flat_specs: per flat input its sharding, None for arrays that have none; filled in from the
            arrays of a call.
        names: names of the axes of their mesh.
        devices: of their mesh, flattened; None where they lie on an abstract one.
        meshes: the meshes, where there are several.
        flat_meshes: per flat input the number of its mesh.
    """

    flat_specs: tuple[PartitionSpec | None, ...] = ()
    names: tuple[str, ...] | None = None
    devices: tuple[jax.Device, ...] | None = None
    meshes: tuple[FollowedMesh, ...] = ()
    flat_meshes: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, checked_axis_names, "names", is_optional=True)

    @property
    def follows_inputs(self) -> bool:
        """It does."""
        return True

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        """Those of the mesh of the inputs."""
        return self.names

    def mesh_shapes(self, num_devices: int, num_hosts: int) -> tuple[tuple[int, ...], ...]:
        """The mesh of the inputs."""
        return (self.mesh_shape or (num_devices,),)

    def bind(self, flat: Sequence[Any]) -> Method:
        """Reads mesh and shardings off the inputs."""
        shardings = [getattr(leaf, "sharding", None) for leaf in flat]
        placed = [None if s is None else FollowedMesh.of(s) for s in shardings]
        meshes = tuple(dict.fromkeys(mesh for mesh in placed if mesh is not None))
        if not meshes:
            raise ShardingError(
                "no input of a function that follows its inputs has a NamedSharding, pass arrays "
                "(or ShapeDtypeStructs) that are sharded already"
            )
        specs = tuple(
            None if s is None or mesh is None else s.spec
            for s, mesh in zip(shardings, placed, strict=True)
        )
        if len(meshes) > 1:
            _check_apart(meshes)
            numbers = tuple(None if mesh is None else meshes.index(mesh) for mesh in placed)
            return replace(self, flat_specs=specs, meshes=meshes, flat_meshes=numbers)
        (mesh,) = meshes
        return replace(
            self,
            mesh_shape=mesh.shape,
            flat_specs=specs,
            names=mesh.axis_names,
            devices=mesh.devices,
        )

    def prescription(self, program: TracedProgram) -> Prescription:
        """Every input that came with a sharding keeps it, where the program allows that."""
        return Prescription(
            inputs={i: Near(spec) for i, spec in enumerate(self.flat_specs) if spec is not None}
        )


def _check_apart(meshes: Sequence[FollowedMesh]) -> None:
    """Meshes of one function are the submeshes of a pipeline."""
    for one, other in itertools.combinations(meshes, 2):
        is_apart = one.number is not None and other.number is not None
        if one.devices is not None and other.devices is not None:
            is_apart = not set(one.devices) & set(other.devices)
        if not is_apart:
            raise MeshError(
                f"inputs lie on different meshes with devices in common: {one} and {other}; bring "
                "them to one with jax.device_put"
            )
    longest = max((mesh.axis_names for mesh in meshes), key=len)
    for mesh in meshes:
        if mesh.axis_names != longest[: len(mesh.axis_names)]:
            raise MeshError(
                f"inputs lie on meshes whose axes have different names: {longest} and "
                f"{mesh.axis_names}; bring them to meshes with equal names with "
                "jax.device_put"
            )
