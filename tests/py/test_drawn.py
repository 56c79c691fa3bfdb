"""Random numbers that devices draw are the same on all of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import stablehlo_alpa


def test_all_devices_hold_the_same_numbers() -> None:
    def draw(x: jax.Array) -> list[jax.Array]:
        numbers = lax.rng_uniform(2.0, 3.0, (64, 64))
        few = lax.rng_uniform(np.int32(0), np.int32(1000), (3,))
        # Wherever it is split, a device needs what the others return of the numbers.
        return [numbers, x + numbers, numbers @ numbers.T, few]

    step = stablehlo_alpa.parallelize(draw)
    whole, added, product, few = step(jnp.zeros((64, 64)))
    assert few.sharding.is_fully_replicated
    for value in (whole, few):
        # Each device has what the others have of it, or its part of that.
        for shard in value.addressable_shards:
            np.testing.assert_array_equal(shard.data, np.asarray(value)[shard.index])
    np.testing.assert_array_equal(whole, added)
    np.testing.assert_allclose(product, np.asarray(whole) @ np.asarray(whole).T, rtol=1e-5)
    assert 2 <= whole.min() < 2.01 < 2.99 < whole.max() < 3
    assert abs(float(whole.mean()) - 2.5) < 0.05
    assert 0 <= few.min() <= few.max() < 1000


def test_every_draw_is_another() -> None:
    def draw(x: jax.Array) -> list[jax.Array]:
        return [x + lax.rng_uniform(0.0, 1.0, x.shape) for _ in range(2)]

    step = stablehlo_alpa.parallelize(draw)
    x = jnp.zeros((64, 64))
    found = [np.asarray(value) for value in (*step(x), *step(x))]
    assert len({value.tobytes() for value in found}) == 4


def _two_layers(u: Any, w: Any, x: Any) -> Any:
    return jnp.tanh(jnp.tanh(x @ w[0] + u) @ w[1] + u)


def _two_stages() -> stablehlo_alpa.PipeshardParallel:
    return stablehlo_alpa.PipeshardParallel(
        num_micro_batches=1,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
    )


def test_stages_and_what_is_returned_have_the_same_numbers() -> None:
    """What layers draw is not drawn again behind the micro-batches, where it is returned."""

    def infer(w: Any, x: Any) -> Any:
        u = lax.rng_uniform(0.0, 1.0, (16,))
        return _two_layers(u, w, x), u, 2 * u

    w, x = [jnp.eye(16), jnp.eye(16)], jnp.ones((32, 16))
    made, u, twice = stablehlo_alpa.parallelize(infer, method=_two_stages())(w, x)
    np.testing.assert_array_equal(twice, 2 * np.asarray(u))
    np.testing.assert_allclose(made, _two_layers(np.asarray(u), w, x), atol=1e-6)


def test_updates_have_the_numbers_that_the_loss_had() -> None:
    def loss(w: Any, u: Any, x: Any) -> Any:
        return (_two_layers(u, w, x) ** 2).mean()

    def train(w: Any, x: Any) -> Any:
        u = lax.rng_uniform(0.0, 1.0, (16,))
        value, gradients = stablehlo_alpa.value_and_grad(lambda w: loss(w, u, x))(w)
        return [a - 0.1 * g + u for a, g in zip(w, gradients, strict=True)], value, u

    w, x = [jnp.eye(16), jnp.eye(16)], jnp.ones((32, 16))
    new, value, u = stablehlo_alpa.parallelize(train, method=_two_stages())(w, x)
    expected, gradients = jax.value_and_grad(loss)(w, np.asarray(u), x)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for ours, a, g in zip(new, w, gradients, strict=True):
        np.testing.assert_allclose(ours, a - 0.1 * g + np.asarray(u), atol=1e-5)
