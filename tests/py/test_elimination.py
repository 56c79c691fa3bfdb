"""Exact elimination and pruning against brute force and the integer programme."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from graphs import brute_force, random_priced
from hypothesis import given, settings
from hypothesis import strategies as st

from stablehlo_alpa.errors import SolverError
from stablehlo_alpa.intra_op import SolveOptions, solve
from stablehlo_alpa.intra_op.bounds import prune
from stablehlo_alpa.intra_op.elimination import eliminate, elimination_order
from stablehlo_alpa.intra_op.presolve import Core, reduce

SEEDS = st.integers(0, 2**31)
SHAPES = ("tree", "cycle", "dense", "disconnected", "layers")


def random_core(seed: int, shape: str, nodes: int, *, ties: bool, infinite: bool) -> Core:
    """A core with 1 to 4 strategies per node."""
    rng = np.random.default_rng(seed)
    pairs: list[tuple[int, int]] = list(itertools.combinations(range(nodes), 2))
    if shape == "tree":
        pairs = [(int(rng.integers(v)), v) for v in range(1, nodes)]
    elif shape == "cycle":
        pairs = [(v, v + 1) for v in range(nodes - 1)] + ([(0, nodes - 1)] if nodes > 2 else [])
    elif shape == "disconnected":
        pairs = [(u, v) for u, v in pairs if u % 2 == v % 2]
    elif shape == "layers":
        pairs = [(u, v) for u, v in pairs if v - u in (1, 2)]
    sizes = np.full(nodes, 3) if shape == "layers" else rng.integers(1, 5, nodes)

    def draw(*size: int) -> np.ndarray:
        table = rng.integers(0, 3, size).astype(float) if ties else rng.random(size)
        if infinite:
            table[rng.random(size) < 0.2] = np.inf
        return table

    if shape == "layers":  # every layer the same
        step, skip, cost = draw(3, 3), draw(3, 3), draw(3)
        matrices = {(u, v): step if v - u == 1 else skip for u, v in pairs}
        unary = [cost for _ in range(nodes)]
    else:
        matrices = {(u, v): draw(int(sizes[u]), int(sizes[v])) for u, v in pairs}
        unary = [draw(int(k)) for k in sizes]
    near: list[set[int]] = [set() for _ in range(nodes)]
    for u, v in pairs:
        near[u].add(v)
        near[v].add(u)
    return Core([np.arange(k) for k in sizes], unary, matrices, 0.5, near)


def value(core: Core, labels: tuple[int, ...]) -> float:
    return (
        core.constant
        + sum(float(cost[k]) for cost, k in zip(core.unary, labels, strict=True))
        + sum(float(m[labels[u], labels[v]]) for (u, v), m in core.pairs.items())
    )


def least(core: Core) -> float:
    return min(value(core, x) for x in itertools.product(*(range(len(c)) for c in core.unary)))


@settings(max_examples=120, deadline=None)
@given(SEEDS, st.sampled_from(SHAPES), st.integers(1, 6), st.booleans(), st.booleans())
def test_elimination_equals_brute_force(
    seed: int, shape: str, nodes: int, ties: bool, infinite: bool
) -> None:
    core = random_core(seed, shape, nodes, ties=ties, infinite=infinite)
    found = eliminate(core)
    assert found is not None
    assert found.value == pytest.approx(least(core), rel=1e-12)
    assert value(core, tuple(found.labels)) == pytest.approx(found.value, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(SHAPES), st.integers(1, 6), st.booleans())
def test_pruning_keeps_an_optimum(seed: int, shape: str, nodes: int, ties: bool) -> None:
    core = random_core(seed, shape, nodes, ties=ties, infinite=False)
    before = [cost.copy() for cost in core.unary]
    pruned = prune(core, 0)
    assert least(pruned) == pytest.approx(least(core), rel=1e-9)
    assert all(np.array_equal(a, b) for a, b in zip(before, core.unary, strict=True))
    for node, domain in enumerate(pruned.domains):
        assert np.array_equal(core.unary[node][domain], pruned.unary[node])


def test_pruning_makes_elimination_possible() -> None:
    # A grid whose edges cost the distance of the two choices: the relaxation is tight.
    rng = np.random.default_rng(0)
    side, k = 14, 5
    distance = np.abs(np.arange(k)[:, None] - np.arange(k)[None, :]).astype(float)
    nodes = np.arange(side * side).reshape(side, side)
    near: list[set[int]] = [set() for _ in range(side * side)]
    pairs = {}
    for one, two in ((nodes[:-1], nodes[1:]), (nodes[:, :-1], nodes[:, 1:])):
        for u, v in zip(one.ravel().tolist(), two.ravel().tolist(), strict=True):
            pairs[u, v] = distance * rng.random()
            near[u].add(v)
            near[v].add(u)
    unary = [3 * rng.random(k) for _ in range(side * side)]
    core = Core([np.arange(k) for _ in unary], unary, pairs, 0.0, near)
    assert eliminate(core) is None
    pruned = prune(core, 10**4)
    found = eliminate(pruned, max_table=10**4)
    assert found is not None
    # No plan is cheaper: not by moving one node or two neighbours.
    labels = [int(d[i]) for d, i in zip(pruned.domains, found.labels, strict=True)]
    assert value(core, tuple(labels)) == pytest.approx(found.value, rel=1e-12)
    for (u, v), (a, b) in itertools.product(pairs, itertools.product(range(k), repeat=2)):
        moved = labels.copy()
        moved[u], moved[v] = a, b
        assert value(core, tuple(moved)) >= found.value * (1 - 1e-12)


def test_infinite_costs_are_not_pruned() -> None:
    core = random_core(1, "cycle", 5, ties=False, infinite=True)
    core.unary[0][0] = np.inf
    assert prune(core, 0) is core


def test_repeated_layers_are_computed_once() -> None:
    core = random_core(2, "layers", 300, ties=False, infinite=False)
    found = eliminate(core)
    assert found is not None
    assert found.steps == 300
    assert found.computed < 30
    assert value(core, tuple(found.labels)) == pytest.approx(found.value, rel=1e-12)


def test_large_tables_are_given_up() -> None:
    core = random_core(3, "dense", 8, ties=False, infinite=False)
    order = elimination_order(core)
    assert order is not None
    nodes, largest = order
    assert sorted(nodes) == [i for i, cost in enumerate(core.unary) if len(cost) > 1]
    assert eliminate(core, max_table=largest) is not None
    assert eliminate(core, max_table=largest - 1) is None
    assert eliminate(core, max_work=largest) is None
    assert eliminate(core, max_kept=1) is None
    assert eliminate(core, deadline=0.0) is None


@pytest.mark.parametrize("seed", range(10))
def test_elimination_equals_the_integer_programme(seed: int) -> None:
    priced = random_priced(seed, nodes=20, edges=40, strategies=(1, 6), ties=seed % 3 == 0, reach=6)
    eliminated = solve(priced, SolveOptions(method="elimination"))
    programme = solve(priced, SolveOptions(method="ilp", relative_gap=1e-10))
    assert (eliminated.method, programme.method) == ("elimination", "ilp")
    assert eliminated.status == "optimal"
    assert eliminated.objective_s == pytest.approx(programme.objective_s, rel=1e-9)
    core = prune(reduce(priced), 0)
    pruned = eliminate(core)
    assert pruned is not None
    assert pruned.value == pytest.approx(programme.objective_s, rel=1e-9)


def test_the_same_graph_gives_the_same_choice() -> None:
    first, second = (
        solve(random_priced(4, nodes=30, edges=60, ties=True, reach=5)).choice for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_a_binding_budget_goes_to_the_integer_programme() -> None:
    priced = random_priced(7, strategies=(3, 4))
    free = solve(priced)
    assert free.method == "elimination"
    loose = solve(priced, SolveOptions(memory_budget=free.memory_peak_bytes))
    assert loose.method == "elimination"
    budget = 0.5 * (free.memory_peak_bytes + brute_force(priced)[1])
    assert budget < free.memory_peak_bytes
    tight = solve(priced, SolveOptions(memory_budget=budget))
    assert tight.method == "ilp"
    assert tight.objective_s == pytest.approx(brute_force(priced, budget)[0], rel=1e-6)
    with pytest.raises(SolverError, match="cannot keep a memory budget"):
        solve(priced, SolveOptions(memory_budget=budget, method="elimination"))


def test_elimination_alone_says_that_it_gave_up() -> None:
    priced = random_priced(7, nodes=10, edges=20, strategies=(3, 4))
    with pytest.raises(SolverError, match="given up on 10 operators"):
        solve(priced, SolveOptions(method="elimination", time_limit_s=1e-9))


def test_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="method must be one of"):
        SolveOptions(method="magic")  # type: ignore[arg-type]
