"""A price of memory that rises until a plan fits, and what it proves on the way."""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import sys
from typing import Any

import jax
import numpy as np
import pytest
from graphs import CPU, brute_force, cpu_mesh, random_arrays, random_priced
from hypothesis import given, settings
from hypothesis import strategies as st

import stablehlo_alpa
from stablehlo_alpa import _core
from stablehlo_alpa.cost import StrategyGraph
from stablehlo_alpa.cost import price as price_graph
from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.intra_op import MemoryModel, SolveOptions, solve
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.ilp import MemoryRows, Programme, solve_ilp
from stablehlo_alpa.intra_op.rising import Rising
from stablehlo_alpa.intra_op.work import Work


def tight(seed: int, share: float) -> tuple[Any, float, float]:
    """A graph, a budget that its optimum exceeds, and the least seconds within it."""
    priced = random_priced(seed, nodes=5)
    least = brute_force(priced)[1]
    budget = least + share * (solve(priced).memory_peak_bytes - least)
    return priced, budget, brute_force(priced, budget)[0]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.9), st.floats(-8, 2), st.floats(0.5, 1.5))
def test_what_a_price_refuses_no_plan_undercuts(
    seed: int, share: float, power: float, part: float
) -> None:
    """Whatever the price that is thought to be known, what is said of all plans holds."""
    priced, budget, best = tight(seed, share)
    options = SolveOptions(memory_budget=budget, most_s=part * best)
    price = best / budget * 10**power
    try:
        said = solve(priced, options, memory_price=price).objective_s
        least = best * (1 - 1e-5)
    except SlowerError as error:
        said, least = error.least_s, part * best
    assert least <= said <= best * (1 + 1e-5)


