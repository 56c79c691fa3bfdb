"""The U-Net of latent diffusion (Rombach et al., CVPR 2022), as Stable Diffusion 1 has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.errors import ModelError
from stablehlo_alpa.zoo.blocks.diffusion import (
    ConvolutionBlock,
    Downsample,
    TextAttention,
    Upsample,
    waves,
)
from stablehlo_alpa.zoo.case import Field, ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import Task, train_case


@dataclass(frozen=True)
class UNetSizes:
    """Sizes of a U-Net.

    Attributes:
        channels: of each level, the first the finest; every level halves the image.
        blocks: of a level on the way down; one more on the way up.
        heads: of attention.
        attending: levels with attention, from the finest on.
        text, words: size of a word of the text, and how many there are.
        groups: of group norms.
        image: pixels of a side of the latent, by default.
        colours: channels of the latent.
    """

    channels: tuple[int, ...] = (320, 640, 1280, 1280)
    blocks: int = 2
    heads: int = 8
    attending: int = 3
    text: int = 768
    words: int = 77
    groups: int = 32
    image: int = 64
    colours: int = 4


SIZES: Mapping[str, UNetSizes] = MappingProxyType(
    {
        "tiny": UNetSizes((16, 16), 1, 2, 1, text=16, words=4, groups=4, image=8),
        "860M": UNetSizes(),
    }
)


class UNet(nn.Module):
    """The noise in a latent image, given its time and a text."""

    sizes: UNetSizes
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, images: jax.Array, times: jax.Array, text: jax.Array) -> jax.Array:
        """Maps f32[batch, side, side, colours], f32[batch], f32[batch, words, text] to images."""
        sizes, dtype = self.sizes, self.dtype
        first = sizes.channels[0]
        text = text.astype(dtype)
        dense = partial(nn.Dense, 4 * first, dtype=dtype)
        time = dense(name="time_1")(waves(times, first).astype(dtype))
        time = dense(name="time_2")(nn.silu(time))
        x = nn.Conv(first, (3, 3), dtype=dtype, name="stem")(images)
        skips = [x]
        for level, channels in enumerate(sizes.channels):
            for number in range(sizes.blocks):
                x = self._block(f"down_{level}_{number}", level, channels)(x, time, text)
                skips.append(x)
            if level + 1 < len(sizes.channels):
                x = Downsample(dtype, name=f"down_{level}")(x)
                skips.append(x)
        x = self._block("middle_1", 0, x.shape[-1])(x, time, text)
        x = self._block("middle_2", len(sizes.channels), x.shape[-1])(x, time, text)
        for level, channels in reversed(list(enumerate(sizes.channels))):
            for number in range(sizes.blocks + 1):
                x = jnp.concatenate([x, skips.pop()], axis=-1)
                x = self._block(f"up_{level}_{number}", level, channels)(x, time, text)
            if level:
                x = Upsample(dtype, name=f"up_{level}")(x)
        x = nn.silu(nn.GroupNorm(sizes.groups, dtype=dtype, name="norm")(x))
        noise: jax.Array = nn.Conv(images.shape[-1], (3, 3), dtype=dtype, name="out")(x)
        return noise

    def _block(self, name: str, level: int, channels: int) -> Any:
        """A convolution block, with attention behind it where the level has it."""
        block = nn.remat(_Block) if self.remat else _Block
        return block(self.sizes, channels, level < self.sizes.attending, self.dtype, name=name)


class _Block(nn.Module):
    """Convolutions, and attention behind them where wanted."""

    sizes: UNetSizes
    channels: int
    is_attending: bool
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array, time: jax.Array, text: jax.Array) -> jax.Array:
        """Maps [batch, side, side, any] to [batch, side, side, channels]."""
        groups = self.sizes.groups
        x = ConvolutionBlock(self.channels, groups, self.dtype, name="convolutions")(x, time)
        if self.is_attending:
            heads = self.sizes.heads
            x = TextAttention(heads, groups, self.dtype, name="attention")(x, text)
        return x


def _loss(noise: jax.Array, data: Any) -> jax.Array:
    """f32[] mean squared error of the noise that was found."""
    return jnp.mean((noise.astype(jnp.float32) - data["noise"]) ** 2)


def unet(
    size: str,
    *,
    batch: int,
    image: int | None = None,
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.bfloat16,
) -> ModelCase:
    """The train step of a diffusion U-Net.

    Args:
        size: one of ``SIZES``.
        batch: images of a step.
        image: pixels of a side of the latent; None for what the model was trained on.
        scanned: refused: no two blocks that follow each other are equal.
        remat: of a block only its inputs are kept for the backward pass.
        dtype: of what is computed; parameters are f32.

    Raises:
        ModelError: there is no such size, levels do not halve the image, or it is to be scanned.
    """
    sizes = size_named("unet", SIZES, size)
    side = image or sizes.image
    check_batch(batch, image=side)
    halved = 2 ** (len(sizes.channels) - 1)
    if side % halved:
        raise ModelError(
            f"image is {side} pixels, its {len(sizes.channels)} levels need a multiple of {halved}"
        )
    if scanned:
        raise ModelError("unet has no run of equal blocks to scan over: leave scanned=True out")
    latent = Field((batch, side, side, sizes.colours))
    fields = {
        "images": latent,
        "times": Field((batch,)),
        "text": Field((batch, sizes.words, sizes.text)),
        "noise": latent,
    }
    task = Task(fields, ("images", "times", "text"), _loss)
    depth = (2 * sizes.blocks + 1) * len(sizes.channels) + 2
    return train_case(f"unet-{size.lower()}", UNet(sizes, remat, dtype), task, depth=depth)
