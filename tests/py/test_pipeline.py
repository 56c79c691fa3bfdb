"""Pipelines equal a plain loop over micro-batches: models, stages, submeshes, schedules."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import pytest
from models.case import TrainCase
from test_models import STEPS, assert_trees_close

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    FollowModuleLayers,
    ManualStages,
    PipeshardParallel,
    UniformStages,
)

UNEQUAL = ManualStages(layers=(1, 1, 2), submeshes=((1, 2), (1, 2), (1, 4)))


@dataclass(frozen=True)
class Pipeline:
    """One comparison: a model of the zoo under a pipeline.

    Attributes:
        compares_full_batch: whether the step on the whole batch gives the same, too.
    """

    model: str
    num_micro_batches: int
    stages: Any
    schedule: str = "1f1b"
    options: dict[str, Any] = field(default_factory=dict)
    method: dict[str, Any] = field(default_factory=dict)
    compares_full_batch: bool = False

    @property
    def id(self) -> str:
        """A readable test id."""
        stages = (
            f"{self.stages.num_stages}-stages"
            if isinstance(self.stages, UniformStages)
            else "+".join("x".join(map(str, submesh)) for submesh in self.stages.submeshes)
        )
        options = [f"{name}={value}" for name, value in self.options.items()]
        count = f"{self.num_micro_batches}-micro-batches"
        return "-".join([self.model, stages, count, self.schedule, *options])


TWO, FOUR = UniformStages(2), UniformStages(4)

QUICK = [
    Pipeline("mlp", 2, TWO, compares_full_batch=True),
    Pipeline("mlp", 4, UNEQUAL, "zero_bubble", compares_full_batch=True),
]

SLOW = [
    Pipeline("mlp", 1, FOUR, "gpipe", compares_full_batch=True),
    Pipeline(
        "gpt", 2, TWO, options={"dropout": 0.0}, method={"layers": FollowModuleLayers(remat=True)}
    ),
    Pipeline("gpt", 8, FOUR, "zero_bubble", {"layers": 4}),
    Pipeline("gpt", 2, UNEQUAL, "gpipe", {"dropout": 0.0}, compares_full_batch=True),
    Pipeline("gpt", 2, FOUR, "1f1b", {"layers": 4, "is_scanned": True}),
    Pipeline("moe", 2, TWO, "gpipe"),
    Pipeline("moe", 1, FOUR),
    Pipeline("wide_resnet", 2, FOUR),
    Pipeline("encoder_decoder", 2, FOUR, "zero_bubble", compares_full_batch=True),
    Pipeline("unet", 2, FOUR, compares_full_batch=True),
    Pipeline("llama", 4, UniformStages(4, (4,)), "interleaved", {"layers": 4}, {"num_chunks": 2}),
]


def make_case(pipeline: Pipeline) -> TrainCase:
    module = importlib.import_module(f"models.{pipeline.model}")
    return module.make(with_gradients=True, **pipeline.options)


def parallel_step(case: TrainCase, pipeline: Pipeline) -> Any:
    method = {"layers": AutoLayers(num_layers=4), **pipeline.method}
    return stablehlo_alpa.parallelize(
        case.step,
        method=PipeshardParallel(
            num_micro_batches=pipeline.num_micro_batches,
            stages=pipeline.stages,
            schedule=pipeline.schedule,
            **method,
        ),
        donate_argnums=0,
    )


def train(step: Any, case: TrainCase) -> tuple[Any, Any]:
    """The state and the metrics of every step."""
    state, metrics = jax.tree.map(jax.numpy.array, case.state), []
    for number in range(STEPS):
        state, found = step(state, case.batch, jax.random.fold_in(case.rng, number))
        metrics.append(found)
    return state, metrics


def compare(pipeline: Pipeline) -> None:
    case = make_case(pipeline)
    state, metrics = train(parallel_step(case, pipeline), case)
    references = [case.accumulated(pipeline.num_micro_batches)]
    if pipeline.compares_full_batch:
        references.append(case.step)
    for reference in references:
        expected_state, expected = train(jax.jit(reference), case)
        for step in range(STEPS):
            assert_trees_close(metrics[step]["loss"], expected[step]["loss"], 1e-5, "loss")
        gradients = expected[0]["gradients"]
        assert_trees_close(metrics[0]["gradients"], gradients, 1e-5, "gradients")
        assert_trees_close(state, expected_state, 1e-4, "state")


@pytest.mark.parametrize("pipeline", QUICK, ids=lambda pipeline: pipeline.id)
def test_pipeline_equals_a_loop_over_micro_batches(pipeline: Pipeline) -> None:
    compare(pipeline)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", SLOW, ids=lambda pipeline: pipeline.id)
def test_models_equal_a_loop_over_micro_batches(pipeline: Pipeline) -> None:
    compare(pipeline)


def test_schedules_give_the_same_bits() -> None:
    results = []
    for schedule in ("gpipe", "1f1b", "zero_bubble"):
        pipeline = Pipeline("mlp", 4, TWO, schedule)
        case = make_case(pipeline)
        results.append(train(parallel_step(case, pipeline), case))
    for other in results[1:]:
        for a, b in zip(jax.tree.leaves(results[0]), jax.tree.leaves(other), strict=True):
            np.testing.assert_array_equal(a, b)


def test_state_is_made_where_it_is_kept() -> None:
    pipeline = Pipeline("mlp", 2, TWO)
    case = make_case(pipeline)
    step = parallel_step(case, pipeline)
    state = step.create_state(lambda: case.state, batch=(case.batch, case.rng))
    meshes = {leaf.sharding.mesh for leaf in jax.tree.leaves(state)}
    assert len(meshes) == 2
    assert all(len(mesh.devices.flat) == 4 for mesh in meshes)
    before = jax.tree.leaves(state)
    after, _ = step(state, case.batch, case.rng)
    # Parameters and optimiser state are donated: what they were is gone, and stays on its mesh.
    large = [leaf for leaf in before if leaf.size > 1]
    assert all(leaf.is_deleted() for leaf in large)
    for old, new in zip(before, jax.tree.leaves(after), strict=True):
        assert new.sharding == old.sharding


def test_many_steps_keep_going() -> None:
    pipeline = Pipeline("mlp", 8, FOUR)
    case = make_case(pipeline)
    step = parallel_step(case, pipeline)
    state = case.state
    losses = []
    for _ in range(60):
        state, metrics = step(state, case.batch, case.rng)
        losses.append(metrics["loss"])
    assert float(losses[-1]) < float(losses[0])
