"""Pipelines without gradients, and evaluations beside those that train."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from batch_steps import BATCH, INDEX, PARAMS, WIDTH, check, grads, hidden, pipeline, weights
from often import one_in
from test_models import assert_trees_close

import stablehlo_alpa


@pytest.mark.parametrize("count", [1, 4])
def test_a_function_without_gradients_is_a_forward_pipeline(count: int) -> None:
    def evaluate(p: Any, x: Any, i: Any) -> Any:
        out = hidden(p, x)
        return {"logits": out, "loss": jnp.mean(out**2), "hits": jnp.sum(out.argmax(-1) == i)}

    check(evaluate, PARAMS, BATCH, INDEX, count=count)
    assert pipeline(evaluate, count).plan(PARAMS, BATCH, INDEX).schedule.name == "inference"


@pytest.mark.parametrize("count", [1, 4])
def test_a_result_may_have_the_type_of_the_batch(count: int) -> None:
    """It looks like a state that goes in and comes out, and there is no other argument."""
    check(lambda x: hidden(PARAMS, x), BATCH, count=count)
    assert len(pipeline(lambda x: hidden(PARAMS, x), count).plan(BATCH).stages) == 2


@pytest.mark.slow
def test_what_is_transposed_alone_is_no_gradient() -> None:
    def evaluate(p: Any, x: Any) -> Any:
        h = jnp.tanh(x @ p[0])
        h = jax.linear_transpose(lambda y: y @ p[1], h)(h)[0]
        matrices = jnp.einsum("bi,bj->bij", h, h) + 4 * jnp.eye(WIDTH)
        return jnp.tanh(jnp.linalg.solve(matrices, h[..., None])[..., 0] @ p[1])

    check(evaluate, PARAMS, BATCH)


def test_a_forward_schedule_takes_no_gradients() -> None:
    step = pipeline(grads(lambda p, x: jnp.mean(hidden(p, x) ** 2)), schedule="inference")
    with pytest.raises(ValueError, match="runs no backward passes and step takes gradients"):
        step(PARAMS, BATCH)


def test_an_evaluation_follows_the_state_of_a_pipeline() -> None:
    def step(p: Any, x: Any) -> Any:
        value, gradients = stablehlo_alpa.value_and_grad(lambda p: jnp.mean(hidden(p, x) ** 2))(p)
        return jax.tree.map(lambda w, g: w - 0.1 * g, p, gradients), value

    def evaluate(p: Any, x: Any) -> Any:
        out = hidden(p, x)
        return jnp.mean(out**2), out

    state, _ = pipeline(step)(PARAMS, BATCH)
    meshes = [w.sharding.mesh for w in state]
    assert meshes[0] != meshes[1]
    follow = stablehlo_alpa.parallelize(evaluate, method=stablehlo_alpa.FollowParallel())
    found = follow(state, BATCH[:6])
    assert_trees_close(found, jax.jit(evaluate)(jax.device_get(state), BATCH[:6]), 1e-5, "results")
    shardings = follow.compile(state, BATCH[:6]).argument_shardings(0)
    assert shardings == [w.sharding for w in state]
    assert len(follow.plan(state, BATCH[:6]).stages) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_tied", "count"), one_in(2, itertools.product([False, True], [None, 2, 3]))
)
def test_an_evaluation_visits_the_meshes_of_interleaved_stages(
    is_tied: bool, count: int | None
) -> None:
    """State stays where it lies, also what is used again behind the last stage."""

    def step(p: Any, x: Any) -> Any:
        value, gradients = stablehlo_alpa.value_and_grad(lambda p: jnp.mean(hidden(p, x) ** 2))(p)
        return jax.tree.map(lambda w, g: w - 0.1 * g, p, gradients), value

    def evaluate(p: Any, x: Any) -> Any:
        return hidden([*p, p[0]] if is_tied else p, x)

    params = [weights(WIDTH, WIDTH, seed=i) for i in range(4)]
    train = pipeline(step, 4, 4, schedule="interleaved", num_chunks=2)
    state, _ = train(params, BATCH)
    meshes = [w.sharding.mesh for w in state]
    assert meshes[0] == meshes[2] != meshes[1] == meshes[3]
    method = stablehlo_alpa.FollowParallel(num_micro_batches=count)
    follow = stablehlo_alpa.parallelize(evaluate, method=method)
    found = follow(state, BATCH[:6])
    assert_trees_close(found, jax.jit(evaluate)(jax.device_get(state), BATCH[:6]), 1e-5, "results")
    plan = follow.plan(state, BATCH[:6])
    assert len(plan.stages) == 4 + is_tied
    assert [plan.schedule.mesh_of(stage) for stage in range(4 + is_tied)] == [0, 1, 0, 1, 0][
        : 4 + is_tied
    ]
    assert follow.compile(state, BATCH[:6]).argument_shardings(0) == [w.sharding for w in state]


def test_forward_steps_interleave_as_well() -> None:
    params = [weights(WIDTH, WIDTH, seed=i) for i in range(4)]
    forward = pipeline(hidden, 2, 4, schedule="interleaved", num_chunks=2)
    assert_trees_close(forward(params, BATCH), jax.jit(hidden)(params, BATCH), 1e-5, "results")
    assert forward.plan(params, BATCH).schedule.name == "inference"
