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
from stablehlo_alpa.errors import SlowerError
from stablehlo_alpa.frontend import TracedProgram, trace
from stablehlo_alpa.inter_op import PipelineOptions, plan_pipeline, planner
from stablehlo_alpa.inter_op.sweep import _alternatives
from stablehlo_alpa.layers import layer_context

CLUSTER = ClusterSpec(preset_for("cpu"), 1, 8)


@functools.cache
def program() -> TracedProgram:
    def loss(weights: Any, batch: jax.Array) -> jax.Array:
        for weight in weights:
            batch = jnp.tanh(batch @ weight)
        return jnp.mean(batch**2)

    def step(weights: Any, batch: jax.Array) -> Any:
        value, gradients = value_and_grad(loss)(weights, batch)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value

    weights = [jax.ShapeDtypeStruct((256, 256), jnp.float32)] * 8
    with layer_context(AutoLayers(num_layers=8)):
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
    lower = planner.lower_stage

    def counted(*args: Any, **kwargs: Any) -> Any:
        lowered.append(1)
        return lower(*args, **kwargs)

    monkeypatch.setattr(planner, "lower_stage", counted)
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


@pytest.mark.parametrize("shapes", [((2, 2), (2, 2)), ((4,), (2, 2))])
def test_stages_that_are_cut_once_more_are_split_as_most_were(shapes: Any) -> None:
    given = ManualStages((4, 4), ((1, 4), (1, 4)), shapes)
    best = plan_pipeline(program(), PipelineOptions(CLUSTER, given, 8))
    best = replace(best, stages=(*best.stages, best.stages[1], best.stages[1]))
    [*_, interleaved] = _alternatives(best, PipelineOptions(CLUSTER, AutoStages()))
    assert interleaved.schedule == "interleaved"
    assert interleaved.stages == UniformStages(8, (2, 2))
