"""Which numbers of micro-batches are tried where a search for stages takes long, and which not."""

from __future__ import annotations

import bisect
import enum
from collections.abc import Callable, Sequence
from typing import TypeAlias


class Outcome(enum.Enum):
    """What came of a number that was tried."""

    BEST = "the fastest so far"
    CLOSE = "proved to gain little; whether anything is open"
    SLOWER = "not faster"
    REFUSED = "does not fit"
    UNCUT = "the step cannot be cut so"


Attempt: TypeAlias = Callable[[int, float, int], Outcome]
"""Tries a number, told how many are likely to follow it, and how many may."""


def climb(counts: Sequence[int], start: int, attempt: Attempt, *, tries_all: bool = False) -> None:
    """Tries numbers of micro-batches from one on, up and down as long as they are better.

    On several hosts a search takes long, and seconds over numbers of micro-batches have one valley:
    fewer leave devices idle in the bubble, more starve them. This is a heuristic. What is proved to
    gain little says nothing of those behind it, which may gain as little again.

    Most often more of them take less memory. But one has no sums of gradients beside it, and what
    is cut into very small ones cannot be split over many devices: where none fits, all are tried.

    Args:
        counts: numbers that there are, ascending.
        start: the first is the largest that is not more.
        attempt: tries one.
        tries_all: none is left out.
    """
    middle = max(0, bisect.bisect_right(counts, start) - 1)
    upper, lower = counts[middle:], counts[:middle][::-1]
    found: list[Outcome] = []
    for number, count in enumerate(upper):
        # Up to the first that is slower, and down: one more of each is likely.
        most = len(counts) - 1 - number
        found.append(attempt(count, min(2, most), most))
        # What cannot be cut into so many cannot be cut into twice as many.
        if found[-1] is Outcome.UNCUT or (found[-1] is Outcome.SLOWER and not tries_all):
            break
    fits_none = not set(found) & {Outcome.BEST, Outcome.CLOSE, Outcome.SLOWER}
    is_first_best = found[0] is Outcome.BEST and Outcome.BEST not in found[1:]
    if not (tries_all or fits_none or is_first_best):
        return
    goes_on = {Outcome.BEST, Outcome.CLOSE}
    if fits_none:
        goes_on |= {Outcome.REFUSED, Outcome.UNCUT}
    for number, count in enumerate(lower):
        most = len(lower) - 1 - number
        outcome = attempt(count, min(1, most), most)
        if outcome not in goes_on and not tries_all:
            break
