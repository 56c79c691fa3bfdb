"""Gradients by comparison, where one program makes again what another one compared.

The gradient of a maximum goes to what equals it. One program that makes both finds them equal;
another one, which makes one of them again, or in parts, rounds it differently.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stablehlo_alpa
from stablehlo_alpa import Method


def normalised(scale: jax.Array, x: jax.Array) -> jax.Array:
    x = x - x.mean(-1, keepdims=True)
    return scale * x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-3)


def dropped(x: jax.Array, key: jax.Array) -> jax.Array:
    return jnp.where(jax.random.bernoulli(key, 0.7, x.shape), x / 0.7, 0)


def clipped(x: jax.Array, key: jax.Array) -> jax.Array:
    return dropped(jnp.clip(x, 0, 4), key)


def of_largest(x: jax.Array, key: jax.Array) -> jax.Array:
    largest = x.max(-1, keepdims=True)
    return dropped(jnp.tanh(x) - largest, key)


def above_largest_but_two(x: jax.Array, key: jax.Array) -> jax.Array:
    least = jax.lax.top_k(x, 3)[0][:, -1:]
    return dropped(jnp.where(x >= least, x**2, 0), key)


def of_pairs(x: jax.Array, key: jax.Array) -> jax.Array:
    pairs = x.reshape(x.shape[0], -1, 2)
    return dropped(jnp.maximum(pairs[..., 0], jnp.sin(pairs[..., 1])), key)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def largest(x: jax.Array, axis: int) -> jax.Array:
    return x.max(axis, keepdims=True)


def with_largest(x: jax.Array, axis: int) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    found = x.max(axis, keepdims=True)
    return found, (x, found)


def to_largest(axis: int, kept: tuple[jax.Array, jax.Array], cotangent: jax.Array) -> Any:
    return (jnp.where(kept[0] - kept[1] == 0, cotangent, 0),)


largest.defvjp(with_largest, to_largest)


def of_largest_by_own_rule(x: jax.Array, key: jax.Array) -> jax.Array:
    return dropped(jnp.tanh(x) - largest(x, -1), key)


def of_largest_example_by_own_rule(x: jax.Array, key: jax.Array) -> jax.Array:
    return dropped(jnp.tanh(x) - largest(x, 0), key)


def of_largest_example(x: jax.Array, key: jax.Array) -> jax.Array:
    return dropped(jnp.tanh(x) - 0.5 * x.max(0, keepdims=True), key)


def above_median_example(x: jax.Array, key: jax.Array) -> jax.Array:
    return dropped(jnp.where(x >= jnp.sort(x, 0)[x.shape[0] // 2], x**2, 0), key)


def largest_until_there(x: jax.Array, key: jax.Array) -> jax.Array:
    return dropped(jnp.where(jax.lax.cummax(x, 0) == x, 3 * x, x), key)


def binned(x: jax.Array, key: jax.Array) -> jax.Array:
    return dropped(x * jnp.floor(4 * (x / jnp.abs(x).max())), key)


def times_largest_example(x: jax.Array, key: jax.Array) -> jax.Array:
    x = x @ jnp.cos(jnp.arange(256.0)).reshape(16, 16)
    return dropped(x * jnp.abs(x).max(0), key)


Function = Callable[[jax.Array, jax.Array], jax.Array]
Gradient = Callable[..., Callable[..., tuple[jax.Array, jax.Array]]]
gradients = pytest.mark.parametrize("gradient", [jax.value_and_grad, stablehlo_alpa.value_and_grad])


def check(function: Function, gradient: Gradient, method: Method, examples: int) -> None:
    def step(scale: jax.Array, x: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        def loss(scale: jax.Array) -> jax.Array:
            return jnp.sum(jnp.mean(function(normalised(scale, x), key) ** 2, 1))

        return gradient(loss)(scale)

    args = (
        jax.random.normal(jax.random.key(0), (16,)),
        jax.random.normal(jax.random.key(1), (examples, 16)),
        jax.random.key(2),
    )
    parallel = stablehlo_alpa.parallelize(step, method=method, batch_argnums=(1,))
    for found, wanted in zip(parallel(*args), jax.jit(step)(*args), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@gradients
@pytest.mark.parametrize(
    "function", [clipped, of_largest, of_largest_by_own_rule, above_largest_but_two, of_pairs]
)
def test_in_stages(function: Function, gradient: Gradient) -> None:
    method = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=2,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
    )
    check(function, gradient, method, examples=20)


@gradients
@pytest.mark.parametrize(
    "function",
    [
        of_largest_example,
        of_largest_example_by_own_rule,
        above_median_example,
        largest_until_there,
        binned,
        times_largest_example,
    ],
)
@pytest.mark.parametrize("num_micro_batches", [2, 3])
def test_among_examples(function: Function, gradient: Gradient, num_micro_batches: int) -> None:
    method = stablehlo_alpa.ShardParallel(mesh_shape=(8,), num_micro_batches=num_micro_batches)
    check(function, gradient, method, examples=24)
