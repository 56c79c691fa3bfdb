"""Steps that put their batch in another order, or take it apart, cut into micro-batches."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from batch_steps import BATCH, PARAMS, WIDTH, check, hidden, pipeline, weights
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import ShardParallel
from stablehlo_alpa.errors import CompileError

KEY = jax.random.key(3)
LABELS = jnp.sin(BATCH)


def loss_of(params: Any, x: Any, y: Any) -> Any:
    return jnp.mean((hidden(params, x) - y) ** 2)


found_of = stablehlo_alpa.value_and_grad(loss_of)


def shuffled(params: Any, x: Any, y: Any, key: Any) -> Any:
    order = jax.random.permutation(key, len(x))
    return found_of(params, x[order], y[order])


def shuffled_inside(params: Any, x: Any, y: Any, key: Any) -> Any:
    """Rows are swapped by the loss, and returned as the model has seen them."""

    def loss(params: Any) -> Any:
        rows = jax.random.permutation(key, x)
        made = hidden(params, rows)
        return jnp.mean((made - jax.random.permutation(key, y)) ** 2), (rows, made)

    return stablehlo_alpa.value_and_grad(loss, has_aux=True)(params)


def part_of_shuffled(params: Any, x: Any, y: Any, key: Any) -> Any:
    rows = jax.random.permutation(key, len(x))[: len(x) // 2]
    return found_of(params, x[rows], y[rows]), rows


def mixed(params: Any, x: Any, y: Any, key: Any) -> Any:
    """Each example with another one."""
    order = jax.random.permutation(key, len(x))
    return found_of(params, 0.7 * x + 0.3 * x[order], 0.7 * y + 0.3 * y[order])


def by_length(params: Any, x: Any, y: Any, _: Any) -> Any:
    """The order is made of the batch itself."""
    order = jnp.argsort(x[:, 0])
    return found_of(params, x[order], y[order]), x[order]


def turned_round(params: Any, x: Any, y: Any, _: Any) -> Any:
    return found_of(params, x[::-1], y[::-1])


def in_parts(params: Any, x: Any, y: Any, _: Any) -> Any:
    """Gradients of one slice after the other, added up by Python's ``for``."""
    total = 0.0, jax.tree.map(jnp.zeros_like, params)
    for i in range(0, len(x), len(x) // 2):
        part = slice(i, i + len(x) // 2)
        total = jax.tree.map(jnp.add, total, found_of(params, x[part], y[part]))
    return total


def by_turns(params: Any, x: Any, y: Any, _: Any) -> Any:
    """Every other example counts twice."""

    def loss(params: Any) -> Any:
        return loss_of(params, x[::2], y[::2]) + 2 * loss_of(params, x[1::2], y[1::2])

    return stablehlo_alpa.value_and_grad(loss)(params)


def side_by_side(params: Any, x: Any, y: Any, _: Any) -> Any:
    """Each example twice, the second time with noise."""
    return found_of(params, jnp.concatenate([x, x + 0.1]), jnp.concatenate([y, y]))


def preferred(params: Any, x: Any, y: Any, _: Any) -> Any:
    """What was chosen and what was rejected go through the model together."""

    def loss(params: Any) -> Any:
        rewards = hidden(params, jnp.concatenate([x, y])).sum(-1)
        return -jnp.mean(jax.nn.log_sigmoid(rewards[: len(x)] - rewards[len(x) :]))

    return stablehlo_alpa.value_and_grad(loss)(params)


def anchored(params: Any, x: Any, y: Any, _: Any) -> Any:
    """Triplets, of which two make a tensor of their own, by a model that scans over its layers."""

    def loss(params: Any) -> Any:
        rows = jnp.concatenate([jnp.concatenate([x, y]), x - y])
        layers = jnp.stack([params[0], params[0] + 0.1])
        made, kept = jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), h[:, 0]), rows, layers)
        pair, other = jnp.split(made, [2 * len(x)])
        one, two = jnp.split(pair, 2)
        near, far = jnp.sum((one - two) ** 2, -1), jnp.sum((one - other) ** 2, -1)
        return jnp.mean(jax.nn.relu(near - far + 1)) + jnp.mean(made**2) + jnp.mean(kept**2)

    return stablehlo_alpa.value_and_grad(loss)(params)


