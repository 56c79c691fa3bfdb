"""Blocks of a diffusion U-Net."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.blocks.attention import Attention
from stablehlo_alpa.zoo.linen import nn

# Of the longest wave of a time, over that of the shortest (Vaswani et al., 2017, section 3.5).
_SLOWEST = 10_000.0


def waves(times: jax.Array, size: int) -> jax.Array:
    """Cosines and sines f32[batch, size] of f32[batch], from fast to slow."""
    half = size // 2
    frequency = jnp.exp(-jnp.log(_SLOWEST) * jnp.arange(half, dtype=jnp.float32) / half)
    angle = times[:, None] * frequency
    return jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=-1)


class ConvolutionBlock(nn.Module):
    """Two 3x3 convolutions behind group norms, with a residual and a shift from the time."""

    channels: int
    groups: int
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array, time: jax.Array) -> jax.Array:
        """Maps [batch, side, side, any] and [batch, features] to [batch, side, side, channels]."""
        norm = partial(nn.GroupNorm, self.groups, dtype=self.dtype)
        convolution = partial(nn.Conv, self.channels, (3, 3), dtype=self.dtype)
        y = convolution(name="first")(nn.silu(norm(name="norm_first")(x)))
        shift = nn.Dense(self.channels, dtype=self.dtype, name="time")(nn.silu(time))
        y = norm(name="norm_second")(y + shift[:, None, None, :])
        y = convolution(name="second")(nn.silu(y))
        if x.shape[-1] != self.channels:
            x = nn.Conv(self.channels, (1, 1), dtype=self.dtype, name="shortcut")(x)
        return x + y


class TextAttention(nn.Module):
    """Pixels look at each other, then at a text, then each at itself (a gated network)."""

    heads: int
    groups: int
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array, text: jax.Array) -> jax.Array:
        """Maps [batch, side, side, channels] and [batch, words, any] to the former."""
        channels = x.shape[-1]
        dense = partial(nn.Dense, dtype=self.dtype)
        norm = partial(nn.LayerNorm, dtype=self.dtype)
        attention = partial(
            Attention,
            self.heads,
            channels // self.heads,
            is_causal=False,
            has_bias=False,
            has_output_bias=True,
            dtype=self.dtype,
        )
        y = nn.GroupNorm(self.groups, dtype=self.dtype, name="norm")(x)
        y = dense(channels, name="in")(y.reshape(x.shape[0], -1, channels))
        y = y + attention(name="pixels")(norm(name="norm_pixels")(y))
        y = y + attention(name="words")(norm(name="norm_words")(y), text)
        inner, gate = jnp.split(
            dense(8 * channels, name="up")(norm(name="norm_mlp")(y)), 2, axis=-1
        )
        y = y + dense(channels, name="down")(inner * nn.gelu(gate))
        return x + dense(channels, name="out")(y).reshape(x.shape)


class Downsample(nn.Module):
    """Halves an image."""

    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, side, side, channels] to [batch, side/2, side/2, channels]."""
        halve = nn.Conv(x.shape[-1], (3, 3), (2, 2), padding=1, dtype=self.dtype, name="halve")
        y: jax.Array = halve(x)
        return y


class Upsample(nn.Module):
    """Doubles an image."""

    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, side, side, channels] to [batch, 2 side, 2 side, channels]."""
        x = jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)
        y: jax.Array = nn.Conv(x.shape[-1], (3, 3), dtype=self.dtype, name="smooth")(x)
        return y
