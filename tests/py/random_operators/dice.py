"""What an operator leaves open, drawn."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np


class Dice:
    """Draws what an operator leaves open.

    Attributes:
        rng: decides while the program is traced.
        numbers: int32[8], which only the run knows; some lie outside of every dimension.
    """

    def __init__(self, rng: np.random.Generator, numbers: Any) -> None:
        self.rng = rng
        self.numbers = numbers

    def pick(self, *options: Any) -> Any:
        """One of the arguments."""
        return options[int(self.rng.integers(len(options)))]

    def coin(self) -> bool:
        """Yes or no."""
        return bool(self.rng.integers(2))

    def between(self, low: int, high: int) -> int:
        """A number of low .. high."""
        return int(self.rng.integers(low, high + 1))

    def dim(self, x: Any) -> int:
        """Any dimension of a value."""
        return self.between(0, x.ndim - 1)

    def dims(self, x: Any) -> tuple[int, ...]:
        """At least one dimension."""
        count = self.between(1, x.ndim)
        return tuple(int(i) for i in self.rng.permutation(x.ndim)[:count])

    def index(self) -> Any:
        """A number that only the run knows."""
        return self.numbers[self.between(0, 7)]

    def places(self, size: int) -> Any:
        """Indices of a dimension, a few beside it; constants, or known to the run alone."""
        count = self.pick(size, 8, 5, 1)
        if self.coin():
            return jnp.resize(self.numbers, (count,))
        return jnp.asarray(self.rng.integers(-size - 3, size + 4, count).astype(np.int32))
