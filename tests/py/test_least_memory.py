"""The search for a plan of little memory, against brute force; what a pipeline's stage holds."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from graphs import random_priced

from stablehlo_alpa.intra_op import MemoryModel, in_pipeline
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.in_flight import kept_values
from stablehlo_alpa.intra_op.least_memory import weighted_choice
from stablehlo_alpa.planning.schedules import gpipe, inference, one_f_one_b


@pytest.mark.parametrize("seed", range(60))
def test_weights_bracket_the_least_peak(seed: int) -> None:
    priced = random_priced(seed)
    costs, memory = Costs.of(priced), MemoryModel.of(priced.graph)
    plans = itertools.product(*map(range, costs.sizes.tolist()))
    least = min(memory.peak(costs.decode(plan))[0] for plan in plans)
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


def test_micro_batches_in_flight_are_those_of_the_textbook() -> None:
    """1F1B keeps as many as there are stages to the end, GPipe all, inference the one that runs."""
    assert [one_f_one_b(4, 8).most_in_flight(stage) for stage in range(4)] == [4, 3, 2, 1]
    assert [one_f_one_b(4, 2).most_in_flight(stage) for stage in range(4)] == [2, 2, 2, 1]
    assert [gpipe(3, 8).most_in_flight(stage) for stage in range(3)] == [8, 8, 8]
    assert inference(range(3), 8).most_in_flight(0) == 1
