"""How long a search goes on, by what it has measured so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from stablehlo_alpa.units import format_seconds


@dataclass
class Forecast:
    """Seconds that are left of a search over candidates, each of which is searched by itself.

    What does not fit is told quickly, and what fits is searched to its end: before the first that
    fits more is left than what those before it needed says. Behind it a candidate is taken to need
    what it and those behind it needed in the mean, and one with more computed again, of which many
    do not fit, what all did.

    Attributes:
        clock: seconds.
        likely: candidates that are likely to follow the running one.
        again: that are likely to follow those with more computed again.
        most: all that may follow.
    """

    clock: Callable[[], float] = time.monotonic
    likely: float = 0.0
    again: float = 0.0
    most: int = 0
    _spent_s: list[float] = field(default_factory=list)
    _first_fitting: int | None = None
    _begin_s: float | None = None

    @contextmanager
    def candidate(self) -> Iterator[None]:
        """Around the search of one candidate."""
        self._begin_s = self.clock()
        try:
            yield
        finally:
            self._spent_s.append(self.clock() - self._begin_s)
            self._begin_s = None

    def fits(self) -> None:
        """To be told of a candidate that fits, while it runs."""
        if self._first_fitting is None:
            self._first_fitting = len(self._spent_s)

    @property
    def is_low(self) -> bool:
        """Whether more is left than `left_s` says: nothing that fits has ended yet."""
        first = self._first_fitting
        return first is None or first >= len(self._spent_s)

    @property
    def left_s(self) -> float | None:
        """Seconds that are likely to be left; None where no candidate has ended."""
        if not self._spent_s:
            return None
        first = 0 if self.is_low else self._first_fitting
        mean_s, since_s = _mean(self._spent_s), _mean(self._spent_s[first:])
        left_s = self.likely * since_s + self.again * mean_s
        if self._begin_s is not None:
            left_s += max(0.0, since_s - (self.clock() - self._begin_s))
        return left_s

    def __str__(self) -> str:
        """For who watches: ``"; candidate 3 of at most 11, about 12 s left"``."""
        number, left_s = len(self._spent_s) + 1, self.left_s
        if left_s is None:
            return ""
        more = " or more" if self.is_low else ""
        left = f"about {format_seconds(round(left_s))}{more} left"
        return f"; candidate {number} of at most {number + self.most}, {left}"


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def likely_counts(following: int, slower: int, patience: int, *, is_found: bool) -> float:
    """Numbers of micro-batches that are likely to be tried, of those that may follow.

    Once there is a plan the search ends with the ``patience``-th in a row that is slower; before,
    any of those that follow may be the first that fits: half of them, in the mean, are not.

    Args:
        following: that may follow.
        slower: that were slower in a row.
        patience: after which it ends.
        is_found: whether there is a plan.
    """
    refused = 0.0 if is_found else following / 2
    return min(float(following), refused + max(0, patience - slower))
