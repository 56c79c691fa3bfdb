"""Memory budgets."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from graphs import brute_force, random_priced
from hypothesis import example, given, settings
from hypothesis import strategies as st
from often import one_in

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, PipeshardParallel, UniformStages, _core
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.inter_op.stage_pricing import StagePrice, StagePricing
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.intra_op import MemoryModel, SolveOptions, solve
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.exact import minimize
from stablehlo_alpa.intra_op.ilp import TOLERANCE
from stablehlo_alpa.intra_op.lagrangian import price_memory
from stablehlo_alpa.intra_op.least_memory import least_memory
from stablehlo_alpa.intra_op.relink import Parts
from stablehlo_alpa.intra_op.work import Work
from stablehlo_alpa.planning.memory_kinds import MemoryKind, memory_by_kind
from stablehlo_alpa.planning.planner import over_budget
from stablehlo_alpa.planning.saved_plan import SavedPlan


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.floats(-0.2, 1.1), st.booleans())
def test_budget_equals_brute_force(seed: int, share: float, ties: bool) -> None:
    priced = random_priced(seed, nodes=5, ties=ties)
    free = solve(priced)
    least = brute_force(priced)[1]
    budget = least + share * (free.memory_peak_bytes - least) if share >= 0 else 0.8 * least
    best = brute_force(priced, budget)[0]
    if not np.isfinite(best):
        with pytest.raises(InfeasibleError) as error:
            solve(priced, SolveOptions(memory_budget=budget))
        assert error.value.needed_bytes == pytest.approx(least, rel=1e-6)
        assert error.value.budget_bytes == budget
        assert error.value.largest
        return
    solution = solve(priced, SolveOptions(memory_budget=budget))
    assert solution.memory_peak_bytes <= budget * (1 + 1e-5)
    assert solution.objective_s == pytest.approx(best, rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31))
def test_maximal_points_hold_the_peak(seed: int) -> None:
    graph = random_priced(seed, values=6, points=9).graph
    memory = MemoryModel.of(graph)
    choice = np.zeros(graph.num_nodes, int)
    sizes = np.concatenate([memory.value_bytes(choice), memory.copy_bytes(choice)])
    starts = np.concatenate([graph.value_start, graph.copy_start])
    ends = np.concatenate([graph.value_end, graph.copy_end])
    by_hand = [
        sum(b for b, start, end in zip(sizes, starts, ends, strict=True) if start <= p <= end)
        for p in range(graph.num_points)
    ]
    assert memory.usage(choice) == pytest.approx(by_hand, abs=1e-3)
    assert memory.peak(choice)[0] == pytest.approx(max(by_hand))
    rows = memory.rows(memory.points)
    one_hot = np.zeros(len(graph.strategy_label))
    one_hot[graph.node_offset[:-1]] = 1
    pairs = [sum(table[0, 0] for table in memory.pairs(p).values()) for p in memory.points.tolist()]
    assert (rows @ one_hot + pairs).max() == pytest.approx(max(by_hand))


def test_tied_costs_under_a_budget_that_branches() -> None:
    priced = random_priced(44, nodes=6, strategies=(3, 4), edges=25, ties=True)
    priced.compute_s[:] *= 0.05
    best = brute_force(priced, 5.3e6)[0]
    solution = solve(priced, SolveOptions(memory_budget=5.3e6))
    assert solution.objective_s == pytest.approx(best, rel=1e-6)


def test_a_near_gap_is_closed_in_seconds_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What prices of memory leave is closed in all there is left where it is wide alone."""
    solver = sys.modules["stablehlo_alpa.intra_op.solver"]
    gaps, left = [], []
    price, cut = solver.price_memory, solver._cut

    def priced_memory(*args: Any, **kwargs: Any) -> Any:
        found = price(*args, **kwargs)
        gaps.append(found.gap)
        return found

    def limited_cut(*args: Any) -> Any:
        left.append(args[-1].left_s())
        return cut(*args)

    monkeypatch.setattr(solver, "price_memory", priced_memory)
    monkeypatch.setattr(solver, "_cut", limited_cut)
    priced = random_priced(44, nodes=6, strategies=(3, 4), edges=25, ties=True)
    priced.compute_s[:] *= 0.05

    def solved(good_gap: float) -> float:
        options = SolveOptions(memory_budget=5.3e6, budget_gap=good_gap, time_limit_s=500)
        solution = solve(priced, options)
        assert solution.objective_s == pytest.approx(brute_force(priced, 5.3e6)[0], rel=1e-6)
        return left.pop()

    wide = solved(1e-9)
    assert gaps[0] > 1e-6
    near = solved(gaps[0] / 2)
    assert near <= solver._NEAR_S < 400 < wide <= 500


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.95))
@example(397517, 0.0)  # the first strategies take several times the least
def test_price_is_the_slope_of_the_bound(seed: int, share: float) -> None:
    """Weak duality: at another budget no plan is cheaper than the priced bound says."""
    priced = random_priced(seed, nodes=5, edges=8, strategies=(2, 4))
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    free = costs.encode(solve(priced).choice)
    peak = memory.peak(costs.decode(free))[0]
    lean, least, bound = least_memory(costs, memory, Work.of(60.0), 1e-9)
    assert bound == pytest.approx(least, rel=1e-6)
    assert least == pytest.approx(brute_force(priced)[1], rel=1e-6)
    budget = least + share * (peak - least)
    if budget >= peak * (1 - 1e-9):
        return
    cache = _core.SolverCache()
    found = price_memory(costs, memory, budget, [free, lean], cache=cache, work=Work.of(60.0))
    assert memory.peak(costs.decode(found.labels))[0] <= budget * (1 + 1e-6)
    assert costs.value(found.labels) == pytest.approx(found.value, rel=1e-12)
    for other in np.linspace(least, peak, 5):
        best = brute_force(priced, other)[0]
        assert best >= found.bound - found.prices.sum() * (other - budget) - 1e-9 * abs(best)


