"""What a mesh holds over a step, by kind of buffer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from alpa_runtime.buffer_memory import BufferMemory
from alpa_runtime.plan import Plan


@dataclasses.dataclass(frozen=True)
class Held:
    """What a device of a mesh holds for a while.

    Attributes:
        start_s, end_s: from when until when; both are one where something only came in.
        bytes: of buffers by kind; the last entry is what the program that runs needs inside.
    """

    start_s: float
    end_s: float
    bytes: tuple[float, ...]


class KindMemory(BufferMemory):
    """Bytes per device of the buffers of a mesh, by kind.

    Attributes:
        held: what was noted, in order.
    """

    def __init__(self, plan: Plan, mesh: int, kinds: Sequence[int], num_kinds: int) -> None:
        """The inputs of the step are there.

        Args:
            plan: what is run.
            mesh: number of the mesh.
            kinds: per buffer a number from 0 on.
            num_kinds: of all meshes.
        """
        self._kinds = kinds
        self._by_kind = [0.0] * num_kinds
        self.held: list[Held] = []
        super().__init__(plan, mesh)

    def fill(self, buffer: int) -> None:
        """See `BufferMemory`."""
        before = self._now
        super().fill(buffer)
        self._by_kind[self._kinds[buffer]] += self._now - before

    def free(self, buffers: Sequence[int]) -> None:
        """See `BufferMemory`."""
        for buffer in buffers:
            before = self._now
            super().free((buffer,))
            self._by_kind[self._kinds[buffer]] += self._now - before

    def note(self, start_s: float, end_s: float, inside: float) -> None:
        """Notes what is held now, and inside of a program beside it."""
        self.held.append(Held(start_s, end_s, (*self._by_kind, inside)))
