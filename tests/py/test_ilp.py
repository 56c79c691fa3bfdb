"""The integer programme against brute force."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from graphs import CPU, brute_force, cpu_mesh, random_arrays, random_priced
from hypothesis import given, settings
from hypothesis import strategies as st

from stablehlo_alpa.cost import StrategyGraph, price
from stablehlo_alpa.errors import InfeasibleError, ShardingError
from stablehlo_alpa.intra_op import SolveOptions, StrategyTable, explain, solve
from stablehlo_alpa.intra_op.quiet import Quiet

SEEDS = st.integers(0, 2**31)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 6), st.booleans())
def test_optimum_equals_brute_force(seed: int, nodes: int, ties: bool) -> None:
    priced = random_priced(seed, nodes=nodes, edges=8, ties=ties)
    solution = solve(priced)
    assert solution.objective_s == pytest.approx(brute_force(priced)[0], rel=1e-6)
    assert solution.objective_s == pytest.approx(sum(priced.split(solution.choice)), rel=1e-12)
    assert solution.status == "optimal"
    assert solution.gap <= 1e-6


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_masks_are_kept(seed: int) -> None:
    graph = StrategyGraph.from_arrays(random_arrays(seed))
    rng = np.random.default_rng(seed)
    masks = {}
    for node in rng.choice(graph.num_nodes, 2, replace=False).tolist():
        mask = rng.random(int(graph.num_strategies[node])) < 0.5
        mask[rng.integers(len(mask))] = True
        masks[node] = mask
    priced = price(graph.restrict(masks), cpu_mesh(), CPU)
    solution = solve(priced)
    assert all(mask[solution.choice[node]] for node, mask in masks.items())
    assert solution.objective_s == pytest.approx(brute_force(priced)[0], rel=1e-6)


def test_the_same_graph_gives_the_same_choice() -> None:
    first, second = (solve(random_priced(3, nodes=6, ties=True)).choice for _ in range(2))
    assert np.array_equal(first, second)


def test_empty_mask_names_the_operator() -> None:
    graph = StrategyGraph.from_arrays(random_arrays(0))
    with pytest.raises(InfeasibleError, match=r"layer_1/dot.*pinned"):
        graph.restrict({1: np.zeros(int(graph.num_strategies[1]), bool)})


def test_wrong_mask_shape_is_refused() -> None:
    graph = StrategyGraph.from_arrays(random_arrays(0))
    with pytest.raises(ShardingError, match="shape"):
        graph.restrict({0: [True] * 99})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("edge_plan", 99, "edge_plan holds"),
        ("value_end", -1, "value_end holds"),
        ("strategy_flops", np.nan, "strategy_flops must be finite"),
        ("node_offset", 7, "node_offset must rise"),
    ],
)
def test_bad_arrays_are_refused(key: str, value: float, message: str) -> None:
    arrays = random_arrays(1)
    arrays[key] = np.array(arrays[key], copy=True)
    arrays[key][0] = value
    with pytest.raises(ShardingError, match=message):
        StrategyGraph.from_arrays(arrays)


def test_missing_array_is_named() -> None:
    arrays = random_arrays(1)
    del arrays["edge_plan"]
    with pytest.raises(ShardingError, match="edge_plan"):
        StrategyGraph.from_arrays(arrays)


def test_time_limit_still_gives_a_plan() -> None:
    priced = random_priced(5, nodes=60, edges=150, strategies=(4, 8))
    solution = solve(priced, SolveOptions(time_limit_s=1e-9))
    assert solution.status in ("optimal", "time limit")
    assert solution.gap >= 0
    assert (solution.choice < priced.graph.num_strategies).all()


def test_explain_lists_strategies_and_reason() -> None:
    priced = random_priced(2, strategies=(3, 4))
    solution = solve(priced)
    explanation = explain([StrategyTable.of(priced, solution)], "layer_2")
    chosen = [s for s in explanation.strategies if s.is_chosen]
    assert len(chosen) == 1
    assert chosen[0].total_s == min(s.total_s for s in explanation.strategies)
    assert chosen[0].label in explanation.reason
    assert "strategy" in str(explanation)


def test_explain_names_the_closest() -> None:
    priced = random_priced(2)
    with pytest.raises(ShardingError, match="closest are: layer_"):
        explain([StrategyTable.of(priced, solve(priced))], "layr_2/dott")
    with pytest.raises(ShardingError, match="part of 5 operators"):
        explain([StrategyTable.of(priced, solve(priced))], "dot")


def test_warnings_are_kept_back_until_the_last_thread_has_left() -> None:
    quiet = Quiet("cut short")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        first, second = quiet(), quiet()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        warnings.warn("cut short by time", stacklevel=1)
        warnings.warn("something else", stacklevel=1)
        second.__exit__(None, None, None)
        warnings.warn("cut short again", stacklevel=1)
    assert [str(one.message) for one in seen] == ["something else", "cut short again"]
