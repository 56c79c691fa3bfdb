"""Chooses one strategy per operator: the exact solver first, the integer programme for the rest."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.cost.strategy_graph import Float, Int
from stablehlo_alpa.errors import InfeasibleError, SlowerError, SolverError
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.exact import Minimum, drop, minimize
from stablehlo_alpa.intra_op.ilp import TOLERANCE, MemoryRows, solve_ilp
from stablehlo_alpa.intra_op.lagrangian import Priced, check_undercuts, paid, price_memory
from stablehlo_alpa.intra_op.least_memory import (
    lean_choice,
    least_memory,
    usual_choice,
    weighted_choice,
)
from stablehlo_alpa.intra_op.memory import MemoryModel
from stablehlo_alpa.intra_op.refusal import refusal
from stablehlo_alpa.intra_op.rising import Rising
from stablehlo_alpa.intra_op.solution import Method, Solution, SolveOptions
from stablehlo_alpa.intra_op.work import Work
from stablehlo_alpa.units import format_bytes

_log = logging.getLogger(__name__)

# Program points whose rows are added per round of cutting planes (heuristic).
_ROWS_PER_ROUND = 8
# A gap below the one that is good enough is closed where the integer programme has at most this
# many pairs of strategies, for at most so many seconds of work (heuristics).
_SMALL_PROGRAMME = 3_000
_CLOSING_S = 1.0
# Of more than so many times as many pairs, strategies that a better plan cannot have are not told
# from others, unless the gap is below the second (heuristics): too few would be.
_LARGE, _NARROW_GAP = 100, 1e-3
# A gap of so many times the one that is good enough is closed for at most so many seconds of work
# (heuristics): it need not close in all that there is.
_NEAR, _NEAR_S = 10.0, 10.0
# The integer programme is begun where it has at most so many pairs per second left (heuristic: with
# more its relaxation alone takes longer).
_PAIRS_PER_S = 5_000
# Parts of the work for the exact solver before the integer programme, and for a plan without the
# budget that there is (heuristics).
_EXACT_SHARE, _FREE_SHARE = 0.5, 0.1
# Work to name the least peak of what is known not to fit (heuristic).
_NAMING_S = 1.0
# Passes that raise the bound before strategies are dropped for the programme (heuristic).
_SWEEPS = 60


@dataclass(frozen=True, eq=False)
class _Found:
    """A plan: int64[N] places within the nodes of the allowed strategies, and what is proved."""

    labels: Int
    bound: float
    status: str
    method: Method
    lp_integral: bool = False
    points: Int | None = None
    prices: Float | None = None
    mixed: Sequence[Int] = ()
    minimum: Minimum | None = None


def solve_anew(
    priced: PricedGraph,
    options: SolveOptions | None = None,
    cache: SolverCache | None = None,
    before: Sequence[Solution] = (),
    memory_price: float | None = None,
) -> Solution:
    """Chooses one allowed strategy per node with the least seconds per step.

    Args:
        priced: the strategy graph in seconds.
        options: budget and limits.
        cache: the exact solver's tables, to share between calls: what repeats is computed once.
        before: of the same seconds and allowed strategies with other bytes or another budget, to
            begin with.
        memory_price: seconds per byte at the peak under the budget, where it is roughly known.

    Raises:
        InfeasibleError: no choice stays within the memory budget.
        SlowerError: none takes less than asked for.
        SolverError: the solver failed, or decoded to another objective than it reported; or
            elimination alone was asked for and does not get through.
    """
    options = options or SolveOptions()
    cache = cache or SolverCache()
    begin = time.monotonic()
    work = Work.of(options.time_limit_s)
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    try:
        found = _solve(costs, memory, _Limits(options, cache, work, memory_price), before)
    except (InfeasibleError, SlowerError) as error:
        error.work_s, error.needed_work_s, error.is_late = _told(work)
        raise
    solution = _solution(priced, costs, memory, found, options, begin)
    work_s, needed_work_s, is_late = _told(work)
    return replace(solution, work_s=work_s, needed_work_s=needed_work_s, is_late=is_late)


def _solve(
    costs: Costs, memory: MemoryModel, limits: _Limits, before: Sequence[Solution]
) -> _Found:
    """Solves without the budget, and within it where the optimum exceeds it; see `solve_anew`."""
    options = limits.options
    minimum = next((one.minimum for one in before if one.minimum is not None), None)
    found = _solve_free(costs, memory, limits, minimum)
    check_undercuts(found.bound, options.most_s)
    budget = options.memory_budget
    if budget is None or _fits(memory, costs, found.labels, budget):
        return found
    if options.method == "elimination":
        peak = memory.peak(costs.decode(found.labels))[0]
        raise SolverError(
            f"elimination cannot keep a memory budget: its optimum needs {format_bytes(peak)}, "
            f"the budget is {format_bytes(budget)}"
        )
    choices = [choice for one in before for choice in (one.choice, *one.mixed)]
    plans = [costs.encode(choice.astype(np.int64)) for choice in choices]
    return _solve_within(costs, memory, found, plans, replace(limits, shares=_shares(before)))


def _shares(before: Sequence[Solution]) -> dict[int, float]:
    """What part of the price of memory each program point had, where one was priced before."""
    priced = (one for one in before if one.memory_price_s > 0)
    found = next(priced, None)
    if found is None:
        return {}
    parts = found.memory_prices / found.memory_prices.sum()
    pairs = zip(found.memory_points.tolist(), parts.tolist(), strict=True)
    return {point: part for point, part in pairs if part > 0}


def _told(work: Work) -> tuple[float, float, bool]:
    """Of work that is done: how much, by what limit it was decided, whether the clock ended it."""
    return work.spent_s, work.needed_s, work.is_late


def _solution(
    priced: PricedGraph,
    costs: Costs,
    memory: MemoryModel,
    found: _Found,
    options: SolveOptions,
    begin: float,
) -> Solution:
    """A plan with what it takes, computed anew from its choice.

    Args:
        priced: the strategy graph in seconds.
        costs: its strategies that are allowed.
        memory: what the strategies keep.
        found: what is proved of the choice.
        options: with the gap that is good enough.
        begin: of solving, by ``time.monotonic``.
    """
    choice = costs.decode(found.labels)
    mixed = [costs.decode(labels) for labels in found.mixed]
    compute, communication, reshard = priced.split(choice)
    objective = compute + communication + reshard
    gap = max(0.0, objective - found.bound) / max(abs(objective), 1e-30)
    if found.status == "optimal" and gap <= options.relative_gap:
        gap = 0.0
    peak, point = memory.peak(choice)
    return Solution(
        choice=choice.astype(np.int32),
        compute_s=compute,
        communication_s=communication,
        reshard_s=reshard,
        memory_peak_bytes=peak,
        memory_peak_point=point,
        status=found.status,
        gap=gap,
        spent_s=time.monotonic() - begin,
        lp_integral=found.lp_integral,
        method=found.method,
        memory_points=np.zeros(0, np.int64) if found.points is None else found.points,
        memory_prices=np.zeros(0) if found.prices is None else found.prices,
        mixed=np.array(mixed, np.int32).reshape(len(mixed), len(choice)),
        minimum=found.minimum,
    )


def _fits(memory: MemoryModel, costs: Costs, labels: Int, budget: float) -> bool:
    return memory.peak(costs.decode(labels))[0] <= budget * (1 + TOLERANCE)


def _solve_free(
    costs: Costs, memory: MemoryModel, limits: _Limits, minimum: Minimum | None
) -> _Found:
    """Solves without a budget; where a good plan exceeds the one that there is, not to the end."""
    options, cache, work = limits.options, limits.cache, limits.work
    start = np.zeros(len(costs.sizes), np.int64)
    bound, kept = -np.inf, np.ones(len(costs.rows), np.bool_)
    if options.method != "ilp":
        budget = options.memory_budget
        left_s = work.left_s()
        # A plan that the budget forbids need not be the best.
        share, branches = (_EXACT_SHARE, None) if budget is None else (_FREE_SHARE, 0)
        minimum = minimum or minimize(
            costs, cache=cache, work=work, limit_s=share * left_s, max_branches=branches
        )
        is_given_up = minimum.status == "given up"
        if budget is not None and is_given_up and _fits(memory, costs, minimum.labels, budget):
            minimum = minimize(costs, cache=cache, work=work, limit_s=_EXACT_SHARE * left_s)
        if minimum.status == "optimal":
            _check(costs.value(minimum.labels), minimum.bound)
            return _Found(minimum.labels, minimum.bound, "optimal", "elimination", minimum=minimum)
        if options.method == "elimination":
            raise SolverError(
                f"elimination was given up on {len(costs.sizes)} operators: its tables or its "
                "work exceed their limit; method 'auto' falls back on the integer programme"
            )
        if budget is not None and not _fits(memory, costs, minimum.labels, budget):
            return _Found(minimum.labels, minimum.bound, "gap", "elimination", minimum=minimum)
        start, bound, kept = minimum.labels, minimum.bound, minimum.kept
        _log.info(
            "elimination given up, %d of %d strategies go to HiGHS", kept.sum(), len(costs.rows)
        )
    core = costs.restrict(kept)
    answer = solve_ilp(core, None, work, options.relative_gap)
    if answer.status == "infeasible":
        raise _contradiction(None)
    labels = start
    if answer.labels is not None:
        found = costs.encode(core.decode(answer.labels))
        labels = found if costs.value(found) <= costs.value(start) else start
    bound = max(bound, answer.bound)
    return _Found(labels, bound, answer.status, "ilp", answer.lp_integral, minimum=minimum)


@dataclass(frozen=True, eq=False)
class _Limits:
    """Of a solution: what is wanted, what may be done, and what helps to find it."""

    options: SolveOptions
    cache: SolverCache
    work: Work
    memory_price: float | None
    # Of the price, by program point.
    shares: Mapping[int, float] = field(default_factory=dict)

    @property
    def budget(self) -> float:
        """Bytes per device, where there is one."""
        assert self.options.memory_budget is not None
        return self.options.memory_budget


def _solve_within(
    costs: Costs, memory: MemoryModel, free: _Found, plans: Sequence[Int], limits: _Limits
) -> _Found:
    """Solves under a budget that the optimum without one exceeds."""
    budget, options = limits.budget, limits.options
    fitting = [plan for plan in plans if _fits(memory, costs, plan, budget)]
    known = min(fitting, key=costs.value, default=None)
    if known is not None and costs.value(known) <= options.enough_s:
        return replace(free, labels=known, status="gap", method="lagrangian")
    price, met = limits.memory_price, list[Int]()
    if known is None:
        rising = Rising(
            costs,
            memory,
            free.labels,
            budget,
            cache=limits.cache,
            work=limits.work,
            first_price=price,
            most_s=options.most_s,
            shares=limits.shares,
        )
        if price is not None and np.isfinite(options.most_s):
            # What is too slow at a price that is roughly known needs no plan within the budget.
            rising.ask()
        known, price, met = _lean(costs, memory, rising, limits)
    if options.method == "ilp":
        return _cut(costs, memory, budget, known, [], -np.inf, options, limits.work)
    found = price_memory(
        costs,
        memory,
        budget,
        [free.labels, known, *met, *plans],
        cache=limits.cache,
        work=limits.work,
        good_gap=options.budget_gap,
        enough_s=options.enough_s,
        most_s=options.most_s,
        first_price=price,
    )
    # Without the budget no plan costs less either.
    found = replace(found, bound=max(found.bound, min(free.bound, found.value)))
    _log.info("memory price: %.9g s, bound %.9g s, gap %.3g", found.value, found.bound, found.gap)
    best = _Found(
        found.labels,
        found.bound,
        "optimal" if found.gap <= options.relative_gap else "gap",
        "lagrangian",
        points=found.points,
        prices=found.prices,
        mixed=found.mixed,
        minimum=free.minimum,
    )
    return best if found.gap <= options.relative_gap else _close(costs, memory, found, best, limits)


def _lean(
    costs: Costs, memory: MemoryModel, rising: Rising, limits: _Limits
) -> tuple[Int, float | None, list[Int]]:
    """A plan within the budget that need not be good.

    Args:
        costs: the strategies that may be chosen.
        memory: their bytes.
        rising: a price of memory that was asked for once at most.
        limits: budget and time.

    Returns:
        its places, seconds per byte at the peak where that is roughly known, and other plans met.
    """
    price, budget = limits.memory_price, limits.budget
    if rising.is_within:
        return rising.met[-1], price, []
    lean = lean_choice(costs, memory)
    if _fits(memory, costs, lean, budget):
        return lean, price, rising.met[1:]
    lean, bound = weighted_choice(costs, memory, budget)
    if _fits(memory, costs, lean, budget):
        return lean, price, rising.met[1:]
    met = [lean]
    if bound <= budget and memory.graph.copy_source.size:
        rising.rise()
        if rising.is_within:
            return rising.met[-1], rising.price, rising.met[:-1]
        bound, met = max(bound, rising.bound), rising.met
    leanest = min(met, key=lambda labels: memory.peak(costs.decode(labels))[0])
    return _least(costs, memory, bound, leanest, limits), price, []


def _close(
    costs: Costs, memory: MemoryModel, found: Priced, best: _Found, limits: _Limits
) -> _Found:
    """Closes the gap of what prices found by the integer programme, where that can be done."""
    options = limits.options
    is_good = found.gap <= options.budget_gap or found.value <= options.enough_s
    is_wide = found.gap > _NARROW_GAP
    if not (is_good or options.closes):
        return best
    if is_good and is_wide and _num_pairs(costs) > _LARGE * _SMALL_PROGRAMME:
        return best
    core = _drop(costs, memory, found, limits.budget)
    pairs = _num_pairs(core)
    _log.info("core: %d pairs", pairs)
    work = limits.work
    if is_good or found.gap <= _NEAR * options.budget_gap:
        work = work.part(_CLOSING_S if is_good else _NEAR_S)
    is_small = pairs <= _SMALL_PROGRAMME
    if not (is_small if is_good else work.fits(pairs / _PAIRS_PER_S, work.left_s())):
        return best
    start = core.encode(costs.decode(found.labels))
    points = found.points.tolist()
    cut = _cut(core, memory, limits.budget, start, points, found.bound, options, work)
    if is_good and cut.status == "time limit":
        return best
    labels = costs.encode(core.decode(cut.labels))
    return replace(best, labels=labels, bound=cut.bound, status=cut.status, method=cut.method)


def _num_pairs(costs: Costs) -> int:
    """Pairs of strategies between which the integer programme has a variable."""
    return sum(table.size for table in costs.tables if min(table.shape) > 1)


def _drop(costs: Costs, memory: MemoryModel, found: Priced, budget: float) -> Costs:
    """The strategies that a plan within the budget, better than the one found, may use.

    Such a plan's seconds are at least those under the prices, its unused budget being >= 0.
    """
    cutoff = found.value + float(found.prices.sum()) * budget
    kept, _ = drop(paid(costs, memory, found.points, found.prices), cutoff, _SWEEPS)
    return costs.restrict(kept | costs.union([found.labels]))


def _least(costs: Costs, memory: MemoryModel, bound: float, leanest: Int, limits: _Limits) -> Int:
    """A plan within the budget, or the error that says by how much there is none.

    Args:
        costs: the strategies that may be chosen.
        memory: their bytes.
        bound: bytes that no plan's peak is below, as far as is known.
        leanest: places of the plan of the least peak so far.
        limits: budget and time.
    """
    budget, options = limits.budget, limits.options
    # That nothing fits is known where the bound is over the budget; by how much is good to know.
    is_refuted = bound > budget * (1 + TOLERANCE)
    is_brief = is_refuted or not options.closes
    work = limits.work.part(_NAMING_S) if is_brief else limits.work
    if is_refuted and not options.closes:
        raise refusal(budget, None, bound, ())
    lean, least, needed = leanest, bound, memory.peak(costs.decode(leanest))[0]
    if needed > bound * (1 + TOLERANCE):
        other, peak, own_bound = least_memory(costs, memory, work, options.relative_gap)
        if is_refuted and peak > own_bound * (1 + TOLERANCE):
            # Of a large problem the programme finds none in so little time that gathers little.
            usual, usual_bound = usual_choice(
                costs, memory, limits.cache, limits.work.part(_NAMING_S)
            )
            own_bound = max(own_bound, usual_bound)
            usual_peak = memory.peak(costs.decode(usual))[0]
            other, peak = (usual, usual_peak) if usual_peak < peak else (other, peak)
        if _fits(memory, costs, other, budget):
            return other
        lean, needed = (leanest, needed) if needed < peak else (other, peak)
        least = max(own_bound, bound)
    choice = costs.decode(lean)
    largest = memory.largest(choice, memory.peak(choice)[1])
    is_least = needed <= least * (1 + max(TOLERANCE, options.relative_gap))
    error = refusal(budget, needed, least, largest, is_least=is_least, limit_s=work.limit_s)
    _log.info("least peak: %.9g bytes, bound %.9g, proved: %s", needed, least, error.is_proved)
    raise error


def _cut(
    costs: Costs,
    memory: MemoryModel,
    budget: float,
    start: Int,
    points: list[int],
    bound: float,
    options: SolveOptions,
    work: Work,
) -> _Found:
    """The integer programme by cutting planes: rows (C4) are added while one is violated.

    ``start`` is a plan within the budget, ``points`` have rows from the beginning, and no plan
    within the budget costs less than ``bound`` seconds.
    """
    points = list(points)
    while True:
        rows = MemoryRows.of(costs, memory, points, budget)
        answer = solve_ilp(costs, rows, work, options.relative_gap)
        if answer.status == "infeasible":
            raise _contradiction(budget)
        bound = max(bound, answer.bound)
        if answer.labels is None:
            return _Found(start, bound, answer.status, "ilp")
        choice = costs.decode(answer.labels)
        if _fits(memory, costs, answer.labels, budget):
            is_better = costs.value(answer.labels) <= costs.value(start)
            labels = answer.labels if is_better else start
            return _Found(labels, bound, answer.status, "ilp", answer.lp_integral)
        if answer.status != "optimal":
            return _Found(start, bound, answer.status, "ilp")
        used = memory.usage(choice)[memory.points]
        order = np.argsort(-used, kind="stable")
        over = [int(memory.points[i]) for i in order if used[i] > budget]
        new = [point for point in over if point not in points][:_ROWS_PER_ROUND]
        if not new:
            raise SolverError(
                f"solver broke its memory rows: peak {format_bytes(memory.peak(choice)[0])}, "
                f"budget {format_bytes(budget)}"
            )
        points += new
        _log.info("memory budget: %d program points constrained", len(points))


def _check(actual: float, reported: float) -> None:
    if abs(actual - reported) > 1e-9 * max(abs(actual), abs(reported)) + 1e-15:
        raise SolverError(
            f"solver reports {reported:.12g} s, its decoded choice costs {actual:.12g} s"
        )


def _contradiction(budget: float | None) -> SolverError:
    limit = "none" if budget is None else format_bytes(budget)
    return SolverError(f"solver calls a feasible programme infeasible (memory budget {limit})")
