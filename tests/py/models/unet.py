"""A U-Net with skip connections and group norm in flax linen, as diffusion models use it."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from models.case import TrainCase, filled, make_case


class ConvBlock(nn.Module):
    """Two convolutions behind group norms, with a residual and a shift from the time."""

    channels: int

    @nn.compact
    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        """Maps [batch, height, width, in] and [batch, features] to [batch, height, width, out]."""
        y = nn.Conv(self.channels, (3, 3))(nn.silu(nn.GroupNorm(4)(x)))
        y = y + nn.Dense(self.channels)(nn.silu(time))[:, None, None, :]
        y = nn.Conv(self.channels, (3, 3))(nn.silu(nn.GroupNorm(4)(y)))
        return y + nn.Dense(self.channels)(x)


class UNet(nn.Module):
    """The noise in an image; every level down halves the image."""

    channels: Sequence[int]
    blocks: int

    @nn.compact
    def __call__(self, images: jax.Array, times: jax.Array) -> jax.Array:
        """Maps f32[batch, size, size, colours] and f32[batch] to the images' shape."""
        frequencies = jnp.exp(jnp.linspace(0.0, 4.0, 8))
        waves = times[:, None] * frequencies
        time = jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], axis=-1)
        time = nn.Dense(self.channels[0])(time)
        x = nn.Conv(self.channels[0], (3, 3))(images)
        skips = []
        for level, channels in enumerate(self.channels):
            for _ in range(self.blocks):
                x = ConvBlock(channels)(x, time)
                skips.append(x)
            if level + 1 < len(self.channels):
                x = nn.avg_pool(x, (2, 2), (2, 2))
        for level, channels in reversed(list(enumerate(self.channels))):
            for _ in range(self.blocks):
                x = ConvBlock(channels)(jnp.concatenate([x, skips.pop()], axis=-1), time)
            if level:
                x = jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)
        return nn.Conv(images.shape[-1], (3, 3))(nn.silu(nn.GroupNorm(4)(x)))


def make(
    *,
    batch: int = 8,
    size: int = 16,
    channels: Sequence[int] = (16, 32),
    blocks: int = 1,
    optimizer: str = "adam",
    with_gradients: bool = False,
) -> TrainCase:
    """Denoising of random images."""
    model = UNet(tuple(channels), blocks)
    rng = np.random.default_rng(0)
    data = {
        "images": rng.standard_normal((batch, size, size, 3), np.float32),
        "noise": rng.standard_normal((batch, size, size, 3), np.float32),
        "times": rng.random((batch,), np.float32),
    }
    shapes = jax.eval_shape(model.init, jax.random.PRNGKey(0), data["images"], data["times"])
    params = filled(shapes)

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        del rng
        found = model.apply(params, batch["images"] + batch["noise"], batch["times"])
        return jnp.mean((found - batch["noise"]) ** 2), statistics

    return make_case(
        "unet", loss_fn, params, data, optimizer=optimizer, with_gradients=with_gradients
    )
