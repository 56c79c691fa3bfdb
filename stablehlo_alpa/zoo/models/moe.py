"""GShard's mixture: every second feed-forward network is one of experts (Lepikhin et al., 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.blocks.attention import Attention
from stablehlo_alpa.zoo.blocks.experts import Experts
from stablehlo_alpa.zoo.blocks.feed_forward import FeedForward
from stablehlo_alpa.zoo.blocks.stack import Stack
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import mixture_task, train_case

# Experts of a token, and places of all experts over what tokens ask for (GShard, section 2.2: each
# has room for 2 tokens / experts).
_CHOSEN, _ROOM = 2, 1.0
_BALANCE = 0.01


@dataclass(frozen=True)
class MoESizes:
    """Sizes of the mixture; feed-forward networks are eight times as wide as the rest.

    Attributes:
        layers, hidden, heads: of the decoder.
        experts: of every second layer.
        vocabulary: rows of the table, which is the last product as well.
        sequence: tokens of a sequence, by default.
        group: tokens among which places at the experts are given away.
    """

    layers: int
    hidden: int
    heads: int
    experts: int
    vocabulary: int = 32000
    sequence: int = 1024
    group: int = 2048


# Zheng et al., OSDI 2022, table 7.
SIZES: Mapping[str, MoESizes] = MappingProxyType(
    {
        "tiny": MoESizes(2, 32, 4, 4, vocabulary=64, sequence=16, group=16),
        "380M": MoESizes(8, 768, 16, 8),
        "1.3B": MoESizes(16, 768, 16, 16),
        "2.4B": MoESizes(16, 1024, 16, 16),
        "10B": MoESizes(16, 1536, 16, 32),
        "27B": MoESizes(16, 2048, 32, 48),
        "70B": MoESizes(32, 2048, 32, 64),
    }
)


class Pair(nn.Module):
    """A layer with a feed-forward network, and one with experts."""

    sizes: MoESizes
    dtype: Any

    @nn.compact
    def __call__(self, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Maps [batch, length, hidden] to the same, and adds to the balancing loss f32[]."""
        (x, total), sizes = carried, self.sizes
        x = x + self._attention(x, "dense")
        y = nn.LayerNorm(dtype=self.dtype, name="norm_mlp")(x)
        x = x + FeedForward(8 * sizes.hidden, nn.relu, dtype=self.dtype, name="mlp")(y)
        x = x + self._attention(x, "mixture")
        y = nn.LayerNorm(dtype=self.dtype, name="norm_experts")(x)
        mixture = Experts(
            sizes.experts,
            _CHOSEN,
            8 * sizes.hidden,
            sizes.group,
            _ROOM,
            is_gated=False,
            dtype=self.dtype,
            name="mixture",
        )
        y, balance = mixture(y)
        return x + y, total + balance

    def _attention(self, x: jax.Array, name: str) -> jax.Array:
        heads, size = self.sizes.heads, self.sizes.hidden // self.sizes.heads
        normed = nn.LayerNorm(dtype=self.dtype, name=f"norm_attention_{name}")(x)
        mixed: jax.Array = Attention(heads, size, dtype=self.dtype, name=f"attention_{name}")(
            normed
        )
        return mixed


class MoE(nn.Module):
    """Logits of the next token, and the balancing loss."""

    sizes: MoESizes
    scanned: bool
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Maps int32[batch, length] to [batch, length, vocabulary] and f32[]."""
        sizes = self.sizes
        embed = nn.Embed(sizes.vocabulary, sizes.hidden, dtype=self.dtype, name="embed")
        shape = (tokens.shape[1], sizes.hidden)
        position = self.param("position", nn.initializers.normal(0.02), shape)
        block = partial(Pair, sizes, self.dtype)
        carried = embed(tokens) + position.astype(self.dtype), jnp.zeros(())
        stack = Stack(block, sizes.layers // 2, self.scanned, self.remat, name="decoder")
        x, balance = stack(carried)
        return embed.attend(nn.LayerNorm(dtype=self.dtype, name="norm")(x)), balance


def moe(
    size: str,
    *,
    batch: int,
    sequence: int | None = None,
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.bfloat16,
) -> ModelCase:
    """The train step of GShard's mixture in the sizes of the Alpa paper.

    Args:
        size: one of ``SIZES``.
        batch: sequences of a step.
        sequence: tokens of a sequence; None for what the model was trained on.
        scanned: pairs of layers are one ``lax.scan`` over stacked parameters.
        remat: of a pair only its input is kept for the backward pass.
        dtype: of what is computed; parameters are f32.

    Raises:
        ModelError: there is no such size, or the batch is no whole groups of tokens.
    """
    sizes = size_named("moe", SIZES, size)
    length = sequence or sizes.sequence
    check_batch(batch, sequence=length)
    return train_case(
        f"moe-{size.lower()}",
        MoE(sizes, scanned, remat, dtype),
        mixture_task(batch, length, sizes.vocabulary, _BALANCE),
        depth=sizes.layers,
        expert_share=_CHOSEN / sizes.experts,
    )
