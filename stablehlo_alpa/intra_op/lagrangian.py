"""A memory budget by the price of memory: a Lagrangian bound, and plans repaired to the budget.

With prices ``lambda_p >= 0`` in seconds per byte on the budget rows, the programme falls back to
one without a budget, which the exact solver minimises::

    L(lambda) = min_x c(x) + sum_p lambda_p (usage_p(x) - budget)  <=  least c(x) in the budget

The best prices are found by cutting planes (Kelley), that is, by column generation on the primal
side: a master problem mixes the plans met so far, ``min sum_k a_k c(x_k)`` with
``sum_k a_k usage_p(x_k) <= budget``; its duals are the next prices, the exact solver answers with
the next plan. Program points whose rows the mixture violates are added on the way.

While hardly a plan is met that keeps the budget, and none that is good, such duals are far too high
and swing from round to round. So all of them together may rise by a factor over the best known, a
box around these: in the master the mixture may exceed the budget, for that much a byte.

A mixture is no plan. The plans in it agree on most operators, so the programme over only the
strategies that they use is small, and HiGHS solves it with the budget rows: a feasible plan close
to the bound. Where they differ in the layout of every layer, `relink` looks between them first.
The gap between plan and bound is reported.

References:
    Kelley, "The cutting-plane method for solving convex programs", 1960.
    Marsten, Hogan, Blankenship, "The BOXSTEP method for large-scale optimization", 1975.
    Geoffrion, "Lagrangean relaxation for integer programming", 1974.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import linprog

from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost.strategy_graph import Float, Int
from stablehlo_alpa.errors import SlowerError, SolverError
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.exact import Minimum, minimize
from stablehlo_alpa.intra_op.ilp import TOLERANCE, MemoryRows, pair_bytes, solve_ilp
from stablehlo_alpa.intra_op.memory import MemoryModel
from stablehlo_alpa.intra_op.relink import Parts
from stablehlo_alpa.intra_op.work import Work
from stablehlo_alpa.units import format_bytes, format_seconds

_log = logging.getLogger(__name__)

# Prices asked for before the bound is taken as it is (heuristic).
_MAX_PRICES = 60
# So many rounds must close this part of the gap, or no more are asked for (heuristics).
_PATIENCE, _GAINED = 8, 0.05
# Passes that raise the bound of an answer: where these do not lead to the optimum, many more raise
# it by less than other prices do (heuristic).
_MAX_SWEEPS = 100
# The master's value and the bound agree to this part, or to this part of a gap that is good enough:
# the prices are best.
_CONVERGED, _CONVERGED_SHARE = 1e-7, 0.1
# Part of the work left that one price may take, and seconds of work more for each after the one
# before (heuristics): the first prices are far off, and may be hard for nothing.
_ROUND_SHARE, _ROUND_S = 0.1, 0.4
# The box around the best prices known: how far their sum may rise (heuristic).
_RISE = 1.5
# A plan with a smaller share is not in a mixture (rounding of the master).
_SHARE = 1e-9
# Program points added per violated mixture (heuristic).
_POINTS_PER_ROUND = 4
# A gap above it is looked into by plans between those of the prices (heuristic).
_WIDE_GAP = 5e-3
# Seconds of work for one of them, for one attempt to make a plan of what prices met, and for all of
# the attempt's programmes (heuristics).
_PART_S, _REPAIR_S, _REPAIRS_S = 0.6, 5.0, 10.0
# The gap to which its programme is solved, as a part of the one that there is, and at most
# (heuristics): the rest of the gap is not the programme's.
_REPAIR_SHARE, _REPAIR_GAP = 0.1, 1e-3
# Rounds of prices between two attempts to make a plan of what they met (heuristic).
_ROUNDS_PER_REPAIR = 4
# Rounds of adding violated points to the repair's programme (heuristic).
_REPAIR_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Priced:
    """What the search on prices found.

    Attributes:
        labels: int64[N] places of a plan within the budget.
        value: its seconds.
        bound: no plan within the budget costs less. Seconds.
        points: int64[P] program points whose rows are priced.
        prices: float64[P] seconds per byte.
        mixed: int64[N] places each, of the plans in the best mixture.
    """

    labels: Int
    value: float
    bound: float
    points: Int
    prices: Float
    mixed: list[Int]

    @property
    def gap(self) -> float:
        """How far the plan may be from the least, as a part of it."""
        return _gap(self.value, self.bound)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Of the plans met so far the best mixture.

    Attributes:
        value: its seconds, with what is paid for the bytes over the budget.
        shares: float64[K] of the plans.
        prices: float64[P] of the priced points. Seconds per byte.
        excess: over the budget, as a part of it.
    """

    value: float
    shares: Float
    prices: Float
    excess: float

    @property
    def is_within(self) -> bool:
        """Whether it keeps the budget."""
        return self.excess <= TOLERANCE


