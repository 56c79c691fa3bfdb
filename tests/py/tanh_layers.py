"""A step of training that is small enough to be planned and run by every method."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import stablehlo_alpa as sa

WEIGHTS = [0.3 * np.random.default_rng(i).normal(size=(16, 16)).astype("f") for i in range(4)]
BATCH = np.random.default_rng(9).normal(size=(16, 16)).astype("f")


def step(weights: Any, batch: Any) -> tuple[Any, Any]:
    """One product and tanh per weight; the next weights, and the loss."""

    def loss(weights: Any) -> jax.Array:
        x = batch
        for weight in weights:
            x = jnp.tanh(x @ weight)
        return jnp.mean(x**2)

    value, gradients = sa.value_and_grad(loss)(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value
