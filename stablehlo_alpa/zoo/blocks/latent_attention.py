"""Attention over a compressed latent (multi-head latent attention; DeepSeek-V2, 2024)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.blocks.attention import attend
from stablehlo_alpa.zoo.blocks.rotary import rotate
from stablehlo_alpa.zoo.linen import nn


class LatentAttention(nn.Module):
    """Causal attention whose queries, and whose keys and values, come through low ranks.

    Attributes:
        heads: heads.
        query_rank, latent_rank: of what queries, and keys with values, are made from.
        size: of a head's query and key, without positions.
        rotary_size: of the part with rotary positions, whose keys all heads share.
        value_size: of a head's value.
        rotary_base: of positions.
        dtype: of what is computed.
    """

    heads: int
    query_rank: int
    latent_rank: int
    size: int
    rotary_size: int
    value_size: int
    rotary_base: float
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        project = partial(nn.DenseGeneral, dtype=self.dtype, use_bias=False)
        norm = partial(nn.RMSNorm, dtype=self.dtype)
        low = norm(name="query_norm")(project(self.query_rank, name="query_down")(x))
        query = project((self.heads, self.size + self.rotary_size), name="query_up")(low)
        query, query_turned = jnp.split(query, [self.size], axis=-1)

        latent = project(self.latent_rank + self.rotary_size, name="latent_down")(x)
        latent, turned = jnp.split(latent, [self.latent_rank], axis=-1)
        turned = rotate(turned[:, :, None], self.rotary_base)
        both = project((self.heads, self.size + self.value_size), name="latent_up")(
            norm(name="latent_norm")(latent)
        )
        key, value = jnp.split(both, [self.size], axis=-1)

        shared = jnp.broadcast_to(turned, (*key.shape[:3], self.rotary_size))
        mixed = attend(
            jnp.concatenate([query, rotate(query_turned, self.rotary_base)], axis=-1),
            jnp.concatenate([key, shared], axis=-1),
            value,
            is_causal=True,
        )
        out: jax.Array = project(x.shape[-1], axis=(-2, -1), name="out")(mixed)
        return out
