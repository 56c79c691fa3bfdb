"""A per-device program and the global values that go in and come out, as plain data."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from alpa_runtime.errors import ProgramError
from alpa_runtime.host_memory import HOST, ON_HOST
from alpa_runtime.keys import key_dtype, key_shape

DimSharding = tuple[tuple[str, ...], ...]
"""Per tensor dimension the mesh axes that split it, major first; () leaves it whole."""


TensorType = tuple[tuple[int, ...], str]
"""Shape and dtype name of a tensor."""


@dataclasses.dataclass(frozen=True)
class ValueSpec:
    """One input or output: what it is globally, and how the mesh holds it.

    Attributes:
        shape: global shape of the array that the program sees. For PRNG keys this is the shape of
            the key data, whose last dimensions are those of one key.
        dtype: numpy-style name of the element type, e.g. ``"float32"`` or ``"bfloat16"``.
        axes: per dimension the mesh axes that split it, major first.
        key_impl: name of the PRNG implementation when the value is an array of typed keys.
        is_weak: whether the value has a weak type (it came from a Python scalar).
        name: what messages call the value.
        partial: mesh axes over which the value is still to be summed. The array that holds it has
            a leading dimension with one summand per device of these axes.
        is_on_host: whether it lies in the memory of the host, beside each device that has a part.
    """

    shape: tuple[int, ...]
    dtype: str
    axes: DimSharding
    key_impl: str | None = None
    is_weak: bool = False
    name: str = ""
    partial: tuple[str, ...] = ()
    is_on_host: bool = False

    def __post_init__(self) -> None:
        if len(self.axes) != len(self.shape):
            raise ProgramError(
                f"{self.name or 'value'}: the sharding names {len(self.axes)} dimensions, "
                f"the shape {self.shape} has {len(self.shape)}"
            )

    @property
    def spec(self) -> PartitionSpec:
        """The sharding as jax writes it, without trailing ``None``."""
        entries: list[str | tuple[str, ...] | None] = [
            None if not axes else axes[0] if len(axes) == 1 else axes for axes in self.axes
        ]
        if self.partial:
            entries.insert(0, self.partial)
        while entries and entries[-1] is None:
            entries.pop()
        return PartitionSpec(*entries)

    @property
    def logical_spec(self) -> PartitionSpec:
        """The sharding of the array that the caller sees, in which a key is one element."""
        rank = len(self.logical_shape) + bool(self.partial)
        return PartitionSpec(*tuple(self.spec)[:rank])

    def sharding(self, mesh: Mesh) -> NamedSharding:
        """Where the array that the caller sees lies on a mesh."""
        kind = HOST if self.is_on_host else None
        return NamedSharding(mesh, self.logical_spec, memory_kind=kind)

    @property
    def logical_shape(self) -> tuple[int, ...]:
        """The shape that the caller sees, in which a key is one element."""
        if self.key_impl is None:
            return self.shape
        return self.shape[: len(self.shape) - len(key_shape(self.key_impl))]

    def array_shape(self, mesh: dict[str, int]) -> tuple[int, ...]:
        """The shape of the global array on ``mesh``, the summands of a partial value in front."""
        if not self.partial:
            return self.logical_shape
        return (math.prod(mesh[axis] for axis in self.partial), *self.logical_shape)

    def aval(self, mesh: dict[str, int]) -> jax.ShapeDtypeStruct:
        """Shape, dtype, weak type and memory of the global array on ``mesh``, keys as keys."""
        dtype = numpy_dtype(self.dtype) if self.key_impl is None else key_dtype(self.key_impl)
        where = ON_HOST if self.is_on_host else None
        shape, is_weak = self.array_shape(mesh), self.is_weak and self.key_impl is None
        return jax.ShapeDtypeStruct(shape, dtype, weak_type=is_weak, sharding=where)

    def local_shape(self, mesh: dict[str, int]) -> tuple[int, ...]:
        """The shape that one device of ``mesh`` (axis name to size) holds.

        That of its summand, without a leading dimension, when the value is partial.
        """
        try:
            return _local_shape(self.shape, self.axes, self.partial, tuple(mesh.items()))
        except ValueError as error:
            raise ProgramError(f"{self.name or 'value'}: {error}") from None

    def tiles(self, mesh: dict[str, int]) -> list[tuple[int, ...]]:
        """Per device of ``mesh``, in order, the index of its tile in every dimension."""
        names = list(mesh)
        found = []
        for coordinates in itertools.product(*(range(size) for size in mesh.values())):
            at = dict(zip(names, coordinates, strict=True))
            tile = []
            for axes in self.axes:
                index = 0
                for axis in axes:
                    index = index * mesh[axis] + at[axis]
                tile.append(index)
            found.append(tuple(tile))
        return found

    def held_bytes(self, mesh: dict[str, int]) -> int:
        """Bytes of its own memory that one device of ``mesh`` has for it."""
        return 0 if self.is_on_host else self.local_bytes(mesh)

    def local_bytes(self, mesh: dict[str, int]) -> int:
        """Bytes of the part of one device of ``mesh``."""
        return math.prod(self.local_shape(mesh)) * numpy_dtype(self.dtype).itemsize


@functools.lru_cache(maxsize=4096)
def _local_shape(
    shape: tuple[int, ...],
    sharding: DimSharding,
    partial: tuple[str, ...],
    mesh: tuple[tuple[str, int], ...],
) -> tuple[int, ...]:
    """See `ValueSpec.local_shape`; the values of equal layers are equal.

    Raises:
        ValueError: the mesh does not have the axes, or they do not divide the shape.
    """
    sizes, seen = dict(mesh), set(partial)
    local = []
    for dimension, (size, axes) in enumerate(zip(shape, sharding, strict=True)):
        for axis in axes:
            if axis not in sizes:
                raise ValueError(
                    f"dimension {dimension} is split on axis {axis!r}, the mesh has {list(sizes)}"
                )
            if axis in seen:
                raise ValueError(f"axis {axis!r} splits more than one dimension")
            seen.add(axis)
        parts = math.prod(sizes[axis] for axis in axes)
        if size % parts:
            raise ValueError(
                f"dimension {dimension} of size {size} does not "
                f"divide into {parts} parts (axes {', '.join(axes)})"
            )
        local.append(size // parts)
    return tuple(local)


@dataclasses.dataclass(frozen=True, eq=False)
class HostFunction:
    """A function of the host that a program calls (``custom_call @alpa_callback``).

    Attributes:
        name: what messages call it.
        call: takes flat operands, arrays on the CPU, and returns flat results.
        operands, results: their shapes and dtype names; of typed PRNG keys those of their data.
        key_impls: per operand the PRNG implementation of typed keys.
    """

    name: str
    call: Callable[..., Sequence[Any]]
    operands: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    key_impls: tuple[str | None, ...]


@dataclasses.dataclass(frozen=True)
class SpmdProgram:
    """A program of the devices of one mesh.

    Attributes:
        text: StableHLO (or CHLO) module in the local view: the function ``main`` takes and returns
            what one device holds, and communicates through explicit collectives whose replica
            groups are positions in the flattened mesh (``channel_handle`` and
            ``use_global_device_ids`` set).
        mesh: axis names and sizes, the first axis being the outermost in the order of devices.
        inputs: one entry per argument of ``main``.
        outputs: one entry per result of ``main``.
        donated: inputs whose buffers the program may overwrite.
        name: what profiles and messages call the program.
        is_global: the text is the program of the whole arrays instead, with shardings that XLA's
            partitioner follows.
        callbacks: functions of the host that the text calls, by number. They are of this process:
            no part of what the program is, and not saved with it.
    """

    text: str
    mesh: tuple[tuple[str, int], ...]
    inputs: tuple[ValueSpec, ...]
    outputs: tuple[ValueSpec, ...]
    donated: tuple[int, ...] = ()
    name: str = "program"
    is_global: bool = False
    callbacks: tuple[HostFunction, ...] = dataclasses.field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [axis for axis, _ in self.mesh]
        if len(set(names)) != len(names):
            raise ProgramError(f"{self.name}: mesh axes {names} are not distinct")
        for axis, size in self.mesh:
            if size < 1:
                raise ProgramError(f"{self.name}: mesh axis {axis!r} has size {size}, at least 1")
        for index in self.donated:
            if not 0 <= index < len(self.inputs):
                raise ProgramError(
                    f"{self.name}: donated input {index} is out of range, "
                    f"there are {len(self.inputs)} inputs"
                )
        sizes = self.mesh_sizes
        for value in (*self.inputs, *self.outputs):
            value.local_shape(sizes)

    @property
    def mesh_sizes(self) -> dict[str, int]:
        """Mesh axis name to size."""
        return dict(self.mesh)

    def seen_shape(self, value: ValueSpec) -> tuple[int, ...]:
        """The shape that the text has for an input or output."""
        return value.shape if self.is_global else value.local_shape(self.mesh_sizes)

    @property
    def num_devices(self) -> int:
        """How many devices the mesh has."""
        return math.prod(size for _, size in self.mesh)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that decides what is compiled."""
        described = dataclasses.replace(self, text="")
        content = repr(described).encode() + b"\0" + self.text.encode()
        return hashlib.sha256(content).hexdigest()


def weakened(array: jax.Array) -> jax.Array:
    """The same array with a weak type; no operation is performed."""
    return jax.lax.convert_element_type_p.bind(
        array, new_dtype=array.dtype, weak_type=True, sharding=None
    )


def numpy_dtype(name: str) -> np.dtype:
    """The dtype called ``name``, with jax's extended floating-point types."""
    # jax registers its extension types (bfloat16, float8 ...) with numpy at import.
    return np.dtype(name)
