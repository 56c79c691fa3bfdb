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

    Args:
        decay: f32[batch, length, channels, state].
        driven: likewise.

    Returns:
        f32[batch, length, channels, state], h.
    """

    def behind(first: Any, second: Any) -> Any:
        """Two stretches as one, the second behind the first."""
        (a, x), (b, y) = first, second
        return a * b, b * x + y

    found: jax.Array = jax.lax.associative_scan(behind, (decay, driven), axis=1)[1]
    return found


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
        x = nn.Conv(
            channels,
            (_TAPS,),
            padding=((_TAPS - 1, 0),),
            feature_group_count=channels,
            dtype=self.dtype,
            name="convolution",
        )(x)
        x = nn.silu(x)
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
