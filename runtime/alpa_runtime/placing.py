"""Brings the inputs of a step to the meshes of this process that need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding

from alpa_runtime.inputs import fetched, without_types
from alpa_runtime.plan import Plan


class Placer:
    """Puts inputs, whole or cut into micro-batches, into buffers."""

    def __init__(
        self, plan: Plan, shardings: Sequence[Sequence[NamedSharding]], unread: NamedSharding
    ) -> None:
        """Takes a plan, per mesh and buffer where its value lies, and where unread inputs lie."""
        self._plan, self._shardings, self._unread = plan, shardings, unread
        self._cut_here = jax.jit(jax.numpy.split, static_argnums=1)

    def sharding(self, index: int) -> NamedSharding:
        """The sharding of an input on the mesh that keeps it."""
        placements = self._plan.inputs[index].placements
        if not placements:
            return self._unread
        return self._shardings[placements[0].mesh][placements[0].buffers[0]]

    def place(self, index: int, array: Any) -> dict[tuple[int, int], jax.Array]:
        """An input by mesh and buffer: those that hold it, or its micro-batches."""
        return {
            (mesh, buffer): put(part, self._shardings[mesh][buffer])
            for (mesh, buffer), part in self.parts(index, array)
        }

    def parts(self, index: int, array: Any) -> Iterator[tuple[tuple[int, int], Any]]:
        """The same where it is, each with its mesh and buffer."""
        for placement in self._plan.inputs[index].placements:
            count = len(placement.buffers)
            parts = self._cut(array, count) if placement.is_cut else [array]
            for buffer, part in zip(placement.buffers, parts, strict=True):
                yield (placement.mesh, buffer), part

    def _cut(self, array: Any, count: int) -> Sequence[Any]:
        """The micro-batches of a batch, or the parts of updates."""
        if not isinstance(array, jax.Array):
            return np.split(np.asarray(fetched(array)), count)
        parts: Sequence[Any] = self._cut_here(without_types(array), count)
        return parts


def put(array: Any, sharding: NamedSharding) -> jax.Array:
    """An array on a mesh, itself if it is there already."""
    if isinstance(array, jax.Array) and (
        array.sharding == sharding or array.sharding.is_equivalent_to(sharding, array.ndim)
    ):
        return array
    return jax.device_put(fetched(array), sharding)
