"""How far a choice can be from the best, without looking for the best."""

from __future__ import annotations

import numpy as np

from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.exact import minimize
from stablehlo_alpa.intra_op.ilp import TOLERANCE
from stablehlo_alpa.intra_op.lagrangian import paid, price_memory
from stablehlo_alpa.intra_op.memory import MemoryModel
from stablehlo_alpa.intra_op.solution import Solution, SolveOptions
from stablehlo_alpa.intra_op.work import Work


def lower_bound(
    priced: PricedGraph,
    options: SolveOptions,
    cache: SolverCache,
    *,
    wanted_s: float,
    plan: Solution | None = None,
    memory_price_s: float = 0.0,
) -> float:
    r"""Seconds per step that no choice within the memory budget is below.

    The exact solver's dual bound without the budget: the optimum, unless it was given up. Where
    that is below ``wanted_s`` and its choice exceeds the budget, memory is priced::

        L(lambda) = min_x c(x) + lambda (usage_p(x) - budget)  <=  least c(x) in the budget

    with ``memory_price_s`` for lambda, and by the cutting planes of `price_memory` where a choice
    within the budget is known.

    Args:
        priced: the problem.
        options: budget and limits.
        cache: tables of the exact solver, to share between calls.
        wanted_s: a bound as large is good enough. Seconds per step.
        plan: a choice within the budget.
        memory_price_s: seconds per byte at the peak, where it is roughly known.
    """
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    work = Work.of(options.time_limit_s)
    free = minimize(costs, cache=cache, work=work, max_branches=0)
    if free.status == "infeasible":
        return float("inf")
    bound, budget = free.bound, options.memory_budget
    if free.status == "given up" and bound < wanted_s:
        free = minimize(costs, cache=cache, work=work)
        bound = max(bound, free.bound)
    if bound >= wanted_s or budget is None:
        return bound
    peak, point = memory.peak(costs.decode(free.labels))
    if peak <= budget * (1 + TOLERANCE):
        return bound
    if memory_price_s > 0:
        paid_costs = paid(costs, memory, [point], np.array([memory_price_s]))
        under = minimize(paid_costs, cache=cache, work=work, max_branches=0)
        bound = max(bound, under.bound - memory_price_s * budget)
    if bound >= wanted_s or plan is None:
        return bound
    good = max(0.0, 1 - wanted_s / plan.objective_s) if plan.objective_s > 0 else 0.0
    known = [free.labels, costs.encode(plan.choice.astype(np.int64))]
    found = price_memory(
        costs,
        memory,
        budget,
        known,
        cache=cache,
        work=work,
        good_gap=good,
        first_price=memory_price_s or None,
    )
    return max(bound, found.bound)
