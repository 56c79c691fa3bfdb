"""Mamba: a selective state-space model (Gu and Dao, 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.zoo.blocks.stack import Stack
from stablehlo_alpa.zoo.blocks.state_space import SelectiveStateSpace
from stablehlo_alpa.zoo.case import ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import next_token_task, train_case


@dataclass(frozen=True)
class MambaSizes:
    """Sizes of the model.

    Attributes:
        layers, hidden: of the decoder.
        state: numbers that each channel remembers.
        vocabulary: rows of the table, which is the last product as well.
        sequence: tokens of a sequence, by default.
    """

    layers: int
    hidden: int
    state: int = 16
    vocabulary: int = 50280
    sequence: int = 2048


# The paper's table 12; the vocabulary as the weights were published, a multiple of 8.
SIZES: Mapping[str, MambaSizes] = MappingProxyType(
    {
        "tiny": MambaSizes(2, 32, state=4, vocabulary=64, sequence=16),
        "130M": MambaSizes(24, 768),
        "370M": MambaSizes(48, 1024),
        "790M": MambaSizes(48, 1536),
        "1.4B": MambaSizes(48, 2048),
        "2.8B": MambaSizes(64, 2560),
    }
)


class Block(nn.Module):
    """A selective state space behind an RMS norm, with a residual."""

    state: int
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        mixer = SelectiveStateSpace(self.state, dtype=self.dtype, name="mixer")
        mixed: jax.Array = mixer(nn.RMSNorm(dtype=self.dtype, name="norm")(x))
        return x + mixed


class Mamba(nn.Module):
    """Logits of the next token."""

    sizes: MambaSizes
    scanned: bool
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Maps int32[batch, length] to [batch, length, vocabulary]."""
        sizes = self.sizes
        embed = nn.Embed(sizes.vocabulary, sizes.hidden, dtype=self.dtype, name="embed")
        block = partial(Block, sizes.state, self.dtype)
        stack = Stack(block, sizes.layers, self.scanned, self.remat, name="decoder")
        x = stack(embed(tokens))
        logits: jax.Array = embed.attend(nn.RMSNorm(dtype=self.dtype, name="norm")(x))
        return logits


def mamba(
    size: str,
    *,
    batch: int,
    sequence: int | None = None,
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.bfloat16,
) -> ModelCase:
    """The train step of Mamba; states are found by an associative scan over the sequence.

    Args:
        size: one of ``SIZES``.
        batch: sequences of a step.
        sequence: tokens of a sequence; None for what the model was trained on.
        scanned: the layers are one ``lax.scan`` over stacked parameters.
        remat: of a layer only its input is kept for the backward pass.
        dtype: of what is computed, states excepted; parameters and states are f32.

    Raises:
        ModelError: there is no such size.
    """
    sizes = size_named("mamba", SIZES, size)
    length = sequence or sizes.sequence
    check_batch(batch, sequence=length)
    model = Mamba(sizes, scanned, remat, dtype)
    task = next_token_task(batch, length, sizes.vocabulary)
    return train_case(f"mamba-{size.lower()}", model, task, depth=sizes.layers)
