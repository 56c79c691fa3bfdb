"""What stages wait for each other's values, against events and the simulation of whole plans."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_layer_parts import LAYERS, WIDTH, shapes, step
from test_stage_bounds import Table

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, ClusterSpec, ManualStages, PipeshardParallel
from stablehlo_alpa.cluster import preset_for
from stablehlo_alpa.inter_op.pipeline_search import PipelineSearch, SearchLimits
from stablehlo_alpa.inter_op.stage_choices import StageChoice
from stablehlo_alpa.inter_op.stage_search import latency
from stablehlo_alpa.inter_op.submeshes import Submesh, first_devices
from stablehlo_alpa.inter_op.transfer_waits import TransferWaits, period

SECONDS = st.floats(0.1, 4.0)


def step_of_events(
    forward: list[float], backward: list[float], ahead: list[float], back: list[float], count: int
) -> float:
    """Seconds of a 1F1B step: every task waits for the one before it and for its value."""
    num = len(forward)
    orders = []
    for stage in range(num):
        early = min(num - 1 - stage, count)
        order = [("f", i) for i in range(early)]
        for i in range(count - early):
            order += [("f", early + i), ("b", i)]
        orders.append(order + [("b", i) for i in range(count - early, count)])
    ends: dict[tuple[int, str, int], float] = {}
    clock, at = [0.0] * num, [0] * num
    while any(at[stage] < len(orders[stage]) for stage in range(num)):
        for stage in range(num):
            while at[stage] < len(orders[stage]):
                kind, i = orders[stage][at[stage]]
                arrives = 0.0
                if kind == "f" and stage:
                    arrives = ends.get((stage - 1, "f", i), math.nan) + ahead[stage - 1]
                if kind == "b" and stage < num - 1:
                    arrives = ends.get((stage + 1, "b", i), math.nan) + back[stage]
                if math.isnan(arrives):
                    break
                own = forward if kind == "f" else backward
                clock[stage] = ends[stage, kind, i] = max(clock[stage], arrives) + own[stage]
                at[stage] += 1
    return max(clock)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.data())
def test_the_period_is_that_of_the_events(num: int, data: Any) -> None:
    forward, backward, ahead, back = (
        data.draw(st.lists(SECONDS, min_size=size, max_size=size))
        for size in (num, num, num - 1, num - 1)
    )
    short, long = (step_of_events(forward, backward, ahead, back, n) for n in (240, 360))
    found = period(np.add(forward, backward), np.add(ahead, back))
    # A multiple of all numbers of stages lies between, so that every cycle comes round.
    assert (long - short) / 120 == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("submeshes", [((1, 1),) * 4, ((1, 2), (1, 1), (1, 1))])
def test_a_pipeline_takes_what_is_simulated(submeshes: tuple[tuple[int, int], ...]) -> None:
    """Two hosts of two devices, over a slow network."""
    count = 16
    cluster = ClusterSpec(preset_for("v100-16gb"), 2, 2)
    layers = (*(2,) * (len(submeshes) - 1), LAYERS - 2 * (len(submeshes) - 1))
    layers = layers if len(submeshes) < 4 else (1, 2, 2, 1)
    method = PipeshardParallel(
        layers=AutoLayers(num_layers=LAYERS),
        stages=ManualStages(layers, submeshes),
        num_micro_batches=count,
        schedule="1f1b",
    )
    weights, moments, _ = shapes()
    batch = np.zeros((4096, WIDTH), np.float32)
    plan = stablehlo_alpa.parallelize(step, method=method, cluster=cluster).plan(
        weights, moments, batch
    )
    crossing = 4096 / count * WIDTH * 4
    received = np.zeros((LAYERS, LAYERS))
    for first, last in itertools.combinations_with_replacement(range(LAYERS), 2):
        received[first, last] = crossing * ((first > 0) + (last < LAYERS - 1))
    stages = []
    for stage in plan.stages:
        once_s = sum(one.time_s for one in stage.phases if one.runs_once)
        where = Submesh(*stage.submesh, stage.mesh.shape)
        time_s = stage.micro_batch_s + once_s / count
        own = (stage.layers[0], stage.layers[-1], where.num_devices)
        stages.append(StageChoice(*own, time_s, count, where, once_s / count))
    found_s = TransferWaits(received, cluster, count)(stages)
    assert found_s == pytest.approx(plan.step_time_s, rel=0.05)
    # What crosses is much of it.
    assert latency(stages, count) < 0.9 * plan.step_time_s


def test_pipelines_are_chosen_by_what_they_wait_for() -> None:
    """Where nothing is waited for, others are the fastest than where all that is received is."""
    better = 0
    for seed in range(40):
        table: Any = Table(seed, 200.0)

        def step_s(stages: Any, count: int = table.count) -> float:
            return latency(list(stages), count)

        def placed_s(found: Any, table: Any = table) -> float:
            own = [
                table.price(one.first, one.last, one.key, in_flight)
                for one, in_flight in zip(found.stages, found.in_flight, strict=True)
            ]
            often = max(one.time_s - one.once_s for one in own) + max(one.once_s for one in own)
            return float(sum(one.time_s for one in own) + (table.count - 1) * often)

        usual, settled = (
            PipelineSearch(table, table, 4, table.count, step_s=known).run(SearchLimits(gap=0.0))
            for known in (None, step_s)
        )
        assert usual is not None
        assert settled is not None
        assert placed_s(settled) <= placed_s(usual) * (1 + 1e-9)
        assert settled.bracket.latency_s == usual.bracket.latency_s
        better += placed_s(settled) < placed_s(usual) * (1 - 1e-9)
    assert better >= 5


def test_neighbours_stand_side_by_side_where_no_host_is_cut() -> None:
    cluster = ClusterSpec(preset_for("v100-16gb"), 3, 8)

    def starts(*sizes: int) -> list[int]:
        return first_devices([(size, 0) for size in sizes], cluster)

    assert starts(4, 2, 2, 4, 4, 8) == [0, 4, 6, 8, 12, 16]
    assert starts(8, 4, 4, 8) == [0, 8, 12, 16]
    # The second would lie in two hosts.
    assert starts(4, 8, 4, 8) == [16, 0, 20, 8]
    assert starts(2, 4, 4, 4, 8, 2) == [20, 8, 12, 16, 0, 22]


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**31))
def test_no_mesh_lies_in_more_hosts_than_it_need(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, sizes = 32, []
    while left:
        size = int(rng.choice([1, 2, 4, 8, 16]))
        if size <= left:
            sizes.append(size)
            left -= size
    cluster = ClusterSpec(preset_for("v100-16gb"), 4, 8)
    starts = first_devices([(size, 0) for size in sizes], cluster)
    taken = sorted(at + i for at, size in zip(starts, sizes, strict=True) for i in range(size))
    assert taken == list(range(32))
    for at, size in zip(starts, sizes, strict=True):
        assert (at + size - 1) // 8 - at // 8 == max(1, size // 8) - 1
