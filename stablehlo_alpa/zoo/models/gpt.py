"""GPT: a decoder with learned positions (Brown et al., NeurIPS 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.blocks.attention import Attention
from stablehlo_alpa.zoo.blocks.feed_forward import FeedForward
from stablehlo_alpa.zoo.blocks.stack import Stack
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import next_token_task, train_case


@dataclass(frozen=True)
class GPTSizes:
    """Sizes of a GPT; the feed-forward network is four times as wide as the rest.

    Attributes:
        layers, hidden, heads: of the decoder.
        vocabulary: rows of the table, which is the last product as well.
        sequence: tokens of a sequence, by default.
    """

    layers: int
    hidden: int
    heads: int
    vocabulary: int = 51200
    sequence: int = 1024


# Zheng et al., OSDI 2022, table 6, and Brown et al., NeurIPS 2020, table 2.1.
SIZES: Mapping[str, GPTSizes] = MappingProxyType(
    {
        "tiny": GPTSizes(2, 32, 4, vocabulary=64, sequence=16),
        "350M": GPTSizes(24, 1024, 16),
        "1.3B": GPTSizes(24, 2048, 32),
        "2.6B": GPTSizes(32, 2560, 32),
        "6.7B": GPTSizes(32, 4096, 32),
        "15B": GPTSizes(48, 5120, 32),
        "39B": GPTSizes(48, 8192, 64),
        "175B": GPTSizes(96, 12288, 96, vocabulary=50257, sequence=2048),
    }
)


class Block(nn.Module):
    """Attention and a feed-forward network, each behind a layer norm, with residuals."""

    heads: int
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        hidden = x.shape[-1]
        attention = Attention(self.heads, hidden // self.heads, dtype=self.dtype, name="attention")
        x = x + attention(nn.LayerNorm(dtype=self.dtype, name="norm_attention")(x))
        y = nn.LayerNorm(dtype=self.dtype, name="norm_mlp")(x)
        return x + FeedForward(4 * hidden, dtype=self.dtype, name="mlp")(y)


class GPT(nn.Module):
    """Logits of the next token."""

    sizes: GPTSizes
    scanned: bool
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Maps int32[batch, length] to [batch, length, vocabulary]."""
        sizes = self.sizes
        embed = nn.Embed(sizes.vocabulary, sizes.hidden, dtype=self.dtype, name="embed")
        shape = (tokens.shape[1], sizes.hidden)
        position = self.param("position", nn.initializers.normal(0.02), shape)
        block = partial(Block, sizes.heads, self.dtype)
        x = embed(tokens) + position.astype(self.dtype)
        x = Stack(block, sizes.layers, self.scanned, self.remat, name="decoder")(x)
        logits: jax.Array = embed.attend(nn.LayerNorm(dtype=self.dtype, name="norm")(x))
        return logits


def gpt(
    size: str,
    *,
    batch: int,
    sequence: int | None = None,
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.bfloat16,
) -> ModelCase:
    """The train step of a GPT.

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
    sizes = size_named("gpt", SIZES, size)
    length = sequence or sizes.sequence
    check_batch(batch, sequence=length)
    model = GPT(sizes, scanned, remat, dtype)
    task = next_token_task(batch, length, sizes.vocabulary)
    return train_case(f"gpt-{size.lower()}", model, task, depth=sizes.layers)
