"""The exact solver against brute force and the integer programme."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from graphs import brute_force, random_priced
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stablehlo_alpa import _core
from stablehlo_alpa.errors import SolverError
from stablehlo_alpa.intra_op import SolveOptions, solve
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.exact import drop, minimize

SEEDS = st.integers(0, 2**31)
SHAPES = ("tree", "cycle", "series-parallel", "dense", "disconnected", "layers", "edgeless")


def pairs_of(rng: np.random.Generator, shape: str, nodes: int) -> list[tuple[int, int]]:
    """Edges of a graph of some shape."""
    everything = list(itertools.combinations(range(nodes), 2))
    if shape == "tree":
        return [(int(rng.integers(v)), v) for v in range(1, nodes)]
    if shape == "cycle":
        return [(v, v + 1) for v in range(nodes - 1)] + ([(0, nodes - 1)] if nodes > 2 else [])
    if shape == "series-parallel":
        edges = {(0, 1)} if nodes > 1 else set()
        for v in range(2, nodes):  # a new node beside, or in place of, an edge
            u, w = sorted(edges)[int(rng.integers(len(edges)))]
            if rng.random() < 0.5:
                edges.discard((u, w))
            edges |= {(u, v), (w, v)}
        return sorted(edges)
    if shape == "disconnected":
        return [(u, v) for u, v in everything if u % 2 == v % 2]
    if shape == "layers":
        return [(u, v) for u, v in everything if v - u in (1, 2)]
    return everything if shape == "dense" else []


def costs_of(sizes: list[int], node_s: list, edges: list, tables: list) -> Costs:
    """A problem all of whose strategies are allowed."""
    sizes_ = np.array(sizes, np.int64)
    return Costs(
        rows=np.arange(int(sizes_.sum())),
        sizes=sizes_,
        node_s=np.concatenate([np.zeros(0), *node_s]),
        edges=np.array(edges, np.int64).reshape(-1, 2),
        tables=tuple(tables),
        first=np.concatenate([[0], np.cumsum(sizes_)])[:-1].astype(np.int64),
    )


def random_costs(
    seed: int, shape: str, nodes: int, *, ties: bool = False, infinite: bool = False
) -> Costs:
    """A problem of 1 to 4 strategies per node; "layers" repeats one layer."""
    rng = np.random.default_rng(seed)
    edges = pairs_of(rng, shape, nodes)
    is_layered = shape == "layers"
    sizes = [3] * nodes if is_layered else rng.integers(1, 5, nodes).tolist()

    def draw(*size: int) -> np.ndarray:
        table = rng.integers(0, 3, size).astype(float) if ties else rng.random(size)
        if infinite:
            table[rng.random(size) < 0.2] = np.inf
        return table

    if is_layered:
        step, skip, cost = draw(3, 3), draw(3, 3), draw(3)
        tables = [step if v - u == 1 else skip for u, v in edges]
        return costs_of(sizes, [cost] * nodes, edges, tables)
    tables = [draw(sizes[u], sizes[v]) for u, v in edges]
    return costs_of(sizes, [draw(k) for k in sizes], edges, tables)


def grid_costs(side: int, k: int) -> Costs:
    """A grid whose edges cost the distance of the two choices."""
    rng = np.random.default_rng(0)
    distance = np.abs(np.arange(k)[:, None] - np.arange(k)[None, :]).astype(float)
    nodes = np.arange(side * side).reshape(side, side)
    edges = [
        (u, v)
        for one, two in ((nodes[:-1], nodes[1:]), (nodes[:, :-1], nodes[:, 1:]))
        for u, v in zip(one.ravel().tolist(), two.ravel().tolist(), strict=True)
    ]
    tables = [distance * rng.random() for _ in edges]
    return costs_of([k] * side**2, [3 * rng.random(k) for _ in nodes.ravel()], edges, tables)


def plans(costs: Costs) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(k) for k in costs.sizes.tolist())))


def least(costs: Costs) -> float:
    return min(costs.value(x) for x in plans(costs))


# Above this size strategies are dropped by the bound first: always, or never.
@pytest.mark.parametrize("small_table", [0, None])
@settings(max_examples=200, deadline=None)
@given(SEEDS, st.sampled_from(SHAPES), st.integers(1, 6), st.booleans(), st.booleans())
def test_minimum_equals_brute_force(
    small_table: int | None, seed: int, shape: str, nodes: int, ties: bool, infinite: bool
) -> None:
    costs = random_costs(seed, shape, nodes, ties=ties, infinite=infinite)
    found = minimize(costs, small_table=small_table)
    best = least(costs)
    if not np.isfinite(best):
        assert found.status == "infeasible"
        return
    assert found.status == "optimal"
    assert found.bound == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert costs.value(found.labels) == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert least(costs.restrict(found.kept)) == pytest.approx(best, rel=1e-9, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from(SHAPES), st.integers(1, 5), st.booleans(), st.floats(1.0, 1.5))
def test_dropping_keeps_every_plan_below_the_cutoff(
    seed: int, shape: str, nodes: int, ties: bool, slack: float
) -> None:
    costs = random_costs(seed, shape, nodes, ties=ties)
    best = least(costs)
    cutoff = slack * best
    kept, bound = drop(costs, cutoff, sweeps=20)
    assert bound <= best + 1e-12
    used = costs.union([np.array(x) for x in plans(costs) if costs.value(x) <= cutoff])
    assert (kept | ~used).all()


def test_dropping_makes_elimination_possible() -> None:
    # The relaxation of the grid is tight, its tables would be large.
    costs = grid_costs(14, 5)
    assert minimize(costs, max_table=10**4, small_table=10**9).status == "optimal"
    found = minimize(costs, max_table=10**4, small_table=10**4)
    assert found.status == "optimal"
    assert found.sweeps > 0
    assert costs.value(found.labels) == pytest.approx(found.bound, rel=1e-12)
    # No plan is cheaper: not by moving one node or two neighbours.
    for (u, v), (a, b) in itertools.product(
        costs.edges.tolist(), itertools.product(range(5), repeat=2)
    ):
        moved = found.labels.copy()
        moved[u], moved[v] = a, b
        assert costs.value(moved) >= found.bound * (1 - 1e-12)


@pytest.mark.parametrize("max_branches", [0, 1, 10, None])
@settings(max_examples=100, deadline=None)
@given(SEEDS, st.sampled_from(SHAPES), st.integers(1, 6), st.booleans(), st.booleans())
@example(64796, "dense", 6, False, True)  # no plan is met before the first branch
def test_branching_equals_brute_force(
    max_branches: int | None, seed: int, shape: str, nodes: int, ties: bool, infinite: bool
) -> None:
    """No table is small enough: what dropping leaves is branched on, or given up."""
    costs = random_costs(seed, shape, nodes, ties=ties, infinite=infinite)
    found = minimize(costs, max_table=0, small_table=0, max_branches=max_branches)
    best = least(costs)
    if not np.isfinite(best):
        assert found.status == "infeasible" or not np.isfinite(costs.value(found.labels))
        return
    assert found.bound <= best * (1 + 1e-9) + 1e-12
    assert costs.value(found.labels) >= best * (1 - 1e-9)
    assert least(costs.restrict(found.kept)) == pytest.approx(best, rel=1e-9, abs=1e-12)
    if found.status == "optimal":
        assert costs.value(found.labels) == pytest.approx(best, rel=1e-9, abs=1e-12)
        assert found.bound == pytest.approx(best, rel=1e-9, abs=1e-12)
    elif max_branches is None:
        # All choices of six nodes are not more than are looked at.
        assert found.status == "given up"
        assert len(plans(costs)) > 64


def hub_costs(steps: int, seed: int) -> Costs:
    """A ladder of two rails whose every node meets one more, which all but agree on."""
    rng = np.random.default_rng(seed)
    size = 6
    edges = [(0, v) for v in range(1, 2 * steps + 1)]
    edges += [(v, v + 2) for v in range(1, 2 * steps - 1)]
    edges += [(v, v + 1) for v in range(1, 2 * steps, 2)]
    edges += [(v, v + 3) for v in range(1, 2 * steps - 2)]
    tables = [rng.random((size, size)) for _ in edges]
    return costs_of([size] * (2 * steps + 1), [np.zeros(size)] * (2 * steps + 1), edges, tables)


@pytest.mark.parametrize("seed", range(5))
def test_what_all_others_depend_on_is_branched_on(seed: int) -> None:
    costs = hub_costs(12, seed)
    expected = minimize(costs)
    assert expected.status == "optimal"
    table = expected.largest // 4
    alone = minimize(costs, max_table=table, small_table=table, max_branches=0)
    found = minimize(costs, max_table=table, small_table=table)
    assert found.status == "optimal"
    assert found.bound == pytest.approx(expected.bound, rel=1e-9)
    assert alone.bound <= found.bound * (1 + 1e-9)


def test_repeated_layers_are_computed_once() -> None:
    def ladder(nodes: int) -> Costs:
        # Each node meets the four before it: no node has two neighbours only.
        rng = np.random.default_rng(2)
        tables = [rng.random((3, 3)) for _ in range(5)]
        edges = [(u, v) for u, v in itertools.combinations(range(nodes), 2) if v - u < 5]
        cost = rng.random(3)
        matrices = [tables[v - u] for u, v in edges]
        return costs_of([3] * nodes, [cost] * nodes, edges, matrices)

    cache = _core.SolverCache()
    costs = ladder(300)
    found = minimize(costs, cache=cache, small_table=10**9)
    assert found.steps > 250
    assert found.computed < 60
    assert costs.value(found.labels) == pytest.approx(found.bound, rel=1e-12)
    # The same layers in a longer stack are known from the first call.
    longer = minimize(ladder(400), cache=cache, small_table=10**9)
    assert longer.computed < 10


def test_large_tables_are_given_up_with_a_plan() -> None:
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(8), 2))
    tables = [rng.random((6, 6)) for _ in edges]
    costs = costs_of([6] * 8, [np.zeros(6)] * 8, edges, tables)
    found = minimize(costs, small_table=10**9)
    assert found.status == "optimal"
    assert found.width > 2
    refusals: tuple[dict[str, Any], ...] = (
        {"max_table": found.largest - 1},
        {"max_work": found.largest},
    )
    for limits in refusals:
        refused = minimize(costs, small_table=0, max_branches=0, **limits)
        if refused.status == "optimal":  # dropping alone was enough
            assert refused.largest < found.largest
            continue
        assert refused.status == "given up"
        assert costs.value(refused.labels) >= found.bound * (1 - 1e-12)
        assert refused.bound <= found.bound * (1 + 1e-12)
    late = minimize(costs, limit_s=0.0)
    assert late.status == "given up"
    assert late.bound <= found.bound * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_elimination_equals_the_integer_programme(seed: int) -> None:
    priced = random_priced(seed, nodes=20, edges=40, strategies=(1, 6), ties=seed % 3 == 0, reach=6)
    eliminated = solve(priced, SolveOptions(method="elimination"))
    programme = solve(priced, SolveOptions(method="ilp", relative_gap=1e-10))
    assert (eliminated.method, programme.method) == ("elimination", "ilp")
    assert eliminated.status == "optimal"
    assert eliminated.objective_s == pytest.approx(programme.objective_s, rel=1e-9)


def test_the_same_graph_gives_the_same_choice() -> None:
    first, second = (
        solve(random_priced(4, nodes=30, edges=60, ties=True, reach=5)).choice for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_a_cache_does_not_change_the_plan() -> None:
    cache = _core.SolverCache()
    for seed in range(6):
        priced = random_priced(seed, nodes=12, edges=30, strategies=(2, 4), ties=True)
        assert np.array_equal(solve(priced).choice, solve(priced, cache=cache).choice)


def test_a_binding_budget_is_priced() -> None:
    priced = random_priced(7, strategies=(3, 4))
    free = solve(priced)
    assert free.method == "elimination"
    assert free.memory_price_s == 0
    loose = solve(priced, SolveOptions(memory_budget=free.memory_peak_bytes))
    assert loose.method == "elimination"
    budget = 0.5 * (free.memory_peak_bytes + brute_force(priced)[1])
    assert budget < free.memory_peak_bytes
    tight = solve(priced, SolveOptions(memory_budget=budget))
    assert tight.method in ("lagrangian", "ilp")
    assert tight.memory_price_s > 0
    assert tight.objective_s == pytest.approx(brute_force(priced, budget)[0], rel=1e-6)
    with pytest.raises(SolverError, match="cannot keep a memory budget"):
        solve(priced, SolveOptions(memory_budget=budget, method="elimination"))


def test_elimination_alone_says_that_it_gave_up() -> None:
    priced = random_priced(7, nodes=10, edges=40, strategies=(3, 4))
    with pytest.raises(SolverError, match="given up on 10 operators"):
        solve(priced, SolveOptions(method="elimination", time_limit_s=1e-9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": [2, 0]}, "a node has 0 choices"),
        ({"node_costs": [0.0, 1.0, 2.0]}, "nodes have 4 choices, costs of 3 are given"),
        ({"edge_nodes": [0, 2]}, "edge 0 joins 0 and 2"),
        ({"edge_nodes": [1, 1]}, "edge 0 joins 1 and 1"),
        ({"edge_costs": [0.0]}, "edges have 4 pairs of choices, costs of 1 are given"),
        ({"edge_costs": [0.0, 1.0, np.nan, 2.0]}, "a cost is NaN or -inf"),
    ],
)
def test_wrong_arrays_are_refused(change: dict, message: str) -> None:
    arrays: dict[str, Any] = {
        "sizes": [2, 2],
        "node_costs": [0.0, 1.0, 2.0, 0.0],
        "edge_nodes": [0, 1],
        "edge_costs": [0.0, 1.0, 1.0, 0.0],
    }
    assert _core.minimize(**arrays)["bound"] == 1.0
    with pytest.raises(_core.CompilerError, match=message):
        _core.minimize(**(arrays | change))


def test_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="method must be one of"):
        SolveOptions(method="magic")  # type: ignore[arg-type]
