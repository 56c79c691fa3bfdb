"""T5: encoder and decoder with relative positions (Raffel et al., JMLR 2020)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stablehlo_alpa.zoo.blocks.attention import Attention
from stablehlo_alpa.zoo.blocks.feed_forward import FeedForward
from stablehlo_alpa.zoo.blocks.stack import Stack
from stablehlo_alpa.zoo.case import Field, ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import Task, cross_entropy, train_case

# Section 2.1: distances fall into 32 buckets, the last one for 128 and more.
_BUCKETS, _FARTHEST = 32, 128


@dataclass(frozen=True)
class T5Sizes:
    """Sizes of encoder and decoder.

    Attributes:
        layers: of each of both.
        hidden, heads, size, inner: of both; ``size`` is that of a head.
        vocabulary: rows of the table, which is the last product as well.
        sequence: tokens that are read, by default; a quarter as many are written.
    """

    layers: int
    hidden: int
    heads: int
    size: int
    inner: int
    vocabulary: int = 32128
    sequence: int = 512


# Section 3.7 (sizes), and the vocabulary as the weights were published.
SIZES: Mapping[str, T5Sizes] = MappingProxyType(
    {
        "tiny": T5Sizes(1, 32, 4, 8, 64, vocabulary=64, sequence=16),
        "60M": T5Sizes(6, 512, 8, 64, 2048),
        "220M": T5Sizes(12, 768, 12, 64, 3072),
        "770M": T5Sizes(24, 1024, 16, 64, 4096),
        "3B": T5Sizes(24, 1024, 32, 128, 16384),
        "11B": T5Sizes(24, 1024, 128, 128, 65536),
    }
)


def buckets(length: int, is_causal: bool) -> np.ndarray:
    """Of every pair of positions the bucket of their distance.

    Args:
        length: positions.
        is_causal: only what lies behind counts; else the buckets are shared by both directions.

    Returns:
        int32[length, length], query by key.
    """
    behind = np.arange(length)[:, None] - np.arange(length)[None, :]
    count, offset = _BUCKETS, np.zeros_like(behind)
    if is_causal:
        behind = np.maximum(behind, 0)
    else:
        count = _BUCKETS // 2
        offset, behind = np.where(behind < 0, count, 0), np.abs(behind)
    near = count // 2
    ratio = np.log(np.maximum(behind, 1) / near) / math.log(_FARTHEST / near)
    far = np.minimum(near + (ratio * (count - near)).astype(np.int64), count - 1)
    return (offset + np.where(behind < near, behind, far)).astype(np.int32)


class RelativeBias(nn.Module):
    """What distances add to the scores of each head."""

    heads: int
    is_causal: bool

    @nn.compact
    def __call__(self, length: int) -> jax.Array:
        """f32[heads, length, length]."""
        table = self.param("table", nn.initializers.normal(0.02), (_BUCKETS, self.heads))
        return jnp.transpose(table[buckets(length, self.is_causal)], (2, 0, 1))


class EncoderBlock(nn.Module):
    """Attention and a feed-forward network, each behind an RMS norm, with residuals."""

    sizes: T5Sizes
    dtype: Any
    is_causal: bool = False

    @nn.compact
    def __call__(self, x: jax.Array, bias: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same; bias f32[heads, length, length]."""
        x = x + self._attention("self", self.is_causal)(self._norm("self")(x), bias=bias)
        return x + self._feed_forward(x)

    def _attention(self, name: str, is_causal: bool) -> Any:
        """Scores are not scaled: initial weights are, in the paper."""
        return Attention(
            self.sizes.heads,
            self.sizes.size,
            is_causal=is_causal,
            has_bias=False,
            scale=1.0,
            dtype=self.dtype,
            name=f"attention_{name}",
        )

    def _norm(self, name: str) -> Any:
        return nn.RMSNorm(dtype=self.dtype, name=f"norm_{name}")

    def _feed_forward(self, x: jax.Array) -> jax.Array:
        network = FeedForward(
            self.sizes.inner, nn.relu, has_bias=False, dtype=self.dtype, name="mlp"
        )
        y: jax.Array = network(self._norm("mlp")(x))
        return y


class DecoderBlock(EncoderBlock):
    """A block that also looks at what was read."""

    is_causal: bool = True

    @nn.compact
    def __call__(self, x: jax.Array, bias: jax.Array, read: jax.Array) -> jax.Array:
        """As of `EncoderBlock`; read [batch, source, hidden]."""
        x = x + self._attention("self", True)(self._norm("self")(x), bias=bias)
        x = x + self._attention("cross", False)(self._norm("cross")(x), read)
        return x + self._feed_forward(x)


class T5(nn.Module):
    """Logits of what is written."""

    sizes: T5Sizes
    scanned: bool
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, source: jax.Array, written: jax.Array) -> jax.Array:
        """Maps int32[batch, source] and int32[batch, length] to [batch, length, vocabulary]."""
        sizes, how = self.sizes, (self.scanned, self.remat)
        embed = nn.Embed(sizes.vocabulary, sizes.hidden, dtype=self.dtype, name="embed")
        near = RelativeBias(sizes.heads, False, name="encoder_bias")(source.shape[1])
        block = partial(EncoderBlock, sizes, self.dtype)
        read = Stack(block, sizes.layers, *how, name="encoder")(embed(source), near)
        read = nn.RMSNorm(dtype=self.dtype, name="encoder_norm")(read)
        behind = RelativeBias(sizes.heads, True, name="decoder_bias")(written.shape[1])
        block = partial(DecoderBlock, sizes, self.dtype)
        x = Stack(block, sizes.layers, *how, name="decoder")(embed(written), behind, read)
        x = nn.RMSNorm(dtype=self.dtype, name="decoder_norm")(x)
        # The table is shared by both ends, so its products are scaled (the published code does).
        logits: jax.Array = embed.attend(x * sizes.hidden**-0.5)
        return logits


def t5(
    size: str,
    *,
    batch: int,
    sequence: int | None = None,
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.bfloat16,
) -> ModelCase:
    """The train step of T5.

    Args:
        size: one of ``SIZES``.
        batch: pairs of sequences of a step.
        sequence: tokens that are read, a quarter as many are written; None for the paper's.
        scanned: encoder and decoder are a ``lax.scan`` each over stacked parameters.
        remat: of a layer only its input is kept for the backward pass.
        dtype: of what is computed; parameters are f32.

    Raises:
        ModelError: there is no such size.
    """
    sizes = size_named("t5", SIZES, size)
    source = sequence or sizes.sequence
    length = max(source // 4, 1)
    check_batch(batch, sequence=source)
    tokens = Field((batch, length), sizes.vocabulary)
    task = Task(
        {"source": Field((batch, source), sizes.vocabulary), "written": tokens, "targets": tokens},
        ("source", "written"),
        lambda logits, data: cross_entropy(logits, data["targets"]),
    )
    model = T5(sizes, scanned, remat, dtype)
    return train_case(f"t5-{size.lower()}", model, task, depth=2 * sizes.layers)
