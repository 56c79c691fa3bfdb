"""Selective state spaces (Gu and Dao, Mamba, 2023)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.linen import nn

# The paper's section 3.4 and appendix E: channels over hidden size, taps of the convolution, and
# hidden size over the rank of the step sizes.
_EXPANSION, _TAPS, _RANK_SHARE = 2, 4, 16


def states(decay: jax.Array, driven: jax.Array) -> jax.Array:
    """``h_t = decay_t h_{t-1} + driven_t`` with ``h_{-1} = 0``.

    An associative scan: stretches of 1, 2, 4, ... positions are joined with those before them
    (Hillis and Steele, "Data Parallel Algorithms", 1986), all positions at once.

    Args:
        decay: f32[batch, length, channels, state].
        driven: likewise.

    Returns:
        f32[batch, length, channels, state], h.
    """
    length, stretch = decay.shape[1], 1
    while stretch < length:
        # Before the first position is a stretch that changes nothing.
        driven = driven + decay * _behind(driven, stretch, 0.0)
        decay = decay * _behind(decay, stretch, 1.0)
        stretch *= 2
    return driven


def _behind(x: jax.Array, positions: int, filling: float) -> jax.Array:
    """What is so many positions behind each."""
    widths = [(0, 0)] * x.ndim
    widths[1] = (positions, 0)
    return jnp.pad(x[:, : x.shape[1] - positions], widths, constant_values=filling)


class CausalConvolution(nn.Module):
    """Every channel by itself, over this position and those before it.

    Written as a sum of shifted products: a few taps need no convolution.

    Attributes:
        dtype: of what is computed.
    """

    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, channels] to the same."""
        shape = (_TAPS, x.shape[-1])
        taps = self.param("taps", nn.initializers.lecun_normal(), shape).astype(self.dtype)
        bias = self.param("bias", nn.initializers.zeros, shape[1:]).astype(self.dtype)
        padded = jnp.pad(x, ((0, 0), (_TAPS - 1, 0), (0, 0)))
        length = x.shape[1]
        return sum((padded[:, t : t + length] * taps[t] for t in range(_TAPS)), bias)


class SelectiveStateSpace(nn.Module):
    """``h_t = exp(d_t A) h_{t-1} + d_t B_t x_t``, ``y_t = C_t h_t + D x_t``, gated.

    The step size d, B and C are made from x (they select); A and D are parameters.

    Attributes:
        state: numbers that each channel remembers.
        dtype: of what is computed but the states, which are f32.
    """

    state: int
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        hidden = x.shape[-1]
        channels = _EXPANSION * hidden
        dense = partial(nn.Dense, use_bias=False, dtype=self.dtype)
        x, opened = jnp.split(dense(2 * channels, name="in")(x), 2, axis=-1)
        x = nn.silu(CausalConvolution(self.dtype, name="convolution")(x))
        y = self._scanned(
            x.astype(jnp.float32), *self._selected(x, math.ceil(hidden / _RANK_SHARE))
        )
        out: jax.Array = dense(hidden, name="out")(y.astype(self.dtype) * nn.silu(opened))
        return out

    def _selected(self, x: jax.Array, rank: int) -> tuple[jax.Array, jax.Array, jax.Array]:
        """f32 step size [batch, length, channels], and B and C [batch, length, state]."""
        made = nn.Dense(rank + 2 * self.state, use_bias=False, dtype=self.dtype, name="select")(x)
        low, B, C = jnp.split(made, [rank, rank + self.state], axis=-1)
        step = nn.Dense(x.shape[-1], dtype=self.dtype, name="step")(low)
        return nn.softplus(step.astype(jnp.float32)), B.astype(jnp.float32), C.astype(jnp.float32)

    def _scanned(self, x: jax.Array, step: jax.Array, B: jax.Array, C: jax.Array) -> jax.Array:
        """f32[batch, length, channels], y."""

        def rates(_: jax.Array, shape: tuple[int, int]) -> jax.Array:
            return jnp.log(jnp.broadcast_to(jnp.arange(1.0, shape[1] + 1), shape))

        A = -jnp.exp(self.param("log_rate", rates, (x.shape[-1], self.state)))
        D = self.param("skip", nn.initializers.ones, (x.shape[-1],))
        h = states(jnp.exp(step[..., None] * A), (step * x)[..., None] * B[:, :, None])
        return jnp.einsum("blcn,bln->blc", h, C) + D * x