@dataclass
class _Search:
    """Plans and prices met so far.

    Attributes:
        costs: the problem.
        memory: bytes of its plans.
        budget: bytes per device.
        work: what may be done.
        cache: the exact solver's tables.
        good_gap, enough_s, most_s: see `price_memory`.
        points: that are priced.
        plans, values, usages: int64[N] places, seconds, and bytes at the memory model's points.
        best, best_value: the cheapest plan within the budget, its seconds.
        bound: no plan within the budget costs less. Seconds.
        prices, priced: of the best bound, and the points they are of.
        num_asked: prices asked for so far.
    """

    costs: Costs
    memory: MemoryModel
    budget: float
    work: Work
    cache: SolverCache
    good_gap: float
    enough_s: float
    most_s: float
    points: list[int] = field(default_factory=list)
    plans: list[Int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    usages: list[Float] = field(default_factory=list)
    best: Int | None = None
    best_value: float = np.inf
    bound: float = -np.inf
    prices: Float = field(default_factory=lambda: np.zeros(0))
    priced: list[int] = field(default_factory=list)
    num_asked: int = 0

    def is_over(self) -> bool:
        return self.work.left_s() <= 0

    def is_within(self, bytes_: float) -> bool:
        return bytes_ <= self.budget * (1 + TOLERANCE)

    def add(self, labels: Int) -> tuple[float, int]:
        """Keeps a plan, as the best if it is cheaper and fits; its peak bytes and their point."""
        value = self.costs.value(labels)
        choice = self.costs.decode(labels)
        usage = self.memory.usage(choice)[self.memory.points]
        self.plans.append(labels)
        self.values.append(value)
        self.usages.append(usage)
        peak, point = self.memory.peak(choice)
        if self.is_within(peak) and value < self.best_value:
            self.best, self.best_value = labels, value
        return peak, point

    def is_known(self, labels: Int) -> bool:
        return any(np.array_equal(labels, plan) for plan in self.plans)

    def gap(self) -> float:
        """How far the best plan may be from the least, as a part of it."""
        return _gap(self.best_value, self.bound)

    def target_s(self) -> float:
        """Seconds of a plan that is good enough."""
        return max(self.enough_s, self.bound / (1 - self.good_gap))

    def is_good(self) -> bool:
        return self.best_value <= self.target_s()

    def ask(self, prices: Float) -> tuple[Minimum, float]:
        """The least under prices of the points, and the bound that follows; keeps the best."""
        self.num_asked += 1
        limit_s = min(_ROUND_SHARE * self.work.left_s(), _ROUND_S * self.num_asked)
        answer = minimize(
            paid(self.costs, self.memory, self.points, prices),
            cache=self.cache,
            work=self.work,
            limit_s=limit_s,
            max_branches=0,
            max_sweeps=_MAX_SWEEPS,
        )
        lower = answer.bound - float(prices.sum()) * self.budget
        if lower > self.bound:
            self.bound, self.prices, self.priced = lower, prices, list(self.points)
            check_undercuts(self.bound, self.most_s)
        return answer, lower

    def columns(self) -> Int:
        """Places of the priced points among the memory model's."""
        return np.searchsorted(self.memory.points, self.points)

    def mix(self, most_price: float = np.inf) -> Mixture:
        """Solves the master problem.

        Args:
            most_price: what the prices add up to at most. Seconds per byte.
        """
        usage = np.stack(self.usages, axis=1)[self.columns()] / self.budget
        values = np.array(self.values)
        scale = float(values.max()) or 1.0
        num_plans, num_rows = len(values), len(usage)
        cost, above = values / scale, sp.csr_matrix(usage)
        if np.isfinite(most_price):
            # One more column: the budget is exceeded by as much as it says.
            cost = np.append(cost, most_price * self.budget / scale)
            above = sp.hstack([above, -np.ones((num_rows, 1))], format="csr")
        found = linprog(
            cost,
            A_ub=above,
            b_ub=np.full(num_rows, 1 + TOLERANCE),
            A_eq=(np.arange(len(cost)) < num_plans).astype(np.float64)[None],
            b_eq=[1.0],
            method="highs",
        )
        if found.status != 0:
            raise SolverError(f"the master problem of the memory price failed: {found.message}")
        prices = np.maximum(0.0, -np.asarray(found.ineqlin.marginals)) * scale / self.budget
        x = np.asarray(found.x)
        return Mixture(float(found.fun) * scale, x[:num_plans], prices, float(x[num_plans:].sum()))

    def mixed(self, mixture: Mixture) -> list[Int]:
        """The plans that have a share in a mixture."""
        pairs = zip(self.plans, mixture.shares, strict=True)
        return [plan for plan, share in pairs if share > _SHARE]

    def violated(self, mixture: Mixture) -> list[int]:
        """Points where a mixture exceeds the budget by more than where it is priced."""
        usage = np.stack(self.usages, axis=1) @ mixture.shares
        order = np.argsort(-usage, kind="stable")
        limit = self.budget * (1 + TOLERANCE + mixture.excess)
        over = [int(self.memory.points[i]) for i in order if usage[i] > limit]
        return [point for point in over if point not in self.points][:_POINTS_PER_ROUND]


def check_undercuts(bound_s: float, most_s: float) -> None:
    """Raises ``SlowerError`` where no plan undercuts what is asked for."""
    if bound_s >= most_s:
        raise SlowerError(
            f"every plan takes {format_seconds(bound_s)} at least, {format_seconds(most_s)} was to "
            "be undercut",
            bound_s,
        )


def _gap(value: float, bound: float) -> float:
    return (value - bound) / max(abs(value), 1e-30)


def paid(
    costs: Costs,
    memory: MemoryModel,
    points: npt.ArrayLike,
    prices: Float,
    factors: Float | None = None,
) -> Costs:
    """The problem with the seconds that bytes cost.

    Args:
        costs: the problem.
        memory: bytes of its plans.
        points: int[P] program points that are priced.
        prices: float64[P] seconds per byte at each.
        factors: float64[N] of the prices for what a node holds; a copy is its reader's and its
            maker's by half. None: 1.
    """
    factors = np.ones(len(costs.sizes)) if factors is None else factors
    node_s = np.asarray(prices @ memory.rows(points)[:, costs.rows].toarray())
    tables = list(costs.tables)
    for point, price in zip(np.asarray(points).tolist(), prices.tolist(), strict=True):
        if price <= 0:
            continue
        for number, sizes in pair_bytes(costs, memory, point).items():
            share = factors[costs.edges[number]].mean()
            tables[number] = tables[number] + price * share * sizes
    node_s = costs.node_s + np.repeat(factors, costs.sizes) * node_s
    return replace(costs, node_s=node_s, tables=tuple(tables))


def price_memory(
    costs: Costs,
    memory: MemoryModel,
    budget: float,
    plans: Sequence[Int],
    *,
    cache: SolverCache,
    work: Work,
    good_gap: float = 0.0,
    enough_s: float = -np.inf,
    most_s: float = np.inf,
    first_price: float | None = None,
) -> Priced:
    """Finds the best prices, and a plan within the budget.

    Args:
        costs: the problem.
        memory: bytes of its plans.
        budget: bytes per device.
        plans: int64[N] places of plans to begin with: an optimum without the budget, one within
            the budget, and what else is known.
        cache: the exact solver's tables.
        work: what may be done before the best so far is taken.
        good_gap: of a plan that is good enough.
        enough_s: seconds of a plan that is good enough, whatever its gap.
        most_s: seconds that a plan must undercut.
        first_price: seconds per byte at the peak, where it is roughly known.

    Raises:
        SlowerError: none undercuts what is asked for.
    """
    search = _Search(costs, memory, max(budget, 1.0), work, cache, good_gap, enough_s, most_s)
    peaks = [search.add(plan) for plan in plans if not search.is_known(plan)]
    search.points += sorted({point for peak, point in peaks if not search.is_within(peak)})
    if search.best is None:
        raise SolverError(f"the plan of least memory exceeds the budget of {format_bytes(budget)}")
    _converge(search, first_price or np.inf)
    if not search.is_good() and search.gap() > _WIDE_GAP:
        _relink(search)
    if not search.is_good():
        _repair(search)
    return Priced(
        search.best,
        search.best_value,
        min(search.bound, search.best_value),
        np.array(search.priced, np.int64),
        search.prices,
        search.mixed(search.mix()),
    )


def _converge(search: _Search, most_price: float) -> None:
    """Asks for plans under the master's prices, until these are best or a plan is good.

    Args:
        search: what was met.
        most_price: what the first prices add up to at most.
    """
    converged = max(_CONVERGED, _CONVERGED_SHARE * search.good_gap)
    next_repair, gaps = 0, list[float]()
    for round_ in range(_MAX_PRICES):
        gaps.append(search.gap())
        if len(gaps) > _PATIENCE and gaps[-1] > (1 - _GAINED) * gaps[-1 - _PATIENCE]:
            _repair(search)
            if search.gap() > (1 - _GAINED) * gaps[-1]:
                return
            gaps = [search.gap()]
        mixture = search.mix(most_price)
        value, before = mixture.value, search.bound
        if search.is_over() or search.is_good():
            return
        answer, lower = search.ask(mixture.prices)
        _log.info("memory price: round %d, master %.9g, bound %.9g", round_, value, lower)
        if search.is_good():
            return
        is_stuck = answer.status == "given up" and search.is_known(answer.labels)
        is_best = is_stuck or lower >= value - converged * abs(value)
        is_close = mixture.is_within and value <= search.target_s()
        new = search.violated(mixture) if is_best or is_close else []
        if is_best and mixture.is_within and not new:
            return
        search.points += new
        if not is_stuck:
            search.add(answer.labels)
        if is_close and not new and round_ >= next_repair:
            # Plans that mix to less than what is good enough may hold one that is.
            _repair(search)
            next_repair = round_ + _ROUNDS_PER_REPAIR
        is_held = not mixture.is_within and search.bound <= before
        best_price = float(search.prices.sum()) or np.inf
        most_price = _RISE * (most_price if is_held else best_price)


def _relink(search: _Search) -> None:
    """Adds the optima under two prices: a part of the operators pays less, the rest more."""
    costs = search.costs
    parts = Parts(costs)
    for factors in parts:
        if search.is_over() or search.is_good():
            return
        answer = minimize(
            paid(costs, search.memory, search.priced, search.prices, factors),
            cache=search.cache,
            work=search.work,
            limit_s=_PART_S,
            max_branches=0,
            max_sweeps=_MAX_SWEEPS,
        )
        peak, _ = search.add(answer.labels)
        parts.answer(search.is_within(peak))
        _log.info("memory price on a part: %.9g s, %.6g bytes", search.values[-1], peak)


def _repair(search: _Search) -> None:
    """Solves the programme over the strategies of the plans near the bound."""
    chosen = search.mixed(search.mix())
    recent = search.plans[-6:]
    assert search.best is not None
    kept = search.costs.union([search.best, *chosen, *recent])
    small = search.costs.restrict(kept)
    points, work = list(search.points), search.work.part(_REPAIRS_S)
    for _ in range(_REPAIR_ROUNDS):
        if work.left_s() <= 0:
            return
        gap = max(1e-6, _REPAIR_SHARE * search.gap())
        answer = solve_ilp(
            small,
            MemoryRows.of(small, search.memory, points, search.budget),
            work.part(_REPAIR_S),
            min(gap, _REPAIR_GAP),
            enough_s=search.target_s(),
            start=small.encode(search.costs.decode(search.best)),
        )
        if answer.labels is None:
            return
        choice = small.decode(answer.labels)
        peak, point = search.add(search.costs.encode(choice))
        if search.is_within(peak) or point in points:
            return
        points.append(point)