def by_token(params: Any, x: Any, y: Any, _: Any) -> Any:
    """Rows of tokens are rows of the batch for a while."""

    def loss(params: Any) -> Any:
        tokens = jnp.stack([jnp.concatenate([x, y])] * 3, axis=1)
        made = hidden(params, tokens.reshape(-1, x.shape[1])).reshape(*tokens.shape[:2], -1)
        scores = jax.nn.logsumexp(made, -1).sum(1)
        return jnp.mean(jnp.tanh(scores[: len(x)] - scores[len(x) :]) ** 2)

    return stablehlo_alpa.value_and_grad(loss)(params)


def with_places(params: Any, x: Any, y: Any, key: Any) -> Any:
    """Each row is told which it is, and draws its own noise."""

    def loss(params: Any) -> Any:
        rows = jnp.concatenate([x, y])
        noise = jax.random.normal(key, rows.shape)
        made = hidden(params, rows + 0.01 * jnp.arange(len(rows))[:, None] + 0.1 * noise).sum(-1)
        return jnp.mean(jnp.tanh(made[: len(x)] - made[len(x) :]))

    return stablehlo_alpa.value_and_grad(loss)(params)


def with_growing_places(params: Any, x: Any, y: Any, _: Any) -> Any:
    """What a loop carries is the same for all rows in front of it, and not behind."""

    def loss(params: Any) -> Any:
        rows = jnp.concatenate([x, y])
        places = 0.1 * jnp.arange(len(rows), dtype=x.dtype)[:, None]

        def turn(carry: Any, weight: Any) -> Any:
            made, shift = carry
            return (jnp.tanh((made + shift) @ weight), shift + places), None

        layers = jnp.stack([params[0], params[0] + 0.1, params[0] - 0.1])
        made = jax.lax.scan(turn, (rows, jnp.zeros_like(rows)), layers)[0][0].sum(-1)
        return jnp.mean(jnp.tanh(made[: len(x)] - made[len(x) :]))

    return stablehlo_alpa.value_and_grad(loss)(params)


def returned(params: Any, x: Any, y: Any, _: Any) -> Any:
    """What comes out shows the order of rows."""

    def loss(params: Any) -> Any:
        made = hidden(params, jnp.concatenate([x, y])).sum(-1)
        return jnp.mean(jnp.tanh(made[: len(x)] - made[len(x) :])), made

    return stablehlo_alpa.value_and_grad(loss, has_aux=True)(params)


JOINED = [preferred, anchored, by_token, with_places, with_growing_places]
STEPS = [
    shuffled,
    shuffled_inside,
    part_of_shuffled,
    mixed,
    by_length,
    turned_round,
    in_parts,
    by_turns,
    side_by_side,
    *JOINED,
]


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("step", STEPS)
def test_micro_batches_are_parts_of_what_is_made(step: Any, count: int) -> None:
    args = PARAMS, BATCH, LABELS, KEY
    method = ShardParallel(num_micro_batches=count)
    found = stablehlo_alpa.parallelize(step, method=method)(*args)
    assert_same(found, jax.jit(step)(*args))


@pytest.mark.parametrize("step", STEPS)
def test_a_pipeline_takes_parts_of_what_is_made(step: Any) -> None:
    check(step, PARAMS, BATCH, LABELS, KEY)


