"""The arrays that a process of a mesh keeps for the driver, by number."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import NamedSharding

from alpa_runtime.checkpoint import Leaf, PartWriter, describe, read_part
from alpa_runtime.device_mesh import Axes, make_mesh
from alpa_runtime.keys import data_of

SnapshotEntries: TypeAlias = Mapping[int, tuple[Leaf, Axes, jax.sharding.PartitionSpec, str | None]]
"""By number of an array: where it is in a snapshot, axes of its mesh and spec."""

Parts: TypeAlias = list[tuple[tuple[slice, ...], np.ndarray[Any, Any]]]
"""Parts of an array, each with where it lies."""


@dataclasses.dataclass(frozen=True)
class Held:
    """An array that the processes of a mesh keep.

    Attributes:
        number: of the array, given by the driver.
    """

    number: int


class ArrayStore:
    """Arrays on the devices of a mesh; whichever plan has made one, any may take it."""

    def __init__(self, devices: Sequence[jax.Device], name: str) -> None:
        """An empty store.

        Args:
            devices: of the mesh, those of other processes included.
            name: of the mesh, in snapshots.
        """
        self._devices, self._name = devices, name
        self._arrays: dict[int, Any] = {}
        self._writer = PartWriter()

    def __len__(self) -> int:
        return len(self._arrays)

    def __contains__(self, number: int) -> bool:
        return number in self._arrays

    def put(self, arrays: Mapping[int, Any]) -> None:
        """Keeps arrays."""
        self._arrays.update(arrays)

    def get(self, number: int) -> Any:
        """An array, which stays."""
        return self._arrays[number]

    def take(self, number: int) -> Any:
        """An array, which is kept no longer."""
        return self._arrays.pop(number)

    def drop(self, numbers: Iterable[int]) -> None:
        """Forgets arrays, whether they are there or not."""
        for number in numbers:
            self._arrays.pop(number, None)

    def clear(self) -> None:
        """Forgets everything, and what was being written of it."""
        self._arrays.clear()
        with contextlib.suppress(Exception):
            self._writer.wait()
        self._writer = PartWriter()

    def save(self, folder: str, arrays: Mapping[str, int]) -> None:
        """Begins to write arrays, by name, as one part of a checkpoint."""
        self._writer.save(folder, {name: self._arrays[n] for name, n in arrays.items()})

    def finish_saving(self) -> None:
        """Waits until what was begun is written."""
        self._writer.wait()

    def save_all(self, folder: str) -> SnapshotEntries:
        """Begins to write everything.

        Returns:
            per array, what `load_all` needs to read it.
        """
        entries: dict[int, Any] = {}
        for number, array in self._arrays.items():
            leaf = describe("", array, self._name, f"array_{number}")
            axes = tuple(array.sharding.mesh.shape.items())
            entries[number] = (leaf, axes, array.sharding.spec, array.sharding.memory_kind)
        if entries:
            arrays = {f"array_{number}": array for number, array in self._arrays.items()}
            self._writer.save(f"{folder}/{self._name}", arrays)
        return entries

    def load_all(self, folder: str, entries: SnapshotEntries) -> None:
        """Reads what `save_all` has written, under the same numbers."""
        wanted = {
            number: (
                leaf,
                NamedSharding(make_mesh(axes, self._devices), spec, memory_kind=memory_kind),
            )
            for number, (leaf, axes, spec, memory_kind) in entries.items()
        }
        self._arrays = read_part(folder, wanted)

    def fetch(self, number: int) -> Parts:
        """The parts of an array that this process has, keys as their data, each part once."""
        array = data_of(self._arrays[number])
        return [
            (shard.index, np.asarray(shard.data))
            for shard in array.addressable_shards
            if shard.replica_id == 0
        ]
