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

    What is left of the running candidate and those that are likely to follow take as long as those
    before did in the mean. Before the first of them has ended nothing is known, and nothing said.

    Attributes:
        clock: seconds.
        likely: candidates that are likely to follow the running one.
        most: candidates that may follow it.
    """

    clock: Callable[[], float] = time.monotonic
    likely: float = 0.0
    most: int = 0
    _spent_s: list[float] = field(default_factory=list)
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

    @property
    def left_s(self) -> float | None:
        """Seconds that are likely to be left; None where none has ended."""
        return self._seconds(self.likely)

    @property
    def most_s(self) -> float | None:
        """The same if all candidates follow that may."""
        return self._seconds(self.most)

    def _seconds(self, following: float) -> float | None:
        if not self._spent_s:
            return None
        mean_s = sum(self._spent_s) / len(self._spent_s)
        ran_s = 0.0 if self._begin_s is None else self.clock() - self._begin_s
        running_s = 0.0 if self._begin_s is None else max(0.0, mean_s - ran_s)
        return running_s + following * mean_s

    def __str__(self) -> str:
        """For who watches: ``"; candidate 3, about 12 s left, at most 40 s"``."""
        left_s, most_s = self.left_s, self.most_s
        if left_s is None or most_s is None:
            return ""
        text = f"; candidate {len(self._spent_s) + 1}, about {format_seconds(round(left_s))} left"
        most_s = round(most_s)
        return text if most_s <= round(left_s) else f"{text}, at most {format_seconds(most_s)}"


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
