"""Schedules that are tried beside the first: fairly, and only as far as they may be faster."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from stablehlo_alpa import AutoLayers, AutoStages, ManualStages, UniformStages, value_and_grad
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.frontend import TracedProgram, trace
from stablehlo_alpa.inter_op import PipelineOptions, plan_pipeline, stages_planner
from stablehlo_alpa.inter_op.sweep import _alternatives
from stablehlo_alpa.inter_op.weight_gradients import waiting_bytes
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.layers import layer_context
from stablehlo_alpa.planning.mesh_search import Subject
from stablehlo_alpa.planning.schedules import ScheduleName
from stablehlo_alpa.store import OFF

CLUSTER = ClusterSpec(preset_for("cpu"), 1, 8)


@functools.cache
def program(remat: bool = False) -> TracedProgram:
    def loss(weights: Any, batch: jax.Array) -> jax.Array:
        for weight in weights:
            batch = jnp.tanh(batch @ weight)
        return jnp.mean(batch**2)

    def step(weights: Any, batch: jax.Array) -> Any:
        value, gradients = value_and_grad(loss)(weights, batch)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value

    weights = [jax.ShapeDtypeStruct((256, 256), jnp.float32)] * 8
    with layer_context(AutoLayers(num_layers=8, remat=remat)):
        batch = jax.ShapeDtypeStruct((64, 256), jnp.float32)
        return trace(step, (weights, batch), {}, donate_argnums=(0,))


@pytest.mark.parametrize("share", [1.1, 0.5])
def test_a_trial_ends_when_the_stages_of_a_mesh_take_too_long(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = PipelineOptions(
        CLUSTER, UniformStages(4, (4,)), 4, schedule="interleaved", num_chunks=2
    )
    whole = plan_pipeline(program(), options)
    lowered: list[int] = []
    lower = stages_planner.lower_stage

    def counted(*args: Any, **kwargs: Any) -> Any:
        lowered.append(1)
        return lower(*args, **kwargs)

    monkeypatch.setattr(stages_planner, "lower_stage", counted)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    busy_s = sum(stage.solution.objective_s for stage in whole.stages) / 2
    tried = replace(options, most_step_s=share * busy_s)
    if share > 1:
        assert plan_pipeline(program(), tried).step_time_s == whole.step_time_s
        assert len(lowered) == 4
        return
    with pytest.raises(SlowerError, match="longer under schedule interleaved") as refused:
        plan_pipeline(program(), tried)
    # The two stages of the first mesh say it.
    assert len(lowered) == 2
    assert tried.most_step_s == refused.value.least_s < whole.step_time_s


@pytest.mark.parametrize("remat", [False, True])
def test_what_waits_for_weight_gradients_is_no_more_than_is_kept(remat: bool) -> None:
    """Where nothing but the batch is split all of it is, and parameters are there on top."""
    schedule, stages = ScheduleName.ZERO_BUBBLE, UniformStages(4, (2,))
    options = PipelineOptions(CLUSTER, stages, 8, schedule=schedule)
    plan = plan_pipeline(program(remat), options)
    for number, stage in enumerate(plan.stages):
        subject = Subject("a stage", stage.texts["merged"])
        total = waiting_bytes(subject, plan.schedule, number, CLUSTER, OFF)
        kept = plan.simulation.peak_bytes[number]
        assert 0.3 * kept < total / 2 <= kept


def test_a_trial_in_which_too_much_waits_is_refused_before_it_is_solved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = PipelineOptions(CLUSTER, UniformStages(4, (2,)), 8, schedule="zero_bubble")
    plan = plan_pipeline(program(), options)
    number = plan.schedule.num_stages - 1
    subject = Subject("a stage", plan.stages[number].texts["merged"])
    least = waiting_bytes(subject, plan.schedule, number, CLUSTER, OFF) / 2
    solved: list[int] = []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        solved.append(1)
        raise InfeasibleError("no plan")

    monkeypatch.setattr(stages_planner, "find_candidate", refuse)
    for share, is_trial in ((0.5, True), (0.5, False), (1.0, True)):
        solved.clear()
        budget = SolveOptions(memory_budget=share * least)
        tried = replace(options, solve=budget, is_trial=is_trial)
        with pytest.raises(InfeasibleError, match=r"gradients of its parameters|no plan"):
            plan_pipeline(program(), tried)
        # What is asked for by itself is looked into, and what may fit.
        assert bool(solved) == (share == 1.0 or not is_trial)


@pytest.mark.parametrize("shapes", [((2, 2), (2, 2)), ((4,), (2, 2))])
def test_stages_that_are_cut_once_more_are_split_as_most_were(shapes: Any) -> None:
    given = ManualStages((4, 4), ((1, 4), (1, 4)), shapes)
    best = plan_pipeline(program(), PipelineOptions(CLUSTER, given, 8))
    best = replace(best, stages=(*best.stages, best.stages[1], best.stages[1]))
    [*_, interleaved] = _alternatives(best, PipelineOptions(CLUSTER, AutoStages()))
    assert interleaved.schedule == "interleaved"
    assert interleaved.stages == UniformStages(8, (2, 2))
