"""The processes that ``jax.distributed`` joins, where they have to do one thing together."""

from __future__ import annotations

import importlib

import jax
import numpy as np

# As long as orbax waits for its own. Seconds.
_PATIENCE_S = 1200


class Peers:
    """All processes that run this program; alone, every method returns at once.

    Attributes:
        number: of this process.
        is_lead: whether it is the one that acts for all.
    """

    def __init__(self) -> None:
        """Asks jax."""
        self.number, self._count = jax.process_index(), jax.process_count()
        self.is_lead = self.number == 0

    def told_by_lead(self, text: str) -> str:
        """What the lead calls this with; all call it in the order of their computations."""
        if self._count == 1:
            return text
        utils = importlib.import_module("jax.experimental.multihost_utils")
        size = int(utils.broadcast_one_to_all(np.int32(len(text.encode()))))
        buffer = np.zeros(size, np.uint8)
        if self.is_lead:
            buffer[:] = np.frombuffer(text.encode(), np.uint8)
        told: bytes = np.asarray(utils.broadcast_one_to_all(buffer)).tobytes()
        return told.decode()

    def are_all(self, is_so: bool) -> list[bool]:
        """What each process calls this with; in the order of their computations, likewise."""
        if self._count == 1:
            return [is_so]
        utils = importlib.import_module("jax.experimental.multihost_utils")
        found = np.asarray(utils.process_allgather(np.array([is_so])))
        return [bool(one) for one in found.reshape(-1)]

    def meet(self, place: str) -> None:
        """Waits for all; from any thread.

        Args:
            place: names the meeting, once in the life of the processes.
        """
        if self._count > 1:
            # jax meets on devices only, which other threads must not compute on in between.
            multihost = importlib.import_module("orbax.checkpoint.multihost")
            multihost.get_barrier_sync_fn()(key=place, timeout_ms=1000 * _PATIENCE_S)
