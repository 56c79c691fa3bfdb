"""What the search takes a stage to cost is what the programs of the stage cost that are emitted."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import stablehlo_alpa as sa

NUM_LAYERS, WIDTH, NUM_MICRO_BATCHES = 4, 2048, 8
CLUSTER = sa.ClusterSpec.preset("p5.48xlarge:1")
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

PER_MICRO_BATCH = ("forward", "backward", "backward_weight")
LAYERS = sa.AutoLayers(num_layers=NUM_LAYERS)
METHODS: dict[str, sa.Method] = {
    "one mesh": sa.ShardParallel(num_micro_batches=NUM_MICRO_BATCHES),
    "data parallel": sa.DataParallel(num_micro_batches=NUM_MICRO_BATCHES),
    "one stage": sa.PipeshardParallel(
        num_micro_batches=NUM_MICRO_BATCHES, layers=LAYERS, stages=sa.UniformStages(1)
    ),
    "two stages": sa.PipeshardParallel(
        num_micro_batches=NUM_MICRO_BATCHES, layers=LAYERS, stages=sa.UniformStages(2)
    ),
}


def loss(weights: Any, batch: jax.Array) -> jax.Array:
    x = batch
    for weight in weights:
        x = jnp.tanh(x @ weight)
    return jnp.mean(x**2)


def step_with(value_and_grad: Any) -> Any:
    def step(weights: Any, state: Any, batch: jax.Array) -> Any:
        value, gradients = value_and_grad(loss)(weights, batch)
        updates, state = OPTIMIZER.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, value

    return step


def abstract() -> tuple[Any, Any, jax.ShapeDtypeStruct]:
    weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32) for _ in range(NUM_LAYERS)]
    state = jax.eval_shape(OPTIMIZER.init, weights)
    return weights, state, jax.ShapeDtypeStruct((4096 * NUM_MICRO_BATCHES, WIDTH), jnp.float32)


@pytest.fixture(scope="module", params=list(METHODS))
def plan(request: pytest.FixtureRequest) -> sa.Plan:
    method = METHODS[request.param]
    is_cut = isinstance(method, sa.PipeshardParallel)
    step = step_with(sa.value_and_grad if is_cut else jax.value_and_grad)
    return sa.parallelize(step, method=method, cluster=CLUSTER).plan(*abstract())


def test_searched_and_emitted_seconds_agree(plan: sa.Plan) -> None:
    for stage in plan.stages:
        emitted = sum(
            one.time_s * (NUM_MICRO_BATCHES if one.name in PER_MICRO_BATCH else 1)
            for one in stage.phases
        )
        assert stage.solution.objective_s == pytest.approx(emitted, rel=0.1)


def test_gradients_are_added_up_once(plan: sa.Plan) -> None:
    """AdamW uses a gradient scaled, squared, and in the norm that it is clipped by."""
    graphs = [stage.priced.graph for stage in plan.stages]
    nodes = np.concatenate([graph.accumulator_node for graph in graphs])
    # The loss is a number, the same on all devices, for which nothing is chosen.
    assert len(nodes) == NUM_LAYERS


def test_gradients_are_reduced_once(plan: sa.Plan) -> None:
    """What data parallelism sends per micro-batch is no gradient."""
    for stage in plan.stages:
        for phase in stage.phases:
            reduced = [one.bytes for one in phase.collectives if "reduce" in one.kind]
            if phase.name == "backward":
                assert sum(reduced) < 4 * WIDTH * WIDTH
