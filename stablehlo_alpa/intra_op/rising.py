"""A price of memory that rises until a plan is within the budget."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost.strategy_graph import Int
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.exact import Minimum, minimize
from stablehlo_alpa.intra_op.ilp import TOLERANCE
from stablehlo_alpa.intra_op.lagrangian import check_undercuts, paid
from stablehlo_alpa.intra_op.memory import MemoryModel
from stablehlo_alpa.intra_op.work import Work

_log = logging.getLogger(__name__)

# The first price of memory, as a part of a plan's seconds for its budget, by how much it rises, and
# how often until no plan is expected within the budget; seconds of work for each (heuristics).
_FIRST_PRICE, _RISE, _RISES, _RISE_S = 0.1, 4.0, 12, 0.6
# By how much a price rises first whose points are known, and what that is multiplied with each time
# (heuristic).
_RISE_KNOWN = 1.5
# A peak of so many times the budget raises the price, though it is at another point (heuristic):
# the layers of a model have as many points that are nearly as full.
_FAR = 1.2
# After so many prices in a row that take away less than the part of it, bytes alone are asked for
# (heuristics).
_STILL, _MOVED = 3, 0.05
# A peak that is as high as the one before, to this part of it, is that of another of many equal
# layers (heuristic).
_EQUAL = 1e-5


@dataclass(eq=False)
class Rising:
    """Looks for a plan within a budget by a price of memory that rises.

    Unlike weights alone it weighs what is gathered, which depends on two operators. Priced are the
    points where the plans so far keep the most; where it was priced before, under another budget,
    first those that were, and the price rises by less. Where the price no longer takes anything
    away, bytes alone say whether anything fits.

    Every price bounds the seconds of all plans within the budget. Where these are to undercut some
    and do not, no plan is needed to say so.

    Attributes:
        costs: the strategies that may be chosen.
        memory: their bytes.
        free: int64[N] places of a plan without the budget.
        budget: bytes per device.
        cache: the exact solver's tables.
        work: what may be done.
        first_price: seconds per byte at the peak, where it is roughly known.
        most_s: seconds that a plan must undercut.
        shares: by point that was priced under another budget its part of the price; empty where
            none is known.
        met: int64[N] places of the plans; the last is within the budget, if any is.
        price: that is asked for next, or led to the last where that is within the budget. Seconds
            per byte.
        bound: bytes that no plan's peak is below, as far as was asked.
    """

    costs: Costs
    memory: MemoryModel
    free: Int
    budget: float
    cache: SolverCache
    work: Work
    first_price: float | None = None
    most_s: float = np.inf
    shares: Mapping[int, float] = field(default_factory=dict)
    met: list[Int] = field(default_factory=list)
    price: float = 0.0
    bound: float = 0.0
    # What is priced, and by how much in relation to each other.
    _weights: dict[int, float] = field(default_factory=dict)
    _factor: float = _RISE
    # Bytes of the last plan, their point, and what the plan before was over the budget.
    _peak: float = 0.0
    _point: int = -1
    _before: float = np.inf

    def __post_init__(self) -> None:
        """Nothing is asked for yet."""
        self.met.append(self.free)
        self._peak, self._point = self._peak_of(self.free)
        points = set(self.memory.points.tolist())
        self._weights = {point: part for point, part in self.shares.items() if point in points}
        if self._weights:
            self._factor = _RISE_KNOWN
        else:
            self._weights = {self._point: 1.0}
        first = _FIRST_PRICE * self.costs.value(self.free) / max(self.budget, 1.0)
        self.price = self.first_price or first

    @property
    def is_within(self) -> bool:
        """Whether the last plan keeps the budget."""
        return self._peak <= self.budget * (1 + TOLERANCE)

    def _peak_of(self, labels: Int) -> tuple[float, int]:
        return self.memory.peak(self.costs.decode(labels))

    def ask(self) -> None:
        """Meets the plan that is best at the price.

        Raises:
            SlowerError: no plan within the budget undercuts what is asked for.
        """
        found = self._least(self.costs, self.price)
        check_undercuts(found.bound - self.price * self.budget, self.most_s)
        self._before = self._peak - self.budget
        self._peak, self._point = self._peak_of(self.met[-1])
        _log.info("memory price: %.4g s per byte, %.6g bytes", self.price, self._peak)

    def _least(self, costs: Costs, price: float) -> Minimum:
        """The best plan under a price that the points share."""
        weights = np.array(list(self._weights.values()))
        found = minimize(
            paid(costs, self.memory, list(self._weights), price / weights.sum() * weights),
            cache=self.cache,
            work=self.work,
            limit_s=_RISE_S,
            max_branches=0,
        )
        self.met.append(found.labels)
        return found

    def rise(self) -> None:
        """Asks until a plan is within the budget, or none is expected.

        Raises:
            SlowerError: see `ask`.
        """
        still = num_rises = 0
        for round_ in range(2 * _RISES):
            if self.work.left_s() <= 0 or num_rises == _RISES:
                return
            if round_ or len(self.met) == 1:
                self.ask()
            if self.is_within:
                return
            is_still = self._peak - self.budget > (1 - _MOVED) * self._before
            still = still + 1 if is_still else 0
            if still == _STILL and self._is_hopeless():
                return
            num_rises += self._raise(round_)

    def _is_hopeless(self) -> bool:
        """Whether bytes alone say that nothing fits, or have led to a plan that does."""
        most = self.budget * (1 + TOLERANCE)
        self.bound = self._least(self.costs.free(), 1 / self.budget).bound * self.budget
        peak, _ = self._peak_of(self.met[-1])
        if peak <= most:
            self._peak = peak
        return self.bound > most or self.is_within

    def _raise(self, round_: int) -> bool:
        """Prices the peak as well; says whether the price rises as where nothing else helps.

        Equal layers have points that are nearly as full: with each that is priced as well there is
        less for the others, and the peak may move from one to the next without end. Where it is as
        high there as before, all that are as full are priced and the price rises a little, and
        after so many prices it rises in any case (heuristics).
        """
        is_known = self._point in self._weights
        rises = is_known or self._peak > _FAR * self.budget or round_ >= _RISES
        if rises:
            self.price *= self._factor
            self._factor = min(_RISE, _RISE_KNOWN * self._factor)
        points = [] if is_known else [self._point]
        if not rises and abs(self._peak - self.budget - self._before) <= _EQUAL * self._peak:
            self.price *= _RISE_KNOWN
            points = self._as_full()
        weight = float(np.mean(list(self._weights.values())))
        self._weights |= {point: weight for point in points if point not in self._weights}
        return rises

    def _as_full(self) -> list[int]:
        """The points where the last plan keeps as much as at its peak."""
        points = self.memory.points
        usage = self.memory.usage(self.costs.decode(self.met[-1]))[points]
        return points[usage >= (1 - _EQUAL) * self._peak].tolist()
