"""Simulated runs of real plans: the textbook's bubbles and memory."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime import RuntimeOptions, Simulation, simulate

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, PipeshardParallel, UniformStages

BATCH = np.ones((32, 16), "f")
WEIGHTS = [np.eye(16, dtype="f") for _ in range(8)]


def loss(weights: Any, batch: Any) -> jax.Array:
    x = batch
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return jnp.mean(x**2)


def planned(schedule: str, stages: int, chunks: int = 1, **options: Any) -> Any:
    method = PipeshardParallel(
        num_micro_batches=8,
        layers=AutoLayers(num_layers=stages * chunks),
        stages=UniformStages(stages * chunks),
        schedule=schedule,
        num_chunks=chunks,
        **options,
    )
    return stablehlo_alpa.parallelize(stablehlo_alpa.value_and_grad(loss), method=method)


def unit_run(plan: Any, forward: float, backward: float, weight: float) -> Simulation:
    """Every pass takes the given time, everything else none."""
    seconds = {"forward": forward, "backward": backward, "backward_weight": weight}
    times = [seconds.get(p.name.split("_", 2)[-1], 0.0) for p in plan.runtime.programs]
    return simulate(plan.runtime, times)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_bubbles_are_the_textbooks(schedule: str) -> None:
    plan = planned(schedule, 4).plan(WEIGHTS, BATCH)
    found = unit_run(plan, 1.0, 2.0, 0.0)
    for mesh in range(4):
        assert found.bubble(mesh) == pytest.approx(3 / (8 + 3))


@pytest.mark.slow
def test_interleaving_divides_the_bubble() -> None:
    plan = planned("interleaved", 2, 4).plan(WEIGHTS, BATCH)
    # A chunk takes a quarter of the time of a mesh's whole stage.
    found = unit_run(plan, 0.25, 0.25, 0.0)
    for mesh in range(2):
        assert found.bubble(mesh) == pytest.approx((1 / 4) / (8 + 1 / 4))


def test_zero_bubble_leaves_a_third() -> None:
    plan = planned("zero_bubble", 4).plan(WEIGHTS, BATCH)
    # The first stage sends no gradient on: all of its backward pass is for parameters.
    waiting = [unit_run(plan, 1.0, 1.0, 1.0).bubble(mesh) for mesh in range(1, 4)]
    reference = unit_run(planned("1f1b", 4).plan(WEIGHTS, BATCH), 1.0, 2.0, 0.0)
    assert max(waiting) <= 0.45 * reference.bubble(3)


def test_1f1b_keeps_activations_of_as_many_micro_batches_as_stages() -> None:
    one = planned("1f1b", 4).plan(WEIGHTS, BATCH).simulation.peak_bytes
    all_ = planned("gpipe", 4).plan(WEIGHTS, BATCH).simulation.peak_bytes
    for mesh in range(4):
        assert one[mesh] < all_[mesh]
    # Stage s keeps those of 4 - s micro-batches: less towards the end.
    assert one[0] > one[3] or one[0] > one[2]


def test_transfers_take_time() -> None:
    plan = planned("1f1b", 2).plan(WEIGHTS, BATCH)
    times = [1.0] * len(plan.runtime.programs)
    free = simulate(plan.runtime, times)
    slow = simulate(plan.runtime, times, lambda source, target, loads: 5.0)
    assert slow.step_s >= free.step_s + 10.0


def test_a_link_carries_one_transfer_at_a_time() -> None:
    """Micro-batches that are ready faster than the link takes them wait for each other."""
    plan = planned("gpipe", 2).plan(WEIGHTS, BATCH)
    times = [0.01] * len(plan.runtime.programs)
    there = simulate(plan.runtime, times, lambda source, target, loads: 5.0 * (source < target))
    assert there.step_s == pytest.approx(8 * 5.0, rel=0.1)
    # The other direction has wires of its own.
    both = simulate(plan.runtime, times, lambda source, target, loads: 5.0)
    assert both.step_s < 2 * 8 * 5.0 + 1.0


def test_a_real_run_has_the_simulated_order(tmp_path: Any) -> None:
    step = planned(
        "1f1b", 2, runtime=RuntimeOptions(trace=True, trace_path=str(tmp_path / "t.json"))
    )
    plan = step.plan(WEIGHTS, BATCH)
    compiled = step.compile(WEIGHTS, BATCH)
    compiled(WEIGHTS, BATCH)
    for mesh in range(2):
        predicted = [event.name for event in plan.timeline() if event.mesh == mesh]
        traced = [event.name for event in compiled.executable.events if event.mesh == mesh]
        assert predicted == traced
