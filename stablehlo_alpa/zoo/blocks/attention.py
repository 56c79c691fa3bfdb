"""Attention of many heads, which may share keys and values in groups."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.blocks.rotary import rotate
from stablehlo_alpa.zoo.linen import nn

# What a masked score is set to (heuristic: exp of it is 0 in f32 beside any score there is).
_MASKED = -1e9


def attend(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    *,
    is_causal: bool,
    scale: float | None = None,
    bias: jax.Array | None = None,
) -> jax.Array:
    """``softmax(scale * query key^T + bias) value``, the softmax in f32.

    Args:
        query: [batch, length, heads, size].
        key: [batch, source, groups, size]; each group is shared by ``heads / groups`` heads.
        value: [batch, source, groups, value size].
        is_causal: position i sees positions up to i.
        scale: by default ``1 / sqrt(size)``.
        bias: f32[heads, length, source], added to the scores.

    Returns:
        [batch, length, heads, value size].
    """
    heads, groups = query.shape[2], key.shape[2]
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    if groups == heads:
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key)
    else:
        query = query.reshape(*query.shape[:2], groups, heads // groups, query.shape[-1])
        scores = jnp.einsum("bqgsd,bkgd->bgsqk", query, key)
    scores = scores.astype(jnp.float32) * scale
    if bias is not None:
        scores = scores + bias
    if is_causal:
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(mask, scores, _MASKED)
    weights = jax.nn.softmax(scores).astype(value.dtype)
    if groups == heads:
        return jnp.einsum("bhqk,bkhd->bqhd", weights, value)
    mixed = jnp.einsum("bgsqk,bkgd->bqgsd", weights, value)
    return mixed.reshape(*mixed.shape[:2], heads, value.shape[-1])


class Attention(nn.Module):
    """Projections around `attend`.

    Attributes:
        heads, size: heads and the size of each.
        groups: heads of keys and values; None for as many as there are.
        is_causal: see `attend`.
        has_bias: of query, key and value.
        has_output_bias: of the output; None for as the others.
        rotary_base: of rotary positions; None for none.
        scale: see `attend`.
        dtype: of what is computed.
    """

    heads: int
    size: int
    groups: int | None = None
    is_causal: bool = True
    has_bias: bool = True
    has_output_bias: bool | None = None
    rotary_base: float | None = None
    scale: float | None = None
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(
        self, x: jax.Array, source: jax.Array | None = None, bias: jax.Array | None = None
    ) -> jax.Array:
        """Maps [batch, length, hidden] to the same.

        Args:
            x: what asks.
            source: [batch, source, any], what is looked at; x by default.
            bias: see `attend`.
        """
        source = x if source is None else source
        project = partial(nn.DenseGeneral, dtype=self.dtype, use_bias=self.has_bias)
        shared = (self.groups or self.heads, self.size)
        query = project((self.heads, self.size), name="query")(x)
        key = project(shared, name="key")(source)
        value = project(shared, name="value")(source)
        if self.rotary_base is not None:
            query, key = (rotate(one, self.rotary_base) for one in (query, key))
        mixed = attend(query, key, value, is_causal=self.is_causal, scale=self.scale, bias=bias)
        has_bias = self.has_bias if self.has_output_bias is None else self.has_output_bias
        return nn.DenseGeneral(
            x.shape[-1], axis=(-2, -1), dtype=self.dtype, use_bias=has_bias, name="out"
        )(mixed)