@pytest.mark.parametrize("seed", one_in(2, range(12)))
def test_a_search_that_begins_with_another_budget_is_as_good(seed: int) -> None:
    priced = random_priced(seed, nodes=6, edges=10, strategies=(2, 4))
    free, least = solve(priced), brute_force(priced)[1]
    room = free.memory_peak_bytes - least
    if room < 1e-6 * least:
        pytest.skip("the least peak is that of the fastest plan")
    before = solve(priced, SolveOptions(memory_budget=least + 0.7 * room))
    for share in (0.0, 0.3, 0.69, 0.95):
        budget = least * (1 + 1e-9) + share * room
        best = brute_force(priced, budget)[0]
        for price in (None, before.memory_price_s or None, 1e3 * before.memory_price_s or None):
            options = SolveOptions(memory_budget=budget)
            found = solve(priced, options, before=[before], memory_price=price)
            assert found.memory_peak_bytes <= budget * (1 + 1e-6)
            assert best * (1 - 1e-6) <= found.objective_s <= best * (1 + 1e-3)
            assert found.objective_s * (1 - found.gap) <= best * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_budget_may_be_exceeded_by_rounding(seed: int) -> None:
    priced = random_priced(seed, nodes=6, edges=10, strategies=(2, 4))
    least = brute_force(priced)[1]
    before = solve(priced, SolveOptions(memory_budget=least * (1 + 1e-9)))
    options = SolveOptions(memory_budget=least / (1 + TOLERANCE / 2))
    found = solve(priced, options, before=[before], memory_price=before.memory_price_s or None)
    assert found.memory_peak_bytes == pytest.approx(least)


def refusal_of(priced: Any, options: SolveOptions) -> InfeasibleError | None:
    try:
        solve(priced, options)
    except InfeasibleError as error:
        return error
    return None


@pytest.mark.parametrize("limit_s", [1e-9, 60.0])
def test_a_refusal_is_a_proof_only_where_it_says_so(limit_s: float) -> None:
    proved = unproved = 0
    for seed in range(30):
        priced = random_priced(seed, nodes=5, edges=8, strategies=(2, 4))
        least = brute_force(priced)[1]
        for budget in (0.5 * least, 0.97 * least, least * (1 + 1e-9)):
            error = refusal_of(priced, SolveOptions(memory_budget=budget, time_limit_s=limit_s))
            if error is None:
                continue
            assert error.least_bytes is not None
            assert error.needed_bytes is not None
            assert error.least_bytes <= least * (1 + 1e-6)
            assert error.needed_bytes >= least * (1 - 1e-6)
            assert not error.is_proved or budget < least
            assert error.is_proved or "found within" in str(error)
            proved, unproved = proved + error.is_proved, unproved + (not error.is_proved)
    assert proved > 30
    assert unproved == 0 if limit_s > 1 else unproved > 2


