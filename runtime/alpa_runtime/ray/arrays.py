"""Arrays that lie on the devices of a cluster, and what the driver has of them."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import numpy as np
from jax.sharding import PartitionSpec, Sharding

from alpa_runtime.errors import InputError
from alpa_runtime.fetched import FetchedOperations
from alpa_runtime.host_memory import HOST
from alpa_runtime.keys import data_of, key_shape, with_impl
from alpa_runtime.plan import Plan
from alpa_runtime.program import ValueSpec


@dataclasses.dataclass(frozen=True)
class MeshSharding(Sharding):
    """Where an array of a cluster lies.

    To functions of jax it says that the array is on one device and may be taken to another: it is
    fetched to where it is needed.

    Attributes:
        mesh: number of the mesh in the session, by its devices.
        mesh_axes: names and sizes of its axes.
        spec: mesh axes per dimension.
        memory_kind: of its devices, or of their host.
    """

    mesh: int
    mesh_axes: tuple[tuple[str, int], ...]
    spec: PartitionSpec
    memory_kind: str = "device"

    # jax asks this of shardings before it makes an array like another: these devices are not here.
    _is_concrete: ClassVar[bool] = False

    @property
    def num_devices(self) -> int:
        """Devices that hold the array for jax."""
        return 1


@dataclasses.dataclass(frozen=True)
class ArrayType:
    """What an array of a cluster is.

    Attributes:
        aval: shape, dtype and weak type, PRNG keys as keys.
        key_impl: name of the PRNG implementation when it is an array of typed keys.
        sharding: where it lies.
    """

    aval: jax.ShapeDtypeStruct
    key_impl: str | None
    sharding: MeshSharding


def input_type(plan: Plan, index: int, meshes: Sequence[int]) -> ArrayType:
    """What a flat input of a step is where it is kept.

    Args:
        plan: of the step.
        index: of the input.
        meshes: per mesh of the plan its number in the session.
    """
    fed = plan.inputs[index]
    mesh, held = 0, fed.value
    if fed.placements:
        mesh = fed.placements[0].mesh
        held = plan.value(mesh, fed.placements[0].buffers[0])
    return ArrayType(fed.value.aval({}), held.key_impl, _sharding(plan, mesh, held, meshes))


def output_type(plan: Plan, index: int, meshes: Sequence[int]) -> ArrayType:
    """What a flat output of a step is; see `input_type`."""
    out = plan.outputs[index]
    value = plan.origin(out.mesh, out.buffer)
    aval = value.aval(plan.sizes(out.mesh))
    return ArrayType(aval, value.key_impl, _sharding(plan, out.mesh, value, meshes))


def _sharding(plan: Plan, mesh: int, value: ValueSpec, meshes: Sequence[int]) -> MeshSharding:
    kind = HOST if value.is_on_host else MeshSharding.memory_kind
    return MeshSharding(meshes[mesh], plan.meshes[mesh].axes, value.logical_spec, kind)


class DistributedArray(FetchedOperations):
    """A handle: the data stays on the devices of its mesh until someone looks at it.

    Functions of jax and numpy, ``float``, operators, indices, copies and the methods that a
    ``jax.Array`` has (``x.mean()``, ``x.at[0].set(1)``) fetch the whole array, and compute in this
    process. Functions of ``jax.random`` take what ``jax.device_get`` makes of a handle of keys.

    Attributes:
        shape: global shape.
        dtype: dtype, as jax has it.
        key_impl: name of the PRNG implementation when the array is one of typed keys.
        sharding: where it lies.
        number: by which the processes of the mesh know it.
        owner: the session.
    """

    # jax asks this of arguments that have a sharding.
    _committed: ClassVar[bool] = False

    def __init__(
        self,
        number: int,
        kind: ArrayType,
        owner: Any,
        drop: Callable[[int], object],
    ) -> None:
        """Made by the session.

        Args:
            number: by which the mesh knows the array.
            kind: what it is, and where it lies.
            owner: the session; its ``fetch`` brings the array here.
            drop: called with the number once nobody has the handle any more.
        """
        self.number, self.aval, self.sharding = number, kind.aval, kind.sharding
        self.key_impl = kind.key_impl
        self.shape: tuple[int, ...] = tuple(kind.aval.shape)
        self.dtype = kind.aval.dtype
        self.owner = owner
        self._finalizer = weakref.finalize(self, drop, number)

    @property
    def addressable(self) -> bool:
        """Whether this process holds the data; it never does."""
        return False

    def is_deleted(self) -> bool:
        """Whether a call was given the array and has overwritten it."""
        return not self._finalizer.alive

    def delete(self) -> None:
        """Gives the array up, as if nobody had the handle any more."""
        self._finalizer()

    def mark_deleted(self) -> None:
        """Notes that the mesh no longer keeps the array."""
        self._finalizer.detach()

    def fetch(self) -> Any:
        """The whole array in this process: numpy, or a jax array of PRNG keys."""
        return self.owner.fetch(self)

    def check_alive(self) -> None:
        """Refuses an array that is gone, as an `InputError`."""
        if self.is_deleted():
            raise InputError(f"{self!r} was deleted: a call that donates it has taken its buffers")

    def assemble(self, parts: Sequence[tuple[tuple[slice, ...], Any]]) -> Any:
        """The whole array of its parts, each with where it lies; PRNG keys as their data."""
        if self.key_impl is None:
            whole = np.zeros(self.shape, self.dtype)
        else:
            whole = np.zeros((*self.shape, *key_shape(self.key_impl)), np.uint32)
        for index, part in parts:
            whole[index] = part
        if self.key_impl is None:
            return whole
        return with_impl(jax.numpy.asarray(whole), self.key_impl)

    def block_until_ready(self) -> DistributedArray:
        """Waits for the step that makes it."""
        self.fetch()
        return self

    def __reduce__(self) -> Any:
        """A copy, or what is read of a file, is an array of the process that it is in."""
        return _copied, (np.asarray(data_of(self.fetch())), self.key_impl)

    def __repr__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"DistributedArray({self.dtype}[{sizes}] on mesh {self.sharding.mesh})"


def _copied(data: Any, impl: str | None) -> Any:
    return with_impl(jax.numpy.asarray(data), impl)
