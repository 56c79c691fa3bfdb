"""Feed-forward networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.linen import nn


class FeedForward(nn.Module):
    """Two products with an activation between them.

    Attributes:
        inner: size between them.
        activation: elementwise.
        has_bias: whether both add one.
        dtype: of what is computed.
    """

    inner: int
    activation: Callable[[jax.Array], jax.Array] = nn.gelu
    has_bias: bool = True
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [..., hidden] to the same."""
        dense = partial(nn.Dense, dtype=self.dtype, use_bias=self.has_bias)
        y = self.activation(dense(self.inner, name="up")(x))
        return dense(x.shape[-1], name="down")(y)


class GatedFeedForward(nn.Module):
    """``down(silu(gate(x)) * up(x))`` (SwiGLU; Shazeer, 2020), without biases.

    Attributes:
        inner: size between the products.
        dtype: of what is computed.
    """

    inner: int
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [..., hidden] to the same."""
        dense = partial(nn.Dense, dtype=self.dtype, use_bias=False)
        y = nn.silu(dense(self.inner, name="gate")(x)) * dense(self.inner, name="up")(x)
        return dense(x.shape[-1], name="down")(y)