def test_a_stage_that_may_fit_is_not_ruled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(least_bytes: float) -> Any:
        pricing = StagePricing.__new__(StagePricing)
        pricing._refusals = {}
        error = InfeasibleError("", needed_bytes=5.0, budget_bytes=4.0, least_bytes=least_bytes)
        monkeypatch.setattr(pricing, "_solution", lambda *_: error, raising=False)
        return pricing.price(0, 1, Submesh(1, 1, (1,)), 1)

    assert refused(4.5) is None
    assert refused(3.5) == StagePrice(np.inf, 0.0)


def _chain(length: int, pairs: int, border_s: float) -> Costs:
    """A chain of layers of ``pairs`` operators each that change layout at a price only."""
    size = length * pairs
    shuffled = np.random.default_rng(0).permutation(size)
    edges = np.stack([np.arange(size - 1), np.arange(1, size)], axis=1)
    table = border_s * (1.0 - np.eye(2))
    ends = np.sort(shuffled[edges], axis=1)
    costs = Costs(
        rows=np.arange(2 * size),
        sizes=np.full(size, 2),
        node_s=np.tile([0.0, 1.0], size),
        edges=ends,
        tables=(table,) * len(edges),
        first=2 * np.arange(size),
    )
    return costs


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_parts_between_two_layouts_are_found(share: float) -> None:
    costs = _chain(20, 4, border_s=5.0)
    size = len(costs.sizes)
    cache = _core.SolverCache()
    price = np.tile([1.0, 0.0], size)  # bytes of the cheap and of the dear layout

    def answer(factors: np.ndarray) -> np.ndarray:
        paid = costs.with_node_s(costs.node_s + np.repeat(factors, costs.sizes) * price)
        return minimize(paid, cache=cache).labels

    # One price for all: the whole chain is in one layout or in the other.
    plans = [answer(np.full(size, factor)) for factor in (0.5, 0.99, 1.01, 1.5)]
    assert {int(plan.sum()) for plan in plans} == {0, size}
    parts, best = Parts(costs), np.inf
    for factors in parts:
        plan = answer(2.0 * factors - 0.5)
        used = size - int(plan.sum())
        parts.answer(used <= share * size)
        if used <= share * size:
            best = min(best, costs.value(plan))
    # The least possible has one border, and as many cheap operators as the budget allows; the
    # bisection is as fine as its number of steps.
    least = size - int(share * size) + 5.0
    assert least <= best <= least + size / 2**5


def test_parts_of_graphs_without_an_order() -> None:
    """No edges, or one hub that joins all operators."""
    for edges in (np.zeros((0, 2), np.int64), np.stack([np.zeros(40, int), np.arange(1, 41)], 1)):
        costs = Costs(
            rows=np.arange(82),
            sizes=np.full(41, 2),
            node_s=np.zeros(82),
            edges=edges,
            tables=(np.zeros((2, 2)),) * len(edges),
            first=2 * np.arange(41),
        )
        factors = list(Parts(costs))
        assert len(factors) == 12
        assert all(len(set(x)) == 2 for x in factors)


def test_a_refusal_names_the_program_that_runs_where_most_is_held() -> None:
    """The update reads more than the backward phase, but beside this one the moments wait."""
    optimiser = optax.adam(1e-3)
    params = [jnp.zeros((256, 256)) for _ in range(4)]

    def loss(params: list[jax.Array], x: jax.Array) -> jax.Array:
        for weight in params:
            x = jnp.tanh(x @ weight)
        return jnp.mean(x**2)

    def step(params: Any, state: Any, x: jax.Array) -> Any:
        updates, state = optimiser.update(stablehlo_alpa.grad(loss)(params, x), state)
        return optax.apply_updates(params, updates), state

    method = PipeshardParallel(
        num_micro_batches=2,
        layers=AutoLayers(2, remat=False),
        stages=UniformStages(2, (1,)),
        schedule="1f1b",
    )
    parallel = stablehlo_alpa.parallelize(
        step, method=method, cluster="cpu:1x2", donate_argnums=(0, 1)
    )
    plan = parallel.plan(params, optimiser.init(params), jnp.zeros((256, 256)))
    phases = {phase.name: phase for phase in plan.stages[0].phases}
    read = {name: sum(bytes_ for _, bytes_ in phase.live) for name, phase in phases.items()}
    assert read["backward"] < read["apply_0"]
    assert MemoryKind.WORKSPACE in memory_by_kind(SavedPlan.of(plan), 0)
    assert "largest live tensors of its backward program" in str(over_budget(plan, 0, 1.0))
