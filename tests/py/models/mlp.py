"""A multi-layer perceptron in flax linen."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from flax import linen as nn

from models.case import TrainCase, filled, make_case


class MLP(nn.Module):
    """Dense layers with ReLU between them."""

    features: Sequence[int]

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, inputs] to [batch, features[-1]]."""
        for width in self.features[:-1]:
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(self.features[-1])(x)


def make(
    *,
    batch: int = 32,
    inputs: int = 32,
    hidden: int = 64,
    outputs: int = 16,
    layers: int = 2,
    optimizer: str = "adam",
    with_gradients: bool = False,
) -> TrainCase:
    """Regression with mean squared error; ``layers`` hidden layers."""
    model = MLP([hidden] * layers + [outputs])
    rng = np.random.default_rng(0)
    data = {
        "x": rng.standard_normal((batch, inputs), np.float32),
        "y": rng.standard_normal((batch, outputs), np.float32),
    }
    params = filled(jax.eval_shape(model.init, jax.random.PRNGKey(0), data["x"]))

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        return ((model.apply(params, batch["x"]) - batch["y"]) ** 2).mean(), statistics

    return make_case(
        "mlp", loss_fn, params, data, optimizer=optimizer, with_gradients=with_gradients
    )
