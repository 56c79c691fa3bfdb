"""A U-Net trained on one image at a time, which is split along its rows and columns.

    python examples/unet_space.py
    python examples/unet_space.py --size 256 --steps 8

No sharding is written down. The batch is smaller than the devices, so the planner splits space:
windows of convolutions and pooling reach into the rows of neighbours, which send them.
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

BATCH, CLASSES, OPTIMIZER = 1, 4, optax.adam(1e-3)


class Block(nn.Module):
    """Two convolutions, each with a norm over groups of channels."""

    features: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """f32[batch, height, width, any] to f32[batch, height, width, features]."""
        for _ in range(2):
            x = nn.Conv(self.features, (3, 3))(x)
            x = nn.relu(nn.GroupNorm(4)(x))
        return x


class UNet(nn.Module):
    """Down by pooling, up by transposed convolutions, with connections across."""

    widths: tuple[int, ...] = (8, 16, 32)

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Logits f32[batch, height, width, classes] of images f32[batch, height, width, 3]."""
        across = []
        for width in self.widths[:-1]:
            x = Block(width)(x)
            across.append(x)
            x = nn.max_pool(x, (2, 2), (2, 2))
        x = Block(self.widths[-1])(x)
        for width, beside in zip(reversed(self.widths[:-1]), reversed(across), strict=True):
            x = nn.ConvTranspose(width, (2, 2), (2, 2))(x)
            x = Block(width)(jnp.concatenate([beside, x], -1))
        return nn.Conv(CLASSES, (1, 1))(x)


def train_step(params: Any, state: Any, image: jax.Array, labels: jax.Array) -> Any:
    """One update: parameters, state of the optimiser and the loss."""

    def loss_of(params: Any) -> jax.Array:
        logits = UNet().apply(params, image)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradients = jax.value_and_grad(loss_of)(params)
    updates, state = OPTIMIZER.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


def main() -> None:
    """Trains with one device and with all, and prints both losses."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    draw = np.random.default_rng(0)
    shape = (BATCH, options.size, options.size)
    image = jnp.asarray(draw.normal(size=(*shape, 3)), jnp.float32)
    labels = jnp.asarray(draw.integers(0, CLASSES, shape), jnp.int32)
    params = jax.jit(UNet().init)(jax.random.PRNGKey(0), image)
    split, whole = sa.parallelize(train_step), jax.jit(train_step)
    arguments = (params, OPTIMIZER.init(params), image, labels)
    print(split.plan(*arguments))
    one, all_devices = arguments[:2], arguments[:2]
    for step in range(options.steps):
        *one, alone = whole(*one, image, labels)
        *all_devices, together = split(*all_devices, image, labels)
        print(f"step {step}: loss {float(together):.4f}, on one device {float(alone):.4f}")


if __name__ == "__main__":
    main()
