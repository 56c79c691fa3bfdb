"""Random numbers that devices draw are the same on all of them."""

from __future__ import annotations

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