def test_what_is_too_slow_is_refused_without_a_plan_that_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No mixture of plans is asked for where one price tells all."""
    solver = sys.modules["stablehlo_alpa.intra_op.solver"]
    priced, budget, best = tight(7, 0.5)
    known = solve(priced, SolveOptions(memory_budget=budget))
    assert known.memory_price_s > 0

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("plans within the budget are looked for")

    for name in ("price_memory", "lean_choice", "weighted_choice"):
        monkeypatch.setattr(solver, name, refuse)
    options = SolveOptions(memory_budget=budget, most_s=0.8 * best)
    with pytest.raises(SlowerError) as error:
        solve(priced, options, memory_price=known.memory_price_s)
    assert 0.8 * best <= error.value.least_s <= best


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.9))
def test_the_last_plan_of_a_rising_price_fits_where_it_says_so(seed: int, share: float) -> None:
    priced, budget, best = tight(seed, share)
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    free = costs.encode(solve(priced).choice.astype(np.int64))
    rising = Rising(costs, memory, free, budget, cache=_core.SolverCache(), work=Work.of(60.0))
    rising.rise()
    peaks = [memory.peak(costs.decode(labels))[0] for labels in rising.met]
    assert rising.is_within == (peaks[-1] <= budget * (1 + 1e-5))
    if rising.is_within:
        assert costs.value(rising.met[-1]) >= best * (1 - 1e-6)
    assert rising.bound <= brute_force(priced)[1] * (1 + 1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.05, 0.9), st.floats(0.8, 1.0))
def test_a_price_known_of_another_budget_leads_to_the_best_plan(
    seed: int, share: float, less: float
) -> None:
    priced, budget, _ = tight(seed, share)
    before = solve(priced, SolveOptions(memory_budget=budget))
    best = brute_force(priced, less * budget)[0]
    options = SolveOptions(memory_budget=less * budget)
    if not np.isfinite(best):
        with pytest.raises(InfeasibleError):
            solve(priced, options, before=[before], memory_price=before.memory_price_s or None)
        return
    found = solve(priced, options, before=[before], memory_price=before.memory_price_s or None)
    assert found.objective_s == pytest.approx(best, rel=1e-5)


def test_points_that_were_priced_are_priced_alike() -> None:
    """Two points that are full in turn: prices known of both meet a plan that fits at once."""
    priced, budget, _ = next(
        found
        for found in (tight(seed, 0.5) for seed in range(200))
        if len(solve(found[0], SolveOptions(memory_budget=found[1])).memory_points) > 1
    )
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    before = solve(priced, SolveOptions(memory_budget=budget))
    free = costs.encode(solve(priced).choice.astype(np.int64))
    pairs = zip(before.memory_points.tolist(), before.memory_prices.tolist(), strict=True)
    rising = Rising(
        *(costs, memory, free, budget),
        cache=_core.SolverCache(),
        work=Work.of(60.0),
        first_price=before.memory_price_s,
        shares={point: price / before.memory_price_s for point, price in pairs},
    )
    rising.ask()
    node_s = costs.node_s.copy()
    for point, price in zip(before.memory_points, before.memory_prices, strict=True):
        node_s += price * memory.rows([int(point)]).toarray()[0]
    tables = [table.copy() for table in costs.tables]
    for point, price in zip(before.memory_points, before.memory_prices, strict=True):
        for edge, sizes in memory.pairs(int(point)).items():
            tables[costs.edge_numbers[edge]] += price * sizes
    paid = dataclasses.replace(costs, node_s=node_s, tables=tuple(tables))
    every = itertools.product(*map(range, costs.sizes.tolist()))
    least = min(paid.value(np.array(labels)) for labels in every)
    assert paid.value(rising.met[-1]) == pytest.approx(least)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.9))
def test_a_plan_to_begin_with_is_a_point_of_the_programme(seed: int, share: float) -> None:
    """It costs what the plan does, keeps what the programme asks for, and changes no optimum."""
    priced, budget, best = tight(seed, share)
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    rows = MemoryRows.of(costs, memory, memory.points.tolist(), budget)
    start = costs.encode(solve(priced, SolveOptions(memory_budget=budget)).choice.astype(np.int64))
    programme = Programme.of(costs, rows)
    x = programme.point(start)
    assert programme.seconds(x) == pytest.approx(costs.value(start))
    assert programme.matrix @ x == pytest.approx(programme.rhs)
    assert (programme.memory @ x <= programme.limit + 1e-6).all()
    found = solve_ilp(costs, rows, Work.of(60.0), 1e-6, start=start)
    assert found.labels is not None
    assert costs.value(found.labels) == pytest.approx(best, rel=1e-5)


def test_what_a_whole_step_lacks_is_not_looked_for_where_parts_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is said where they do not fit either."""
    planner = importlib.import_module("stablehlo_alpa.api.call_planner")
    swept, refused = planner.sweep, list[Any]()

    def seen(*args: Any) -> Any:
        refused.append(args[-1])
        return swept(*args)

    monkeypatch.setattr(planner, "sweep", seen)

    def step(weights: Any, x: Any) -> Any:
        def loss(weights: Any) -> jax.Array:
            return jax.numpy.mean((jax.numpy.tanh(x @ weights[0]) @ weights[1]) ** 2)

        return stablehlo_alpa.grad(loss)(weights)

    weights = [np.ones((64, 256), "f"), np.ones((256, 64), "f")]

    def plan(budget: float) -> Any:
        method = stablehlo_alpa.ShardParallel(mesh_shape=(8,), memory_budget=budget)
        parallel = stablehlo_alpa.parallelize(step, method=method, store=False)
        return parallel.plan(weights, np.ones((16384, 64), "f"))

    said = "the least reachable peak is .*cut into micro-batches the step takes"
    with pytest.raises(InfeasibleError, match=said) as caught:
        plan(30_000)
    needed = caught.value.needed_bytes
    assert needed is not None
    assert plan(1.2 * needed).runtime.num_micro_batches > 1
    for budget, whole in zip((30_000, 1.2 * needed), refused, strict=True):
        assert whole.least_bytes > budget
        assert whole.needed_bytes is None


def test_equal_layers_are_not_asked_for_one_by_one() -> None:
    """Operators that are as full in turn, each of which is leaner for some seconds."""
    count = 40
    fat, lean = 8.0, 2.0
    arrays = random_arrays(0, nodes=count, strategies=(2, 2), edges=0, values=0, points=count)
    arrays |= {
        "value_node": np.arange(count),
        "value_start": np.arange(count),
        "value_end": np.arange(count),
        "value_offset": np.arange(count + 1) * 2,
        "value_bytes": np.tile([fat, lean], count),
        "value_name": [f"v{number}" for number in range(count)],
        "num_points": count,
    }
    priced = price_graph(StrategyGraph.from_arrays(arrays), cpu_mesh(), CPU)
    seconds = np.tile([1.0, 2.0], count)
    priced = dataclasses.replace(
        priced,
        compute_s=seconds,
        communication_s=np.zeros(2 * count),
        edges={},
    )
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    free = np.zeros(count, np.int64)
    rising = Rising(costs, memory, free, 7.5, cache=_core.SolverCache(), work=Work.of(60.0))
    rising.rise()
    assert rising.is_within
    # Within the budget the leaner strategy is taken everywhere.
    assert costs.value(rising.met[-1]) == 2.0 * count
    assert len(rising.met) - 1 < count / 4
