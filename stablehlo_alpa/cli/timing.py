"""Steps that are run and timed, each with the state that the one before has left."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import alpa_runtime
import jax


class Stepper:
    """A plan on its devices, and what its next step takes.

    Attributes:
        executable: what runs it.
        compile_s: wall-clock seconds of compilation.
        results: of the last step, one per flat output.
    """

    def __init__(
        self,
        executable: alpa_runtime.Executable,
        arguments: Sequence[Any],
        next_values: Mapping[int, int],
    ) -> None:
        """Compiles.

        Args:
            executable: what runs the plan.
            arguments: arrays of the host, one per flat input.
            next_values: by number of an output the input whose next value it is.
        """
        self.executable, self.results = executable, ()
        self._given, self._next_values = list(arguments), next_values
        start = time.perf_counter()
        executable.compile()
        self.compile_s = time.perf_counter() - start

    results: tuple[Any, ...]

    def step(self) -> float:
        """Runs a step; returns its wall-clock seconds, without those of bringing inputs there."""
        fed = [
            array if _is_there(array) else self.executable.feed(index, array)
            for index, array in enumerate(self._given)
        ]
        start = time.perf_counter()
        self.results = self.executable(*fed)
        for one in self.results:
            one.block_until_ready()
        spent_s = time.perf_counter() - start
        for output, index in self._next_values.items():
            self._given[index] = self.results[output]
        return spent_s


def _is_there(array: Any) -> bool:
    """Whether it is a key or a result of the step before, which goes in as it is."""
    return isinstance(array, jax.Array) or hasattr(array, "fetch")
