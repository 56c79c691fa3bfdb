"""Cutting what a device sends out of its shard, and putting together what a device receives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from alpa_runtime.context import staged
from alpa_runtime.host_memory import is_away
from alpa_runtime.program import numpy_dtype
from alpa_runtime.resharding import Piece, Resharding


class Packer:
    """Makes the pieces of a value, each on the device that sends it."""

    def __init__(
        self, resharding: Resharding, local_shape: tuple[int, ...], *, copies: bool = False
    ) -> None:
        """Prepares the pieces of a value.

        Args:
            resharding: the pieces; sources count the devices of this process.
            local_shape: of the value's shards.
            copies: whether a piece that is a whole shard is copied, so that it outlives the value.
        """
        self._count = len(resharding.pieces)
        self._senders: list[tuple[int, tuple[int, ...], Callable[..., Any] | None]] = []
        for sender in sorted({piece.source for piece in resharding.pieces}):
            numbers = tuple(i for i, p in enumerate(resharding.pieces) if p.source == sender)
            boxes = tuple(
                (resharding.pieces[i].source_offset, resharding.pieces[i].shape) for i in numbers
            )
            is_whole = not copies and all(shape == local_shape for _, shape in boxes)
            self._senders.append((sender, numbers, None if is_whole else _cutter(boxes)))

    def __call__(self, array: jax.Array) -> list[jax.Array]:
        """The pieces, in the order of the resharding."""
        pieces: list[Any] = [None] * self._count
        for sender, numbers, cut in self._senders:
            shard = _shard_on(array, sender)
            made = [shard] * len(numbers) if cut is None else cut(shard)
            for number, piece in zip(numbers, made, strict=True):
                pieces[number] = piece
        return pieces


class Lander:
    """Makes a value of pieces that lie on the devices that receive them."""

    def __init__(
        self,
        resharding: Resharding,
        shape: tuple[int, ...],
        dtype: str,
        sharding: NamedSharding,
        devices: Sequence[jax.Device] | None = None,
    ) -> None:
        """Prepares the value.

        Args:
            resharding: the pieces; targets count the devices of this process.
            shape: of the value.
            dtype: of the value.
            sharding: of the value.
            devices: those of this process; all of the mesh by default.
        """
        self._shape, self._dtype, self._sharding = shape, numpy_dtype(dtype), sharding
        # Pieces come to the devices, and what lies on the host is put there as a whole.
        self._landing = sharding.with_memory_kind("device") if is_away(sharding) else sharding
        self._local = sharding.shard_shape(shape)
        devices = list(sharding.mesh.devices.flat) if devices is None else devices
        self._shards: list[tuple[tuple[int, ...], Callable[..., Any] | None]] = []
        for position, device in enumerate(devices):
            numbers = tuple(i for i, p in enumerate(resharding.pieces) if p.target == position)
            own = tuple(resharding.pieces[i] for i in numbers)
            self._shards.append((numbers, self._maker(own, device)))

    def __call__(self, pieces: Sequence[jax.Array]) -> jax.Array:
        """The value; pieces in the order of the resharding."""
        shards = [
            pieces[numbers[0]] if make is None else make(*[pieces[i] for i in numbers])
            for numbers, make in self._shards
        ]
        found = jax.make_array_from_single_device_arrays(self._shape, self._landing, shards)
        return found if self._landing is self._sharding else jax.device_put(found, self._sharding)

    def _maker(self, own: tuple[Piece, ...], device: jax.Device) -> Callable[..., Any] | None:
        if len(own) == 1 and own[0].shape == self._local:
            return None
        if not own:
            # Nothing of an uneven split is left for this device.
            with _as_wide_as_programs():
                empty = jax.device_put(np.zeros(self._local, self._dtype), device)
            return lambda: empty
        return _joiner(tuple(p.target_offset for p in own), self._local, self._dtype)


def _as_wide_as_programs() -> AbstractContextManager[None]:
    """Programs have elements of 64 bits, of positions for example, without the user's x64."""
    context: AbstractContextManager[None] = jax.enable_x64(True)
    return context


def _shard_on(array: jax.Array, position: int) -> jax.Array:
    """What a device of this process has of an array."""
    if array.is_fully_replicated:
        # Here `addressable_data` returns the first device's, whichever is asked for.
        shard: jax.Array = array.addressable_shards[position].data
        return shard
    return array.addressable_data(position)


@functools.lru_cache(maxsize=1024)
def _cutter(boxes: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]) -> Callable[..., Any]:
    """A function that cuts boxes (offset, shape) out of a shard."""

    def cut(shard: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(
            jax.lax.slice(shard, at, [a + size for a, size in zip(at, shape, strict=True)])
            for at, shape in boxes
        )

    return jax.jit(cut)


@functools.lru_cache(maxsize=1024)
def _joiner(
    offsets: tuple[tuple[int, ...], ...], local_shape: tuple[int, ...], dtype: Any
) -> Callable[..., Any]:
    """A function that puts pieces into a shard of zeros."""

    @staged
    def join(*pieces: jax.Array) -> jax.Array:
        with _as_wide_as_programs():
            shard = jnp.zeros(local_shape, dtype)
        for at, piece in zip(offsets, pieces, strict=True):
            # A scalar fills a shard of one element.
            box = piece.reshape(local_shape) if piece.ndim != shard.ndim else piece
            shard = jax.lax.dynamic_update_slice(shard, box, at)
        return shard

    return jax.jit(join)
