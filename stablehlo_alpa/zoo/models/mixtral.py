"""Mixtral: a decoder whose every feed-forward network is one of experts (Jiang et al., 2024)."""

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
from stablehlo_alpa.zoo.blocks.stack import Stack
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import mixture_task, train_case

_ROTARY_BASE = 1e6
_BALANCE = 0.02


@dataclass(frozen=True)
class MixtralSizes:
    """Sizes of the mixture.

    Attributes:
        layers, hidden, heads: of the decoder.
        groups: heads of keys and values.
        inner: of an expert.
        experts, chosen: of a layer, and those of a token.
        vocabulary: rows of the table, and columns of the last product.
        sequence: tokens of a sequence, by default.
        group: tokens among which places at the experts are given away (heuristic: sending and
            fetching them by products then takes about 1 % of what the experts take).
    """

    layers: int
    hidden: int
    heads: int
    groups: int
    inner: int
    experts: int = 8
    chosen: int = 2
    vocabulary: int = 32000
    sequence: int = 4096
    group: int = 512


# The paper's table 1, and of 8x22B what Mistral published with the weights.
SIZES: Mapping[str, MixtralSizes] = MappingProxyType(
    {
        "tiny": MixtralSizes(2, 32, 4, 2, 64, experts=4, vocabulary=64, sequence=16, group=16),
        "8x7B": MixtralSizes(32, 4096, 32, 8, 14336),
        "8x22B": MixtralSizes(56, 6144, 48, 8, 16384, vocabulary=32768),
    }
)


class Block(nn.Module):
    """Attention and experts, each behind an RMS norm, with residuals."""

    sizes: MixtralSizes
    dtype: Any

    @nn.compact
    def __call__(self, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """Maps [batch, length, hidden] to the same, and adds to the balancing loss f32[]."""
        (x, total), sizes = carried, self.sizes
        attention = Attention(
            sizes.heads,
            sizes.hidden // sizes.heads,
            sizes.groups,
            has_bias=False,
            rotary_base=_ROTARY_BASE,
            dtype=self.dtype,
            name="attention",
        )
        mixture = Experts(
            sizes.experts, sizes.chosen, sizes.inner, sizes.group, dtype=self.dtype, name="mixture"
        )
        x = x + attention(nn.RMSNorm(dtype=self.dtype, name="norm_attention")(x))
        y, balance = mixture(nn.RMSNorm(dtype=self.dtype, name="norm_experts")(x))
        return x + y, total + balance


class Mixtral(nn.Module):
    """Logits of the next token, and the balancing loss."""

    sizes: MixtralSizes
    scanned: bool
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Maps int32[batch, length] to [batch, length, vocabulary] and f32[]."""
        sizes = self.sizes
        x = nn.Embed(sizes.vocabulary, sizes.hidden, dtype=self.dtype, name="embed")(tokens)
        block = partial(Block, sizes, self.dtype)
        stack = Stack(block, sizes.layers, self.scanned, self.remat, name="decoder")
        x, balance = stack((x, jnp.zeros(())))
        x = nn.RMSNorm(dtype=self.dtype, name="norm")(x)
        head = nn.Dense(sizes.vocabulary, use_bias=False, dtype=self.dtype, name="head")
        return head(x), balance


def mixtral(
    size: str,
    *,
    batch: int,
    sequence: int | None = None,
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.bfloat16,
) -> ModelCase:
    """The train step of Mixtral; experts have as much room as all tokens together ask for.

    Args:
        size: one of ``SIZES``.
        batch: sequences of a step.
        sequence: tokens of a sequence; None for a usual one.
        scanned: the layers are one ``lax.scan`` over stacked parameters.
        remat: of a layer only its input is kept for the backward pass.
        dtype: of what is computed; parameters are f32.

    Raises:
        ModelError: there is no such size, or the batch is no whole groups of tokens.
    """
    sizes = size_named("mixtral", SIZES, size)
    length = sequence or sizes.sequence
    check_batch(batch, sequence=length)
    return train_case(
        f"mixtral-{size.lower()}",
        Mixtral(sizes, scanned, remat, dtype),
        mixture_task(batch, length, sizes.vocabulary, _BALANCE),
        depth=sizes.layers,
        expert_share=sizes.chosen / sizes.experts,
    )
