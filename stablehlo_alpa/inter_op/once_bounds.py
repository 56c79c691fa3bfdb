r"""A bound on the latency of all pipelines that tells apart what stages spend once per step.

With seconds ``f`` per micro-batch and ``o`` of those that are spent once per step and shared out
over B micro-batches, a step takes ``sum_s t_s + (B - 1) (max_s f_s + max_s o_s)``, ``t = f + o``.
A bound on ``t`` alone lets updates be shared out into the bubbles of faster stages (Eq. 2 of the
paper). Here the largest ``o`` is enumerated instead: pipelines that spend between ``a`` and ``b``
once take at least::

    min { sum_s t_s + (B - 1) max_s f_s } + (B - 1) a      where o_s <= b

which the programme over stages gives for bounds on ``t`` and on ``f`` under ``o <= b``
(`RangeBounds.often`). The stages that the least bound of all intervals is made of are given
better ones, then the interval is halved, until it is narrow and nothing changes: that least bound
is one of all pipelines.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from stablehlo_alpa.inter_op.stage_search import StageSearchResult

# Intervals are halved down to this part of a step, and the programme runs so often at most for them
# (heuristics). Counted, not timed: a search on a busy machine proves the same.
_NARROW = 2e-3
_MAX_RUNS = 200
# What is raised by less than this, as a part of it, is not.
_RELATIVE = 1e-7


class OnceBounds:
    """Intervals of what the dearest update of a pipeline takes, with a bound of each."""

    def __init__(
        self,
        num_micro_batches: int,
        search: Callable[[float], StageSearchResult | None],
        sharpen: Callable[[StageSearchResult, float], bool],
    ) -> None:
        """Nothing is known yet.

        Args:
            num_micro_batches: B.
            search: the least of ``sum t + (B - 1) max f`` where so much at most is spent once
                (seconds of a step, shared out); None where there is no pipeline.
            sharpen: gives stages better bounds there; False where they have the best.
        """
        self._weight = num_micro_batches - 1
        self._search, self._sharpen = search, sharpen
        # By least bound: the bound, and the ends of the interval. Seconds.
        self._intervals: list[tuple[float, float, float]] = []
        self._runs = 0

    def bound_s(self, least_s: float, best_s: float, enough_s: float) -> float:
        """No pipeline takes less. Seconds of a step.

        Args:
            least_s: a bound that is known.
            best_s: a pipeline that is known; what spends so much once is no better.
            enough_s: a bound that is good enough.
        """
        if self._weight == 0:
            return least_s
        if not self._intervals:
            self._intervals = [(least_s, 0.0, best_s / self._weight)]
        while self._intervals[0][0] < enough_s and self._runs < _MAX_RUNS:
            if not self._raise(best_s):
                break
        return min(best_s, max(least_s, self._intervals[0][0]))

    def _raise(self, best_s: float) -> bool:
        """Looks at the interval of the least bound; False where nothing more is to be had of it."""
        bound_s, low_s, high_s = heapq.heappop(self._intervals)
        found = self._search(high_s)
        self._runs += 1
        own_s = best_s if found is None else found.latency_s + self._weight * low_s
        raised_s = min(best_s, max(bound_s, own_s))
        width = self._weight * (high_s - low_s) / best_s
        parts, is_more = [(low_s, high_s)], raised_s > bound_s * (1 + _RELATIVE)
        if not is_more and found is not None:
            is_more = self._sharpen(found, high_s)
        if not is_more and width > _NARROW:
            middle_s = (low_s + high_s) / 2
            parts, is_more = [(low_s, middle_s), (middle_s, high_s)], True
        for low_s, high_s in parts:
            heapq.heappush(self._intervals, (raised_s, low_s, high_s))
        return is_more
