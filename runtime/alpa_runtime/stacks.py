"""Arrays of a caller that a plan has in parts: stacks of layers, each part with its layers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise
from typing import Any, cast

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from alpa_runtime.device_mesh import whole_mesh
from alpa_runtime.inputs import aval_of, fetched, without_types
from alpa_runtime.stack_operations import PartOperations

# The axis that `whole_mesh` puts before those of meshes that are alike.
_MESH_AXIS = "mesh"


@dataclasses.dataclass(frozen=True)
class Stack:
    """A flat input or output of a caller, as a plan has it.

    Attributes:
        numbers: inputs or outputs of the plan that are its parts, in order; one where it is whole.
        dim: the dimension along which the parts lie one behind the other.
        sizes: of the parts along it; empty where it is whole.
    """

    numbers: tuple[int, ...]
    dim: int = 0
    sizes: tuple[int, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the plan has it as the caller has."""
        return not self.sizes

    def whole_aval(self, parts: Sequence[jax.ShapeDtypeStruct]) -> jax.ShapeDtypeStruct:
        """Shape and dtype of what has these parts."""
        if self.is_whole:
            return parts[0]
        shape = list(parts[0].shape)
        shape[self.dim] = sum(self.sizes)
        return jax.ShapeDtypeStruct(tuple(shape), parts[0].dtype)

    def cut(self, array: Any) -> list[Any]:
        """The parts of an array, on the devices that it is on."""
        if isinstance(array, jax.Array):
            return list(jax.lax.split(without_types(array), self.sizes, self.dim))
        ends = list(accumulate(self.sizes))[:-1]
        return list(np.split(np.asarray(fetched(array)), ends, self.dim))


class StackedArray(PartOperations):
    """An array in parts on several meshes, which no sharding of jax describes.

    Elementwise operators, `sum`, `std`, `argmax` and other reductions, `astype`, `reshape` that
    leaves the layers, and `at` of a row work on the parts where they are. ``np.asarray``,
    ``jnp.asarray``, ``jax.device_get``, indices and functions of jax and numpy bring all of it to
    this process.

    Attributes:
        stack: how it is cut.
        parts: arrays, or handles of arrays on a cluster.
        aval, shape, dtype: of the whole.
    """

    key_impl = None

    def __init__(self, stack: Stack, parts: Sequence[Any]) -> None:
        """Takes the parts.

        Args:
            stack: how it is cut.
            parts: in order.
        """
        self.stack, self.parts = stack, tuple(parts)
        first = aval_of(parts[0])
        shape = list(first.shape)
        shape[stack.dim] = sum(stack.sizes)
        self.shape: tuple[int, ...] = tuple(shape)
        self.dtype = first.dtype
        weak = bool(getattr(first, "weak_type", False))
        self.aval = jax.ShapeDtypeStruct(self.shape, self.dtype, weak_type=weak)

    def of_parts(self, stack: Stack, parts: Sequence[Any]) -> StackedArray:
        """See `PartOperations`."""
        return StackedArray(stack, parts)

    def fetch(self) -> Any:
        """The whole array in this process, of numpy."""
        return np.concatenate([np.asarray(fetched(part)) for part in self.parts], self.stack.dim)

    def is_deleted(self) -> bool:
        """Whether a call that was given the array has taken a part of it."""
        return any(hasattr(part, "is_deleted") and part.is_deleted() for part in self.parts)

    def delete(self) -> None:
        """Gives the array up."""
        for part in self.parts:
            if hasattr(part, "delete"):
                part.delete()

    def block_until_ready(self) -> StackedArray:
        """Waits for the step that makes it."""
        for part in self.parts:
            if hasattr(part, "block_until_ready"):
                part.block_until_ready()
        return self

    def __repr__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"StackedArray({self.dtype}[{sizes}] in {len(self.parts)} parts)"


@dataclasses.dataclass(frozen=True)
class StackedSharding:
    """Where a `StackedArray` lies.

    Attributes:
        stack: how it is cut.
        parts: shardings of the parts.
    """

    stack: Stack
    parts: tuple[Any, ...]

    def joined(self, parts: Sequence[Any]) -> StackedArray:
        """The array of its parts."""
        return StackedArray(self.stack, parts)

    def cut(self, array: Any) -> Sequence[Any]:
        """The parts of an array, themselves where it has them."""
        if isinstance(array, StackedArray) and array.stack.sizes == self.stack.sizes:
            return array.parts
        return self.stack.cut(array)


