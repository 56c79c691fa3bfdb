"""What the driver knows of the arrays on a cluster."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

from alpa_runtime.ray.arrays import ArrayType, DistributedArray


class Handles:
    """Numbers arrays, and learns when nobody has a handle of one any more.

    Attributes:
        scalars: by number, values that came with a step.
    """

    def __init__(self) -> None:
        """There are no arrays yet."""
        self.scalars: dict[int, Any] = {}
        self._next = 0
        self._held: set[int] = set()
        # By mesh, in any thread.
        self._dropped: defaultdict[int, deque[int]] = defaultdict(deque)

    def make(self, kind: ArrayType, owner: Any) -> DistributedArray:
        """A handle of a new array."""
        number = self._next
        self._next += 1
        self._held.add(number)
        # Handles go anywhere, also where an interrupt comes: no more than this is done there.
        return DistributedArray(number, kind, owner, self._dropped[kind.sharding.mesh].append)

    def give_away(self, array: DistributedArray, meshes: Sequence[int]) -> None:
        """Notes that a step was given an array for good.

        Args:
            array: which.
            meshes: those that were to have it. Where it was kept it was taken; if it was elsewhere,
                they got copies, and it is needed no more where it is.
        """
        if array.sharding.mesh in meshes:
            array.mark_deleted()
            self._forget(array.number)
        else:
            array.delete()

    def note_scalars(self, found: Mapping[int, Any]) -> None:
        """Keeps values of arrays that somebody has a handle of."""
        self.scalars.update((n, value) for n, value in found.items() if n in self._held)

    def take_dropped(self, mesh: int) -> tuple[int, ...]:
        """Numbers of arrays that the processes of a mesh need keep no longer; each once."""
        dropped = self._dropped[mesh]
        taken = tuple(dropped.popleft() for _ in range(len(dropped)))
        for number in taken:
            self._forget(number)
        return taken

    def _forget(self, number: int) -> None:
        """Notes that nobody has a handle of an array any more."""
        self._held.discard(number)
        self.scalars.pop(number, None)
