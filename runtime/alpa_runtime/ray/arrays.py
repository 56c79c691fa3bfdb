"""Arrays that lie on the devices of a cluster, and what the driver has of them."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import PartitionSpec

from alpa_runtime.errors import InputError


@dataclasses.dataclass(frozen=True)
class MeshSharding:
    """Where an array of a cluster lies.

    Attributes:
        mesh: number of the mesh.
        mesh_axes: names and sizes of its axes.
        spec: mesh axes per dimension.
    """

    mesh: int
    mesh_axes: tuple[tuple[str, int], ...]
    spec: PartitionSpec


class DistributedArray:
    """A handle: the data stays on the devices of its mesh until someone looks at it.

    ``np.asarray``, ``float`` and ``jax.device_get`` fetch the whole array.

    Attributes:
        shape: global shape.
        dtype: dtype, as jax has it.
        key_impl: name of the PRNG implementation when the array is one of typed keys.
        sharding: where it lies.
        number: by which the processes of the mesh know it.
        owner: what runs the plan.
    """

    # numpy asks us before its own scalars take over.
    __array_priority__ = 100

    def __init__(
        self,
        number: int,
        aval: jax.ShapeDtypeStruct,
        key_impl: str | None,
        sharding: MeshSharding,
        owner: Any,
        drop: Callable[[int], None],
    ) -> None:
        """Made by what runs the plan.

        Args:
            number: by which the mesh knows the array.
            aval: shape, dtype and weak type.
            key_impl: name of the PRNG implementation when the array is one of typed keys.
            sharding: where it lies.
            owner: what runs the plan; its ``fetch`` brings the array here.
            drop: called with the number once nobody has the handle any more.
        """
        self.number, self.aval, self.sharding = number, aval, sharding
        self.key_impl = key_impl
        self.shape: tuple[int, ...] = tuple(aval.shape)
        self.dtype = aval.dtype
        self.owner = owner
        self._finalizer = weakref.finalize(self, drop, number)

    @property
    def ndim(self) -> int:
        """Dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def weak_type(self) -> bool:
        """Whether it came from a Python scalar."""
        return bool(self.aval.weak_type)

    @property
    def addressable(self) -> bool:
        """Whether this process holds the data; it never does."""
        return False

    def is_deleted(self) -> bool:
        """Whether a call was given the array and has overwritten it."""
        return not self._finalizer.alive

    def mark_deleted(self) -> None:
        """Notes that the mesh no longer keeps the array."""
        self._finalizer.detach()

    def fetch(self) -> Any:
        """The whole array in this process: numpy, or a jax array of PRNG keys."""
        if self.is_deleted():
            raise InputError(f"{self!r} was deleted: a call that donates it has taken its buffers")
        return self.owner.fetch(self)

    def block_until_ready(self) -> DistributedArray:
        """Waits for the step that makes it."""
        self.fetch()
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.fetch(), dtype=dtype, copy=copy)

    def __float__(self) -> float:
        return float(self.fetch())

    def __int__(self) -> int:
        return int(self.fetch())

    def __bool__(self) -> bool:
        return bool(self.fetch())

    def item(self) -> Any:
        """The only element, as a Python number."""
        return self.fetch().item()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.size == 1 else repr(self)

    def __repr__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"DistributedArray({self.dtype}[{sizes}] on mesh {self.sharding.mesh})"