class JoinedSharding:
    """How parts that lie alike on meshes that are alike are one array over their devices.

    Parts of one mesh are put together there, by a copy; meshes lie along the dimension of the
    parts.

    Attributes:
        sharding: of the array.
    """

    def __init__(self, stack: Stack, parts: Sequence[NamedSharding]) -> None:
        """Takes what `find` has checked."""
        self._stack = stack
        groups = [list(group) for _, group in groupby(parts, key=lambda one: one.mesh)]
        self._meshes = [group[0] for group in groups]
        ends = list(accumulate(map(len, groups), initial=0))
        self._sizes = [stack.sizes[start:end] for start, end in pairwise(ends)]
        spec = list(parts[0].spec) + [None] * (stack.dim + 1 - len(parts[0].spec))
        if len(groups) > 1:
            spec[stack.dim] = (_MESH_AXIS, *_axes(spec[stack.dim]))
        mesh = whole_mesh([cast(Mesh, one.mesh) for one in self._meshes])
        kind = parts[0].memory_kind
        self.sharding = NamedSharding(mesh, PartitionSpec(*spec), memory_kind=kind)

    @classmethod
    def find(cls, stack: Stack, parts: Sequence[Any]) -> JoinedSharding | None:
        """That of parts with these shardings; None where they are no one array of jax."""
        if not all(isinstance(one, NamedSharding) for one in parts):
            return None
        if not all(isinstance(one.mesh, Mesh) for one in parts):
            return None
        groups = [len(list(group)) for _, group in groupby(parts, key=lambda one: one.mesh)]
        meshes = list(dict.fromkeys(one.mesh for one in parts))
        ends = list(accumulate(groups, initial=0))
        rows = {sum(stack.sizes[start:end]) for start, end in pairwise(ends)}
        specs = {tuple(map(_axes, one.spec)) for one in map(_trimmed, parts)}
        shapes = {tuple(mesh.shape.items()) for mesh in meshes}
        kinds = {one.memory_kind for one in parts}
        most = max(len(rows), len(specs), len(shapes), len(kinds))
        if len(meshes) != len(groups) or most > 1:
            return None
        along = dict(enumerate(next(iter(specs)))).get(stack.dim, ())
        is_cut_again = bool(along) and max(groups) > 1
        if is_cut_again or (len(meshes) > 1 and _MESH_AXIS in meshes[0].shape):
            return None
        return cls(stack, parts)

    def joined(self, parts: Sequence[Any]) -> jax.Array:
        """The array of its parts, whose memory it takes."""
        dim, taken = self._stack.dim, iter(parts)
        own = []
        for sharding, sizes in zip(self._meshes, self._sizes, strict=True):
            group = [next(taken) for _ in sizes]
            own.append(group[0] if len(group) == 1 else _joiner(sharding, dim)(group))
        if len(own) == 1:
            only: jax.Array = own[0]
            return only
        shape = list(own[0].shape)
        shape[dim] = sum(self._stack.sizes)
        shards = [shard.data for one in own for shard in one.addressable_shards]
        return jax.make_array_from_single_device_arrays(tuple(shape), self.sharding, shards)

    def copies(self, array: Any) -> bool:
        """Whether the parts of an array that `joined` has made are copies."""
        return self._is_own(array) and any(len(sizes) > 1 for sizes in self._sizes)

    def _is_own(self, array: Any) -> bool:
        return isinstance(array, jax.Array) and array.sharding == self.sharding

    def cut(self, array: Any) -> Sequence[Any]:
        """The parts of an array; of one that `joined` has made, where they are."""
        if isinstance(array, StackedArray) and array.stack.sizes == self._stack.sizes:
            return array.parts
        if not self._is_own(array):
            return self._stack.cut(array)
        shards = {shard.device: shard.data for shard in array.addressable_shards}
        parts: list[Any] = []
        for sharding, sizes in zip(self._meshes, self._sizes, strict=True):
            shape = list(array.shape)
            shape[self._stack.dim] = sum(sizes)
            own = [shards[device] for device in sharding.mesh.devices.flat if device in shards]
            here = jax.make_array_from_single_device_arrays(tuple(shape), sharding, own)
            split = _splitter(sharding, self._stack.dim, sizes)
            parts += [here] if len(sizes) == 1 else split(here)
        return parts


@functools.lru_cache(maxsize=256)
def _joiner(sharding: NamedSharding, dim: int) -> Any:
    return jax.jit(lambda parts: jax.lax.concatenate(parts, dim), out_shardings=sharding)


@functools.lru_cache(maxsize=256)
def _splitter(sharding: NamedSharding, dim: int, sizes: tuple[int, ...]) -> Any:
    return jax.jit(lambda array: jax.lax.split(array, sizes, dim), out_shardings=sharding)


def _axes(entry: Any) -> tuple[Any, ...]:
    """Mesh axes of an entry of a spec."""
    if entry is None:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def _trimmed(sharding: NamedSharding) -> NamedSharding:
    """The same without entries at the end of the spec that say nothing."""
    entries = list(sharding.spec)
    while entries and not _axes(entries[-1]):
        entries.pop()
    return NamedSharding(sharding.mesh, PartitionSpec(*entries))
