"""Vision transformers (Zhai et al., "Scaling Vision Transformers", CVPR 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.errors import ModelError
from stablehlo_alpa.zoo.blocks.attention import Attention
from stablehlo_alpa.zoo.blocks.feed_forward import FeedForward
from stablehlo_alpa.zoo.blocks.stack import Stack
from stablehlo_alpa.zoo.case import Field, ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import Task, cross_entropy, train_case


@dataclass(frozen=True)
class ViTSizes:
    """Sizes of a vision transformer.

    Attributes:
        layers, hidden, heads, inner: of the encoder.
        patch: pixels of a side of a patch.
        image: pixels of a side of an image, by default.
        classes: labels.
    """

    layers: int
    hidden: int
    heads: int
    inner: int
    patch: int = 14
    image: int = 224
    classes: int = 1000


# The paper's table 2.
SIZES: Mapping[str, ViTSizes] = MappingProxyType(
    {
        "tiny": ViTSizes(2, 32, 4, 64, patch=4, image=16, classes=16),
        "g": ViTSizes(40, 1408, 16, 6144),
    }
)


class Block(nn.Module):
    """Attention and a feed-forward network, each behind a layer norm, with residuals."""

    sizes: ViTSizes
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, patches, hidden] to the same."""
        sizes = self.sizes
        size = sizes.hidden // sizes.heads
        attention = Attention(
            sizes.heads, size, is_causal=False, dtype=self.dtype, name="attention"
        )
        x = x + attention(nn.LayerNorm(dtype=self.dtype, name="norm_attention")(x))
        y = nn.LayerNorm(dtype=self.dtype, name="norm_mlp")(x)
        return x + FeedForward(sizes.inner, dtype=self.dtype, name="mlp")(y)


class ViT(nn.Module):
    """Logits of the class, from the mean over patches."""

    sizes: ViTSizes
    scanned: bool
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        """Maps f32[batch, side, side, 3] to [batch, classes]."""
        sizes = self.sizes
        patch = (sizes.patch, sizes.patch)
        x = nn.Conv(sizes.hidden, patch, patch, dtype=self.dtype, name="patches")(images)
        x = x.reshape(x.shape[0], -1, sizes.hidden)
        position = self.param("position", nn.initializers.normal(0.02), x.shape[1:])
        block = partial(Block, sizes, self.dtype)
        x = x + position.astype(self.dtype)
        x = Stack(block, sizes.layers, self.scanned, self.remat, name="encoder")(x)
        x = nn.LayerNorm(dtype=self.dtype, name="norm")(x).mean(axis=1)
        logits: jax.Array = nn.Dense(sizes.classes, dtype=self.dtype, name="head")(x)
        return logits


def vit(
    size: str,
    *,
    batch: int,
    image: int | None = None,
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.bfloat16,
) -> ModelCase:
    """The train step of a vision transformer.

    Args:
        size: one of ``SIZES``.
        batch: images of a step.
        image: pixels of a side; None for what the model was trained on.
        scanned: the layers are one ``lax.scan`` over stacked parameters.
        remat: of a layer only its input is kept for the backward pass.
        dtype: of what is computed; parameters are f32.

    Raises:
        ModelError: there is no such size, or patches do not divide the image.
    """
    sizes = size_named("vit", SIZES, size)
    side = image or sizes.image
    check_batch(batch, image=side)
    if side % sizes.patch:
        raise ModelError(f"image is {side} pixels, must be a multiple of patches of {sizes.patch}")
    task = Task(
        {
            "images": Field((batch, side, side, 3)),
            "labels": Field((batch,), sizes.classes),
        },
        ("images",),
        lambda logits, data: cross_entropy(logits, data["labels"]),
    )
    return train_case(
        f"vit-{size.lower()}", ViT(sizes, scanned, remat, dtype), task, depth=sizes.layers
    )
