"""The search for a plan of little memory, against brute force; what a pipeline's stage holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from graphs import random_priced

from stablehlo_alpa.intra_op import MemoryModel, SolverCache, in_pipeline
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.in_flight import kept_values
from stablehlo_alpa.intra_op.least_memory import least_memory, usual_choice, weighted_choice
from stablehlo_alpa.intra_op.work import Work
from stablehlo_alpa.planning.schedules import gpipe, inference, one_f_one_b


def plans_of(costs: Costs) -> Iterator[tuple[int, ...]]:
    """All of them, places within each node."""
    return itertools.product(*map(range, costs.sizes.tolist()))


@pytest.mark.parametrize("seed", range(60))
def test_weights_bound_the_least_peak_where_operators_gather(seed: int) -> None:
    priced = random_priced(seed)
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    least = min(memory.peak(costs.decode(plan))[0] for plan in plans_of(costs))
    labels, bound = weighted_choice(costs, memory, least)
    assert bound <= least * (1 + 1e-9)
    assert memory.peak(costs.decode(labels))[0] >= least * (1 - 1e-9)
    # So do all points alike, where a plan pays for copies as well.
    labels, bound = usual_choice(costs, memory, SolverCache(), Work.of(60.0))
    usual = [np.mean(memory.usage(costs.decode(one))[memory.points]) for one in plans_of(costs)]
    assert bound == pytest.approx(min(usual))
    assert bound <= least * (1 + 1e-9)
    chosen = memory.usage(costs.decode(labels))[memory.points]
    assert np.mean(chosen) == pytest.approx(bound)
    # The programme finds it.
    labels, peak, bound = least_memory(costs, memory, Work.of(60.0), 0.0)
    assert peak == pytest.approx(least)
    assert bound == pytest.approx(least, rel=1e-5)
    assert memory.peak(costs.decode(labels))[0] == pytest.approx(least)


@pytest.mark.parametrize("seed", range(60))
def test_weights_bracket_the_least_peak(seed: int) -> None:
    priced = random_priced(seed, gathers=False)
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    least = min(memory.peak(costs.decode(plan))[0] for plan in plans_of(costs))
    labels, bound = weighted_choice(costs, memory, least)
    peak = memory.peak(costs.decode(labels))[0]
    assert bound <= least * (1 + 1e-9)
    assert least * (1 - 1e-9) <= peak <= 1.3 * least
    # A budget with some room is met.
    labels, _ = weighted_choice(costs, memory, 1.3 * least)
    assert memory.peak(costs.decode(labels))[0] <= 1.3 * least * (1 + 1e-9)


def test_every_micro_batch_in_flight_keeps_its_activations() -> None:
    graph = random_priced(3).graph
    graph = replace(graph, num_forward_points=graph.num_points // 2)
    choice = np.zeros(graph.num_nodes, np.int64)
    kept = float(MemoryModel.of(graph).value_bytes(choice)[kept_values(graph)].sum())
    assert kept > 0
    one = MemoryModel.of(graph).peak(choice)[0]
    three = MemoryModel.of(in_pipeline(graph, 3, 4)).peak(choice)[0]
    assert three == pytest.approx(one + 2 * kept)
    assert in_pipeline(graph, 1, 1) is graph


def test_what_the_backward_phase_is_given_is_there_until_it_ends() -> None:
    graph = random_priced(3).graph
    half, most = graph.num_points // 2, graph.num_points - 1
    graph = replace(graph, num_forward_points=half, num_backward_points=most)
    kept = kept_values(graph)
    assert kept.any()
    found = in_pipeline(graph, 1, 1)
    assert (found.value_end[kept] == np.maximum(graph.value_end[kept], most - 1)).all()
    assert np.array_equal(found.value_end[~kept], graph.value_end[~kept])


def test_micro_batches_in_flight_are_those_of_the_textbook() -> None:
    """1F1B keeps as many as there are stages to the end, GPipe all, inference the one that runs."""
    assert [one_f_one_b(4, 8).most_in_flight(stage) for stage in range(4)] == [4, 3, 2, 1]
    assert [one_f_one_b(4, 2).most_in_flight(stage) for stage in range(4)] == [2, 2, 2, 1]
    assert [gpipe(3, 8).most_in_flight(stage) for stage in range(3)] == [8, 8, 8]
    assert inference(range(3), 8).most_in_flight(0) == 1
