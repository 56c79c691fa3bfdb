"""Why a step is cut as it is: alternatives cost what planning by them costs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stablehlo_alpa as sa
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.inter_op.next_cuts import ConsideredStages
from stablehlo_alpa.inter_op.stage_choices import StageChoice, StageChoices
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.planning import Pinned

F32 = jnp.float32
WEIGHTS = [jax.ShapeDtypeStruct((64, 64), F32)] * 4
BATCH = jax.ShapeDtypeStruct((16, 64), F32)


def loss(weights: Any, batch: Any) -> jax.Array:
    for weight in weights:
        batch = jnp.tanh(batch @ weight)
    return jnp.mean(batch**2)


def planned(method: Any) -> Any:
    step = sa.parallelize(sa.value_and_grad(loss), method=method, cluster="cpu:2x2")
    return step.plan(WEIGHTS, BATCH)


@pytest.fixture(scope="module")
def plan() -> Any:
    return planned(sa.PipeshardParallel(layers=sa.AutoLayers(num_layers=2)))


def test_planning_by_the_method_of_a_row_gives_its_seconds(plan: Any) -> None:
    found = plan.explain_stages(cuts=2)
    assert {row.differs for row in found.rows} >= {Pinned.CUT, Pinned.MICRO_BATCHES}
    for row in found.rows:
        if row.step_time_s is None:
            continue
        other = planned(row.method)
        assert other.step_time_s == row.step_time_s, row
        assert other.runtime.num_micro_batches == row.num_micro_batches
        assert str(other.schedule.name) == row.schedule


def test_schedules_and_recomputations_are_listed_with_exact_seconds() -> None:
    """Little memory: the search looks at what is computed again, and at other schedules."""
    free = planned(sa.PipeshardParallel(layers=sa.AutoLayers(num_layers=2), num_micro_batches=4))
    method = sa.PipeshardParallel(
        layers=sa.AutoLayers(num_layers=2),
        num_micro_batches=4,
        memory_budget=1.5 * free.peak_bytes,
        stages=sa.UniformStages(2),
    )
    found = planned(method).explain_stages()
    assert "the stages were given" in found.reason
    differs = {row.differs for row in found.rows}
    assert differs >= {Pinned.SCHEDULE}
    for row in found.rows:
        if row.step_time_s is not None:
            assert planned(row.method).step_time_s == row.step_time_s, row


def test_cuts_are_those_that_planning_every_cut_finds(plan: Any) -> None:
    """Every cut of two layers over two hosts of two devices, planned as it is."""
    count, schedule = plan.runtime.num_micro_batches, str(plan.schedule.name)
    every: list[tuple[Any, Any]] = [((2,), ((2, 2),))]
    every += [((1, 1), (one, two)) for one, two in (((1, 2), (1, 2)),)]
    seconds = {}
    for layers, submeshes in every:
        method = sa.PipeshardParallel(
            num_micro_batches=count,
            schedule=schedule,
            layers=sa.AutoLayers(num_layers=2, remat=False),
            stages=sa.ManualStages(layers, submeshes),
        )
        seconds[layers, submeshes] = planned(method).step_time_s
    rows = [row for row in plan.explain_stages(cuts=9).rows if row.differs is Pinned.CUT]
    found = {(row.cut.layers, row.cut.submeshes): row.step_time_s for row in rows}
    own = [one for one in every if one not in found]
    assert len(own) == 1
    assert found == {one: seconds[one] for one in every if one != own[0]}
    assert plan.step_time_s == seconds[own[0]]


def test_the_table_begins_with_the_plan_and_ends_with_why(plan: Any) -> None:
    found = plan.explain_stages(cuts=1)
    sheet = found.sheet()
    assert sheet.rows[0][0] == "this plan"
    assert len(sheet.rows) == 1 + len(found.rows)
    assert sheet.note == found.reason
    assert "cut" in found.reason
    assert "<table" in found._repr_html_()


def test_a_plan_without_stages_of_a_search_says_so() -> None:
    with pytest.raises(TraceError, match=r"ShardParallel.*searches no stages"):
        planned(sa.ShardParallel()).explain_stages()


def every_partition(num_layers: int, num_devices: int) -> Iterator[tuple[Any, Any]]:
    """Layers per stage and devices of each."""
    for stages in range(1, num_layers + 1):
        for ends in itertools.combinations(range(1, num_layers), stages - 1):
            edges = (0, *ends, num_layers)
            layers = tuple(b - a for a, b in itertools.pairwise(edges))
            for sizes in itertools.product((1, 2, 4), repeat=stages):
                if sum(sizes) == num_devices:
                    yield layers, tuple((1, size) for size in sizes)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("keeps_all", [False, True])
def test_next_cuts_are_all_partitions_in_order(seed: int, keeps_all: bool) -> None:
    """Enumeration, on random tables, memory included."""
    draw = np.random.default_rng(seed)
    num_layers, num_devices, count = 4, 4, int(draw.integers(1, 5))
    times, most = {}, {}
    choices = []
    for first, last in itertools.combinations_with_replacement(range(num_layers), 2):
        for size in (1, 2, 4):
            key = first, last, (1, size)
            times[key], most[key] = float(draw.uniform(1, 9)), int(draw.integers(1, 5))
            submesh = Submesh(1, size, (size,))
            choices.append(StageChoice(first, last, size, times[key], most[key], submesh))
    considered = ConsideredStages(
        StageChoices.of(choices), num_layers, num_devices, count, keeps_all
    )
    expected = []
    for layers, submeshes in every_partition(num_layers, num_devices):
        first, keys = 0, []
        for layer_count, submesh in zip(layers, submeshes, strict=True):
            keys.append((first, first + layer_count - 1, submesh))
            first += layer_count
        needed = [count if keeps_all else min(count, len(keys) - n) for n in range(len(keys))]
        if all(most[key] >= need for key, need in zip(keys, needed, strict=True)):
            seconds = [times[key] for key in keys]
            latency = sum(seconds) + (count - 1) * max(seconds)
            expected.append((latency, layers, submeshes))
    found = [(latency, cut.layers, cut.submeshes) for cut, latency in considered.cuts()]
    assert [one[0] for one in found] == pytest.approx(sorted(one[0] for one in expected))
    assert {one[1:] for one in found} == {one[1:] for one in expected}
