"""What is returned beside the loss may take the whole batch: no gradient is taken through it."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from batch_steps import BATCH, PARAMS, ROWS, WIDTH, hidden, pipeline, weights
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import DataParallel, ShardParallel
from stablehlo_alpa.errors import CompileError


def retrieved(out: Any) -> Any:
    """At which rank every example finds itself."""
    scores = out @ jnp.tanh(out).T
    return jnp.sum(scores > jnp.diag(scores)[:, None], 1), jnp.mean(scores)


def running(out: Any) -> Any:
    return jnp.cumsum(out, 0), jax.lax.cummax(out[:, 0])


def correlated(out: Any) -> Any:
    return jnp.corrcoef(out.T)


def solved(out: Any) -> Any:
    """One step size for all rows, until the worst of them is near enough."""

    def turn(carry: Any) -> Any:
        values, turns = carry
        return values @ (0.4 * PARAMS[0]) / (1 + jnp.max(jnp.abs(values))), turns + 1

    return jax.lax.while_loop(lambda carry: jnp.max(jnp.abs(carry[0])) > 0.1, turn, (out, 0))


def factored(out: Any) -> Any:
    few = out[:, :4]
    return jnp.linalg.eigvalsh(few.T @ few), jnp.linalg.slogdet(few.T @ few)


LOOKED_AT = {fun.__name__: fun for fun in (retrieved, running, correlated, solved, factored)}


def step_of(look: Any, value_and_grad: Any = stablehlo_alpa.value_and_grad) -> Any:
    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            out = hidden(params, x)
            return jnp.mean((out - x) ** 2), look(jax.lax.stop_gradient(out))

        (value, found), gradients = value_and_grad(loss, has_aux=True)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value, found

    return step


@pytest.mark.parametrize("method", [ShardParallel, DataParallel])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_micro_batches_look_at_the_whole_batch(name: str, method: Any) -> None:
    step = step_of(LOOKED_AT[name], jax.value_and_grad)
    parallel = stablehlo_alpa.parallelize(step, method=method(num_micro_batches=4))
    assert_same(parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))


@pytest.mark.parametrize("name", LOOKED_AT)
def test_pipelines_look_at_the_whole_batch(name: str) -> None:
    step = step_of(LOOKED_AT[name])
    assert_same(pipeline(step, 4)(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))


def forward(look: Any, params: Any, x: Any) -> Any:
    return look(hidden(params, x))


def adapted(look: Any, params: Any, x: Any) -> Any:
    """The product of two parameters, which every micro-batch makes, is a small part of the work."""
    first, *others = params
    return look(hidden([first + 0.1 * first[:, :2] @ first[:2], *others], x))


def behind_the_update(look: Any, params: Any, x: Any) -> Any:
    gradients = jax.grad(lambda params: jnp.mean((hidden(params, x) - x) ** 2))(params)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
    return params, look(hidden(params, x))


@pytest.mark.parametrize("step", [forward, adapted, behind_the_update])
@pytest.mark.parametrize("look", [retrieved, jnp.median])
def test_what_is_not_differentiated_looks_at_the_whole_batch(step: Any, look: Any) -> None:
    step = partial(step, look)
    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))
    assert_same(parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))


def test_layers_are_cut_by_the_work_of_the_loss() -> None:
    """Else what is looked at would be taken for a layer, and all of the model for another."""

    def look(out: Any) -> Any:
        products = out.T @ out / ROWS
        for _ in range(5):
            products = jnp.tanh(products @ products)
        return products

    step, params = step_of(look), PARAMS * 2
    found = pipeline(step, 2, stages=2)(params, BATCH)
    assert_same(found, jax.jit(step)(params, BATCH))
    assert len({frozenset(array.devices()) for array in found[0]}) == 2


@pytest.mark.parametrize("cut", [lambda step: pipeline(step, 4), None])
def test_more_work_than_micro_batches_divide_is_refused(cut: Any) -> None:
    def look(out: Any) -> Any:
        wide = out @ out.T
        for _ in range(64):
            wide = jnp.tanh(wide @ wide)
        return wide

    def on_one_mesh(step: Any) -> Any:
        return stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))

    with pytest.raises(CompileError, match="needs the whole batch"):
        (cut or on_one_mesh)(step_of(look)).plan(PARAMS, BATCH)


@pytest.mark.parametrize("value_and_grad", [jax.value_and_grad, stablehlo_alpa.value_and_grad])
def test_what_is_made_of_gradients_goes_through_the_batch_once_more(value_and_grad: Any) -> None:
    """A loss at the new parameters is taken part by part, and not of all examples at once."""

    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            return jnp.mean((hidden(params, x) - x) ** 2)

        value, gradients = value_and_grad(loss)(params)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        return params, value, loss(params)

    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))
    remarks = parallel.plan(PARAMS, BATCH).remarks
    assert any("gone through once more" in remark for remark in remarks)
    assert_same(parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))


def test_vectors_of_parameters_beside_products_of_them() -> None:
    """No product has examples in it; those of parameters alone are less than the rest."""
    batch = jax.random.normal(jax.random.key(1), (64 * ROWS, WIDTH))

    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            vector, square = params
            apart = square @ square.T - jnp.eye(WIDTH)
            return jnp.mean(jnp.tanh(x @ vector) ** 2) + jnp.sum(apart**2)

        return stablehlo_alpa.value_and_grad(loss)(params)

    params = weights(WIDTH), weights(WIDTH, WIDTH, seed=1)
    found = pipeline(step, 4, stages=1)(params, batch)
    assert_same(found, jax.jit(step)(params, batch))
