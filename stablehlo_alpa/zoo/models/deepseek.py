"""A mixture like DeepSeek-V3: latent attention, a shared expert beside 256 (DeepSeek-AI, 2024).

Left out: the second head that predicts one token further, scores limited to nodes, and the bias
that balances the gate without a loss (there is a small balancing loss in its place).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.blocks.experts import Experts
from stablehlo_alpa.zoo.blocks.feed_forward import GatedFeedForward
from stablehlo_alpa.zoo.blocks.latent_attention import LatentAttention
from stablehlo_alpa.zoo.blocks.stack import Stack
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import mixture_task, train_case

_ROTARY_BASE = 10_000.0
_BALANCE = 1e-4


@dataclass(frozen=True)
class DeepSeekSizes:
    """Sizes of the mixture.

    Attributes:
        layers: of the decoder, the first ``dense`` of them without experts.
        dense: see ``layers``.
        hidden, heads: of the decoder.
        query_rank, latent_rank, size, rotary_size, value_size: of `LatentAttention`.
        inner: of the feed-forward networks of the first layers.
        experts, chosen: of a layer, and those of a token, beside the one that all tokens meet.
        expert_inner: of an expert.
        vocabulary: rows of the table, and columns of the last product.
        sequence: tokens of a sequence, by default.
        group: tokens among which places at the experts are given away (heuristic: sending and
            fetching them by products takes 8 % of what the experts take).
    """

    layers: int
    dense: int
    hidden: int
    heads: int
    query_rank: int
    latent_rank: int
    size: int
    rotary_size: int
    value_size: int
    inner: int
    experts: int
    chosen: int
    expert_inner: int
    vocabulary: int = 129280
    sequence: int = 4096
    group: int = 256


# The report's section 4.2.
SIZES: Mapping[str, DeepSeekSizes] = MappingProxyType(
    {
        "tiny": DeepSeekSizes(
            3, 1, 32, 4, 16, 16, 8, 4, 8, 64, 4, 2, 16, vocabulary=64, sequence=16, group=16
        ),
        "V3": DeepSeekSizes(61, 3, 7168, 128, 1536, 512, 128, 64, 128, 18432, 256, 8, 2048),
    }
)


class _Attending(nn.Module):
    """Latent attention behind an RMS norm, with a residual."""

    sizes: DeepSeekSizes
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        sizes = self.sizes
        attention = LatentAttention(
            sizes.heads,
            sizes.query_rank,
            sizes.latent_rank,
            sizes.size,
            sizes.rotary_size,
            sizes.value_size,
            _ROTARY_BASE,
            dtype=self.dtype,
            name="attention",
        )
        mixed: jax.Array = attention(nn.RMSNorm(dtype=self.dtype, name="norm")(x))
        return x + mixed


class DenseBlock(nn.Module):
    """Attention and a gated feed-forward network."""

    sizes: DeepSeekSizes
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        x = _Attending(self.sizes, self.dtype, name="attending")(x)
        y = nn.RMSNorm(dtype=self.dtype, name="norm_mlp")(x)
        return x + GatedFeedForward(self.sizes.inner, dtype=self.dtype, name="mlp")(y)


class MixtureBlock(nn.Module):
    """Attention, and experts beside the one that all tokens meet."""

    sizes: DeepSeekSizes
    dtype: Any

    @nn.compact
    def __call__(self, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Maps [batch, length, hidden] to the same, and adds to the balancing loss f32[]."""
        (x, total), sizes = carried, self.sizes
        x = _Attending(sizes, self.dtype, name="attending")(x)
        y = nn.RMSNorm(dtype=self.dtype, name="norm_experts")(x)
        mixture = Experts(
            sizes.experts,
            sizes.chosen,
            sizes.expert_inner,
            sizes.group,
            has_sigmoid=True,
            dtype=self.dtype,
            name="mixture",
        )
        mixed, balance = mixture(y)
        shared = GatedFeedForward(sizes.expert_inner, dtype=self.dtype, name="shared")(y)
        return x + mixed + shared, total + balance


class DeepSeek(nn.Module):
    """Logits of the next token, and the balancing loss."""

    sizes: DeepSeekSizes
    scanned: bool
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Maps int32[batch, length] to [batch, length, vocabulary] and f32[]."""
        sizes, how = self.sizes, (self.scanned, self.remat)
        x = nn.Embed(sizes.vocabulary, sizes.hidden, dtype=self.dtype, name="embed")(tokens)
        dense, mixture = (partial(one, sizes, self.dtype) for one in (DenseBlock, MixtureBlock))
        x = Stack(dense, sizes.dense, *how, name="dense")(x)
        rest = Stack(mixture, sizes.layers - sizes.dense, *how, name="mixtures")
        x, balance = rest((x, jnp.zeros(())))
        x = nn.RMSNorm(dtype=self.dtype, name="norm")(x)
        head = nn.Dense(sizes.vocabulary, use_bias=False, dtype=self.dtype, name="head")
        return head(x), balance


def deepseek(
    size: str,
    *,
    batch: int,
    sequence: int | None = None,
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.bfloat16,
) -> ModelCase:
    """The train step of a mixture like DeepSeek-V3.

    Args:
        size: one of ``SIZES``.
        batch: sequences of a step.
        sequence: tokens of a sequence; None for what the model was trained on.
        scanned: the layers are two ``lax.scan`` over stacked parameters, dense ones and mixtures.
        remat: of a layer only its input is kept for the backward pass.
        dtype: of what is computed; parameters are f32.

    Raises:
        ModelError: there is no such size, or the batch is no whole groups of tokens.
    """
    sizes = size_named("deepseek", SIZES, size)
    length = sequence or sizes.sequence
    check_batch(batch, sequence=length)
    return train_case(
        f"deepseek-{size.lower()}",
        DeepSeek(sizes, scanned, remat, dtype),
        mixture_task(batch, length, sizes.vocabulary, _BALANCE),
        depth=sizes.layers,
        expert_share=sizes.chosen / sizes.experts,
    )
