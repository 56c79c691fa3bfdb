"""A mixture of experts by `jax.lax.ragged_dot`: no expert has a capacity, no token is dropped.

    python examples/ragged_experts.py
    python examples/ragged_experts.py --steps 8

Tokens are sorted by their experts, whose groups are as long as they happen to be. No sharding is
written down: the planner splits rows, groups or both of the products.
"""

import argparse
import os
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

import stablehlo_alpa as sa

BATCH, LENGTH, HIDDEN, EXPERTS, CHOSEN, LAYERS = 16, 32, 128, 8, 2, 2
OPTIMIZER = optax.adam(1e-3)


class Experts(nn.Module):
    """Every token goes through the experts that its router likes best."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """f32[tokens, hidden] to the same."""
        init = nn.initializers.lecun_normal(batch_axis=(0,))
        up = self.param("up", init, (EXPERTS, HIDDEN, 4 * HIDDEN))
        down = self.param("down", init, (EXPERTS, 4 * HIDDEN, HIDDEN))
        weights, experts = jax.lax.top_k(jax.nn.softmax(nn.Dense(EXPERTS)(x)), CHOSEN)
        # int[tokens chosen]: the first tokens are those of expert 0.
        order = jnp.argsort(experts.reshape(-1), stable=True)
        sizes = jnp.bincount(experts.reshape(-1), length=EXPERTS)
        rows = x[order // CHOSEN]
        rows = jax.lax.ragged_dot(nn.gelu(jax.lax.ragged_dot(rows, up, sizes)), down, sizes)
        rows = rows * weights.reshape(-1)[order][:, None]
        return jnp.zeros_like(x).at[order // CHOSEN].add(rows)


class Model(nn.Module):
    """Experts with residual connections."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """f32[batch, length, hidden] to the same."""
        tokens = nn.Dense(HIDDEN)(x).reshape(-1, HIDDEN)
        for _ in range(LAYERS):
            tokens = tokens + Experts()(nn.LayerNorm()(tokens))
        return nn.Dense(HIDDEN)(tokens).reshape(x.shape)


def train_step(params: Any, state: Any, x: jax.Array, y: jax.Array) -> Any:
    """One update: parameters, state of the optimiser and the loss."""

    def loss_of(params: Any) -> jax.Array:
        return jnp.mean((Model().apply(params, x) - y) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(params)
    updates, state = OPTIMIZER.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


def main() -> None:
    """Trains with one device and with all, and prints both losses."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    draw = np.random.default_rng(0)
    x, y = jnp.asarray(draw.normal(size=(2, BATCH, LENGTH, HIDDEN)), jnp.float32)
    params = jax.jit(Model().init)(jax.random.PRNGKey(0), x)
    split, whole = sa.parallelize(train_step), jax.jit(train_step)
    arguments = (params, OPTIMIZER.init(params), x, y)
    print(split.plan(*arguments))
    one, all_devices = arguments[:2], arguments[:2]
    for step in range(options.steps):
        *one, alone = whole(*one, x, y)
        *all_devices, together = split(*all_devices, x, y)
        print(f"step {step}: loss {float(together):.5f}, on one device {float(alone):.5f}")


if __name__ == "__main__":
    main()
