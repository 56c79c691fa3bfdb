"""Shardings that XLA proposes, on the mesh of the program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

Entries = tuple[tuple[str, ...], ...]
"""Per dimension of an array the mesh axes that split it, major first."""


def proposed_entries(mesh: Mesh, value: jax.ShapeDtypeStruct) -> Entries:
    """Per dimension the mesh axes by which XLA proposes to split it.

    XLA may split a dimension by a part of an axis (two of the eight blocks of an axis of 8, where a
    dimension of 16 was split and is seen as 2 x 8), which no ``PartitionSpec`` says. Such a
    dimension counts as whole: XLA reshards it at the border.

    Args:
        mesh: of the program.
        value: with a sharding.
    """
    rank = len(value.shape)
    if value.sharding is None:
        return ((),) * rank
    proposed: Any = value.sharding._to_xla_hlo_sharding(rank)
    tiles = _Tiles.of(proposed, rank)
    return ((),) * rank if tiles is None else tuple(tiles.axes(mesh, d) for d in range(rank))


@dataclass(frozen=True)
class _Tiles:
    """Where the block of every device lies.

    Attributes:
        coordinates: int[rank, devices], of the block along every dimension.
        counts: blocks along every dimension.
    """

    coordinates: Any
    counts: tuple[int, ...]

    @classmethod
    def of(cls, sharding: Any, rank: int) -> _Tiles | None:
        """Of XLA's sharding of an array; None of one that does not split it."""
        if sharding.is_replicated() or sharding.is_manual() or sharding.is_unreduced():
            return None
        sizes: Sequence[int] = sharding.tile_assignment_dimensions()
        if len(sizes) < rank:
            return None
        places = np.argsort(np.asarray(sharding.tile_assignment_devices()))
        blocks = np.stack(np.unravel_index(places, sizes))
        return cls(blocks[:rank], tuple(sizes[:rank]))

    def axes(self, mesh: Mesh, dimension: int) -> tuple[str, ...]:
        """The mesh axes that split a dimension; none where it is whole or split otherwise."""
        count = self.counts[dimension]
        shape = tuple(mesh.shape.values())
        if count == 1 or self.coordinates.shape[1] != math.prod(shape):
            return ()
        where = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape))
        wide = [axis for axis, size in enumerate(shape) if size > 1]
        for number in range(1, len(wide) + 1):
            for chosen in itertools.permutations(wide, number):
                sizes = [shape[axis] for axis in chosen]
                if math.prod(sizes) == count and np.array_equal(
                    np.ravel_multi_index(tuple(where[axis] for axis in chosen), sizes),
                    self.coordinates[dimension],
                ):
                    return tuple(mesh.axis_names[axis] for axis in chosen)
        return ()
