"""The exact solver's tables, to share between stages that are solved in threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from stablehlo_alpa.inter_op.threads import num_threads
from stablehlo_alpa.intra_op import SolverCache


class SolverCaches:
    """As many as there are threads: the solver keeps others from a cache while it uses it.

    What is found does not depend on which of them it was found with.
    """

    def __init__(self) -> None:
        """All are empty."""
        self._free: SimpleQueue[SolverCache] = SimpleQueue()
        for _ in range(num_threads()):
            self._free.put(SolverCache())

    @contextmanager
    def one(self) -> Iterator[SolverCache]:
        """A cache that no other thread has."""
        cache = self._free.get()
        try:
            yield cache
        finally:
            self._free.put(cache)
