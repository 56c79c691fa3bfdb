"""Rotary positions (Su et al., RoFormer, 2021)."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def rotate(x: jax.Array, base: float) -> jax.Array:
    """Turns pairs of numbers by angles that grow with the position.

    Args:
        x: [batch, length, heads, size]; number i is paired with ``i + size / 2``.
        base: pair i of position t is turned by ``t base^(-2 i / size)``.

    Returns:
        shape and dtype of x.
    """
    size = x.shape[-1]
    frequency = base ** (-jnp.arange(0, size, 2, jnp.float32) / size)
    angle = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None] * frequency
    sine, cosine = jnp.sin(angle)[:, None, :], jnp.cos(angle)[:, None, :]
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = [first * cosine - second * sine, second * cosine + first * sine]
    return jnp.concatenate(turned, axis=-1).astype(x.dtype)
