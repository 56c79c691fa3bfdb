"""Llama 3 (Grattafiori et al., "The Llama 3 Herd of Models", 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.blocks.attention import Attention
from stablehlo_alpa.zoo.blocks.feed_forward import GatedFeedForward
from stablehlo_alpa.zoo.blocks.stack import Stack
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import next_token_task, train_case

_ROTARY_BASE = 500_000.0


@dataclass(frozen=True)
class LlamaSizes:
    """Sizes of a decoder.

    Attributes:
        layers, hidden, heads: of the decoder.
        groups: heads of keys and values.
        inner: of the feed-forward network.
        vocabulary: rows of the table, and columns of the last product.
        sequence: tokens of a sequence, by default.
    """

    layers: int
    hidden: int
    heads: int
    groups: int
    inner: int
    vocabulary: int = 128256
    sequence: int = 8192


# The paper's table 3.
SIZES: Mapping[str, LlamaSizes] = MappingProxyType(
    {
        "tiny": LlamaSizes(2, 32, 4, 2, 64, vocabulary=64, sequence=16),
        "8B": LlamaSizes(32, 4096, 32, 8, 14336),
        "70B": LlamaSizes(80, 8192, 64, 8, 28672),
        "405B": LlamaSizes(126, 16384, 128, 8, 53248),
    }
)


class Block(nn.Module):
    """Attention and a gated feed-forward network, each behind an RMS norm, with residuals."""

    sizes: LlamaSizes
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        sizes = self.sizes
        attention = Attention(
            sizes.heads,
            sizes.hidden // sizes.heads,
            sizes.groups,
            has_bias=False,
            rotary_base=_ROTARY_BASE,
            dtype=self.dtype,
            name="attention",
        )
        x = x + attention(nn.RMSNorm(dtype=self.dtype, name="norm_attention")(x))
        y = nn.RMSNorm(dtype=self.dtype, name="norm_mlp")(x)
        return x + GatedFeedForward(sizes.inner, dtype=self.dtype, name="mlp")(y)


class Llama(nn.Module):
    """Logits of the next token."""

    sizes: LlamaSizes
    scanned: bool
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Maps int32[batch, length] to [batch, length, vocabulary]."""
        sizes = self.sizes
        x = nn.Embed(sizes.vocabulary, sizes.hidden, dtype=self.dtype, name="embed")(tokens)
        block = partial(Block, sizes, self.dtype)
        x = Stack(block, sizes.layers, self.scanned, self.remat, name="decoder")(x)
        x = nn.RMSNorm(dtype=self.dtype, name="norm")(x)
        head = nn.Dense(sizes.vocabulary, use_bias=False, dtype=self.dtype, name="head")
        logits: jax.Array = head(x)
        return logits


def llama(
    size: str,
    *,
    batch: int,
    sequence: int | None = None,
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.bfloat16,
) -> ModelCase:
    """The train step of Llama 3.

    Args:
        size: one of ``SIZES``.
        batch: sequences of a step.
        sequence: tokens of a sequence; None for what the model was trained on.
        scanned: the layers are one ``lax.scan`` over stacked parameters.
        remat: of a layer only its input is kept for the backward pass.
        dtype: of what is computed; parameters are f32.

    Raises:
        ModelError: there is no such size.
    """
    sizes = size_named("llama", SIZES, size)
    length = sequence or sizes.sequence
    check_batch(batch, sequence=length)
    model = Llama(sizes, scanned, remat, dtype)
    task = next_token_task(batch, length, sizes.vocabulary)
    return train_case(f"llama-3-{size.lower()}", model, task, depth=sizes.layers)