@pytest.mark.parametrize("batch", [(), ("x", "y")])
def test_every_micro_batch_computes_its_part_alone(batch: Any) -> None:
    method = ShardParallel(num_micro_batches=2)
    parallel = stablehlo_alpa.parallelize(
        shuffled, method=method, devices=jax.devices()[:1], batch_argnums=batch
    )
    text = parallel.plan(PARAMS, BATCH, LABELS, KEY).module_text()
    products = [line for line in text.splitlines() if '"stablehlo.dot_general"' in line]
    types = [line.split(" : ")[-1] for line in products]
    assert types
    assert not any(f"tensor<{len(BATCH)}x{WIDTH}xf32>" in one for one in types)


@pytest.mark.parametrize("step", JOINED)
def test_what_is_joined_is_joined_in_every_micro_batch(step: Any) -> None:
    method = ShardParallel(num_micro_batches=2)
    plan = stablehlo_alpa.parallelize(step, method=method, devices=jax.devices()[:1]).plan(
        PARAMS, BATCH, LABELS, KEY
    )
    (said,) = [one for one in plan.remarks if "cut along dimension 0" in one]
    assert "dimension 0: x, y; " in said
    assert not any("once more" in one or "no product" in one for one in plan.remarks)


def test_rows_that_are_returned_are_not_joined_in_parts() -> None:
    args = PARAMS, BATCH, LABELS, KEY
    parallel = stablehlo_alpa.parallelize(returned, method=ShardParallel(num_micro_batches=2))
    assert_same(parallel(*args), jax.jit(returned)(*args))
    with pytest.raises(CompileError):
        pipeline(returned, 2).plan(*args)


def linear_gradients(params: Any, x: Any, y: Any, key: Any) -> Any:
    """The gradient is one of a sum of products of summands, and need not be."""
    order = jax.random.permutation(key, len(x))
    return stablehlo_alpa.value_and_grad(lambda w: jnp.mean((x[order] @ w) ** 2))(params[0])


@pytest.mark.parametrize(
    "step",
    [
        linear_gradients,
        lambda params, x, _, key: hidden(params, jax.random.permutation(key, x)),
        lambda params, x, *_: jnp.sort(x, 0) @ params[0],
    ],
    ids=["gradients", "shuffled", "sorted"],
)
def test_products_of_what_is_made_of_the_whole_batch_are_divided(step: Any) -> None:
    parallel = stablehlo_alpa.parallelize(
        step, method=ShardParallel(num_micro_batches=2), devices=jax.devices()[:1]
    )
    args = (PARAMS, weights(32, WIDTH), weights(32, WIDTH), KEY)
    plan = parallel.plan(*args)
    assert "dot_general" in plan.module_text()
    assert not re.search(r"dot_general.*tensor<32x", plan.module_text())
    assert not any("no product is divided" in one for one in plan.remarks)
    assert_same(parallel(*args), jax.jit(step)(*args))


def test_a_step_of_which_nothing_is_divided_is_remarked_on() -> None:
    """Rows that micro-batches do not divide are looked up, and multiplied, by each of them."""

    def step(params: Any, x: Any, key: Any) -> Any:
        return jax.random.permutation(key, x)[: len(x) - 1] @ params[0]

    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=2))
    args = [weights(15, 15)], weights(16, 15), KEY
    assert any("no product is divided among the 2" in one for one in parallel.plan(*args).remarks)
    assert_same(parallel(*args), jax.jit(step)(*args))


def test_shuffled_examples_may_meet_each_other_on_one_mesh() -> None:
    def loss(params: Any, x: Any, key: Any) -> Any:
        made = hidden(params, x[jax.random.permutation(key, len(x))])
        return jnp.mean(jax.nn.logsumexp(made @ made.T, 1))

    def step(params: Any, x: Any, key: Any) -> Any:
        value, gradients = stablehlo_alpa.value_and_grad(loss)(params, x, key)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=2))
    assert_same(parallel(PARAMS, BATCH, KEY), jax.jit(step)(PARAMS, BATCH, KEY))
    with pytest.raises(CompileError, match="needs the whole batch"):
        pipeline(step, 2).plan(PARAMS, BATCH, KEY)
