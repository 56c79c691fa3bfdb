"""Micro-batches that are batches of their own: a loop over them, weighted."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batch_steps import BATCH, MASK, PARAMS, grads, hidden, pipeline
from test_models import assert_trees_close

import stablehlo_alpa
from stablehlo_alpa.errors import CompileError


def test_independent_micro_batches_are_a_loop() -> None:
    def loss(p: Any, x: Any) -> Any:
        x = x @ p[0]
        return jnp.mean(jnp.tanh((x - x.mean(0)) @ p[1]) ** 2)

    def loop(p: Any, x: Any) -> Any:
        found = [jax.value_and_grad(loss)(p, part) for part in jnp.split(x, 4)]
        return jax.tree.map(lambda *parts: sum(parts) / 4, *found)

    step = pipeline(grads(loss), micro_batches="independent")
    assert_trees_close(step(PARAMS, BATCH), jax.jit(loop)(PARAMS, BATCH), 1e-5, "results")


def one_mesh(fun: Any, count: int = 4, **options: Any) -> Any:
    method = stablehlo_alpa.ShardParallel(num_micro_batches=count, **options)
    return stablehlo_alpa.parallelize(fun, method=method)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parallel", "dtype"),
    [(pipeline, jnp.int32), (one_mesh, jnp.float32), (one_mesh, jnp.bfloat16)],
)
def test_independent_micro_batches_are_weighted_by_a_result(parallel: Any, dtype: Any) -> None:
    def loss(p: Any, x: Any, mask: Any) -> Any:
        count = mask.sum().astype(dtype)
        mean = jnp.sum(hidden(p, x) ** 2 * mask[:, None]) / jnp.maximum(mask.sum(), 1)
        return mean, {"count": count, "half": mean.astype(jnp.bfloat16)}

    def loop(p: Any, x: Any, mask: Any) -> Any:
        take = jax.value_and_grad(loss, has_aux=True)
        found = [take(p, *part) for part in zip(jnp.split(x, 4), jnp.split(mask, 4), strict=True)]
        weights = [part[0][1]["count"].astype(jnp.float32) for part in found]
        total = sum(part[0][1]["count"] for part in found)
        (mean, aux), gradients = jax.tree.map(
            lambda *parts: (
                sum(w * one for w, one in zip(weights, parts, strict=True)) / sum(weights)
            ),
            *found,
        )
        aux = {"count": total, "half": aux["half"].astype(jnp.bfloat16)}
        return (mean, aux), gradients

    step = parallel(
        grads(loss, has_aux=True),
        micro_batches="independent",
        reduction="result[0][1]['count']",
    )
    found, expected = step(PARAMS, BATCH, MASK), jax.jit(loop)(PARAMS, BATCH, MASK)
    assert jax.tree.map(lambda x: x.dtype, found) == jax.tree.map(lambda x: x.dtype, expected)
    assert_trees_close(found, expected, 1e-5, "results")


def test_the_weight_of_a_micro_batch_leaves_the_differentiated_function() -> None:
    def step(p: Any, x: Any) -> Any:
        value, gradients = stablehlo_alpa.value_and_grad(lambda p: jnp.mean(hidden(p, x) ** 2))(p)
        return gradients, {"twice": 2 * value, "rows": gradients[0][0]}

    def plan(name: str) -> Any:
        return one_mesh(step, micro_batches="independent", reduction=name).plan(PARAMS, BATCH)

    with pytest.raises(stablehlo_alpa.TraceError, match=r"must be .*: result\[0\]\[0\], "):
        plan("tokens")
    with pytest.raises(CompileError, match="must leave the differentiated function"):
        plan("result[1]['twice']")
    with pytest.raises(CompileError, match=r"must be one real number, and has type 'tensor<16x16"):
        plan("result[0][0]")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parallel", "make", "keys"),
    [
        (pipeline, jax.random.key, "split"),
        (one_mesh, jax.random.PRNGKey, "split"),
        (one_mesh, jax.random.key, "same"),
    ],
)
def test_keys_of_independent_micro_batches(parallel: Any, make: Any, keys: str) -> None:
    def loss(p: Any, x: Any, key: Any) -> Any:
        return jnp.mean(hidden(p, x * jax.random.bernoulli(key, 0.5, x.shape)) ** 2)

    def step(p: Any, x: Any, key: Any) -> Any:
        key, own = jax.random.split(key)
        value, gradients = stablehlo_alpa.value_and_grad(lambda p: loss(p, x, own))(p)
        return gradients, value, key

    def loop(p: Any, x: Any, key: Any) -> Any:
        key, own = jax.random.split(key)
        parts = jax.random.split(own, 4) if keys == "split" else [own] * 4
        found = [
            jax.value_and_grad(loss)(p, *one) for one in zip(jnp.split(x, 4), parts, strict=True)
        ]
        value, gradients = jax.tree.map(lambda *each: sum(each) / 4, *found)
        return gradients, value, key

    method = {"micro_batches": "independent", "keys": keys}
    found = parallel(step, **method)(PARAMS, BATCH, make(3))
    expected = jax.jit(loop)(PARAMS, BATCH, make(3))
    assert_trees_close(found[:2], expected[:2], 1e-5, "results")
    one, other = (jax.random.key_data(key) for key in (found[2], expected[2]))
    np.testing.assert_array_equal(one, other)


def test_gradients_alone_of_independent_micro_batches() -> None:
    def step(p: Any, x: Any) -> Any:
        return stablehlo_alpa.grad(lambda p: jnp.mean(hidden(p, x) ** 2))(p)

    found = pipeline(step, micro_batches="independent")(PARAMS, BATCH)
    assert_trees_close(found, jax.jit(step)(PARAMS, BATCH), 1e-5, "gradients")
