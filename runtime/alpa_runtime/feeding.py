"""Which rows of a batch the processes of a mesh need."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from alpa_runtime.plan import Plan
from alpa_runtime.program import ValueSpec


@dataclasses.dataclass(frozen=True)
class Rows:
    """The rows of every micro-batch that the devices of one process hold.

    Attributes:
        start: of the rows, within a micro-batch.
        data: array of shape [micro-batches, rows, ...].
    """

    start: int
    data: np.ndarray[Any, Any]

    def of(self, micro_batch: int, index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        """A box of a micro-batch that lies within the rows."""
        first, last, _ = index[0].indices(self.start + self.data.shape[1])
        rows = slice(first - self.start, last - self.start)
        own: np.ndarray[Any, Any] = self.data[micro_batch][(rows, *index[1:])]
        return own


def rows_per_process(plan: Plan, index: int, mesh: int, count: int) -> list[range]:
    """Rows of a micro-batch that each process of a mesh needs.

    Args:
        plan: what is run.
        index: of the input, a batch.
        mesh: number of the mesh.
        count: its processes, which hold its devices in order.

    Returns:
        per process one range that has all its rows.
    """
    needed = [range(0)] * count
    sizes = plan.sizes(mesh)
    for placement in plan.inputs[index].placements:
        if placement.mesh != mesh:
            continue
        value = plan.value(mesh, placement.buffers[0])
        for process, rows in enumerate(_rows(value, sizes, count)):
            other = needed[process]
            needed[process] = (
                range(min(rows.start, other.start), max(rows.stop, other.stop)) if other else rows
            )
    return needed


def cut_rows(array: np.ndarray[Any, Any], num_micro_batches: int, rows: range) -> Rows:
    """Some rows of every micro-batch of a batch."""
    whole = array.reshape(num_micro_batches, -1, *array.shape[1:])
    return Rows(rows.start, np.ascontiguousarray(whole[:, rows.start : rows.stop]))


def _rows(value: ValueSpec, sizes: Mapping[str, int], count: int) -> list[range]:
    tiles = value.tiles(dict(sizes))
    size = value.local_shape(dict(sizes))[0]
    width = len(tiles) // count
    found = []
    for process in range(count):
        own = [tile[0] for tile in tiles[process * width : (process + 1) * width]]
        found.append(range(min(own) * size, (max(own) + 1) * size))
    return found
