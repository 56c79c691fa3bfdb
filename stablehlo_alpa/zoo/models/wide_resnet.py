"""Wide residual networks of the Alpa paper (Zheng et al., OSDI 2022, table 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.errors import ModelError
from stablehlo_alpa.zoo.blocks.stack import Stack
from stablehlo_alpa.zoo.case import Field, ModelCase
from stablehlo_alpa.zoo.linen import nn
from stablehlo_alpa.zoo.sizes import check_batch, size_named
from stablehlo_alpa.zoo.train_step import Task, cross_entropy, train_case

NORMS = ("batch", "group")

# Of group norm: groups of channels.
_GROUPS = 8


@dataclass(frozen=True)
class WideResNetSizes:
    """Sizes of a residual network.

    Attributes:
        blocks: of each group; every group but the first halves the image.
        channels: of the first group, each further one has twice as many; a block's outer channels
            are four times those.
        width: the 3x3 convolution of a block has so many times its channels.
        image: pixels of a side of an image, by default.
        classes: labels.
    """

    blocks: tuple[int, ...]
    channels: int
    width: int
    image: int = 224
    classes: int = 1024


_50, _101 = (3, 4, 6, 3), (3, 4, 23, 3)
SIZES: Mapping[str, WideResNetSizes] = MappingProxyType(
    {
        "tiny": WideResNetSizes((2, 2), 8, 2, image=16, classes=16),
        "250M": WideResNetSizes(_50, 160, 2),
        "1B": WideResNetSizes(_50, 320, 2),
        "2B": WideResNetSizes(_50, 448, 2),
        "4B": WideResNetSizes(_50, 640, 2),
        "6.7B": WideResNetSizes(_50, 320, 16),
        "13B": WideResNetSizes(_101, 320, 16),
    }
)


class Normed(nn.Module):
    """A convolution without bias, and a norm.

    Attributes:
        channels, kernel, stride: of the convolution.
        norm: ``"batch"`` or ``"group"``.
        dtype: of what is computed.
    """

    channels: int
    kernel: int
    stride: int
    norm: str
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, height, width, any] to [batch, height/stride, width/stride, channels]."""
        window, strides = (self.kernel,) * 2, (self.stride,) * 2
        convolution = nn.Conv(
            self.channels, window, strides, use_bias=False, dtype=self.dtype, name="convolution"
        )
        norm = partial(nn.GroupNorm, _GROUPS)
        if self.norm == "batch":
            norm = partial(nn.BatchNorm, use_running_average=False, momentum=0.9)
        y: jax.Array = norm(dtype=self.dtype, name="norm")(convolution(x))
        return y


class Block(nn.Module):
    """A 3x3 convolution between two 1x1 ones, with a residual.

    Attributes:
        channels: of the first convolution; the last has four times as many.
        width: the second has so many times as many.
        stride: of the second.
        norm: behind every convolution.
        dtype: of what is computed.
    """

    channels: int
    width: int
    stride: int
    norm: str
    dtype: Any

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, height, width, any] to [batch, height/stride, width/stride, 4 channels]."""
        normed = partial(Normed, norm=self.norm, dtype=self.dtype)
        y = nn.relu(normed(self.channels, 1, 1, name="narrow")(x))
        y = nn.relu(normed(self.width * self.channels, 3, self.stride, name="wide")(y))
        y = normed(4 * self.channels, 1, 1, name="out")(y)
        if x.shape != y.shape:
            x = normed(4 * self.channels, 1, self.stride, name="shortcut")(x)
        return nn.relu(x + y)


class WideResNet(nn.Module):
    """Logits of the class."""

    sizes: WideResNetSizes
    norm: str
    scanned: bool
    remat: bool
    dtype: Any

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        """Maps f32[batch, side, side, 3] to [batch, classes]."""
        sizes = self.sizes
        stem = Normed(sizes.channels, 7, 2, self.norm, self.dtype, name="stem")
        x = nn.max_pool(nn.relu(stem(images)), (3, 3), (2, 2), padding="SAME")
        for number, count in enumerate(sizes.blocks):
            channels = sizes.channels * 2**number
            block = partial(Block, channels, sizes.width, norm=self.norm, dtype=self.dtype)
            # The first block changes the shape; the others are equal.
            first = partial(block, 2 if number else 1)
            x = Stack(first, 1, False, self.remat, name=f"group_{number}_first")(x)
            rest = Stack(
                partial(block, 1), count - 1, self.scanned, self.remat, name=f"group_{number}"
            )
            x = rest(x)
        head = nn.Dense(sizes.classes, dtype=self.dtype, name="head")
        logits: jax.Array = head(x.mean(axis=(1, 2)))
        return logits


def wide_resnet(
    size: str,
    *,
    batch: int,
    image: int | None = None,
    norm: str = "batch",
    scanned: bool = False,
    remat: bool = False,
    dtype: Any = jnp.float32,
) -> ModelCase:
    """The train step of a wide residual network.

    Args:
        size: one of ``SIZES``.
        batch: images of a step.
        image: pixels of a side; None for the paper's.
        norm: ``"batch"``, whose statistics are of the batch, so that micro-batches have to be asked
            for as independent; or ``"group"``, whose are of an image.
        scanned: the equal blocks of a group are one ``lax.scan`` over stacked parameters.
        remat: of a block only its input is kept for the backward pass.
        dtype: of what is computed; parameters are f32.

    Raises:
        ModelError: there is no such size or norm.
    """
    sizes = size_named("wide_resnet", SIZES, size)
    side = image or sizes.image
    check_batch(batch, image=side)
    if norm not in NORMS:
        raise ModelError(f"norm is {norm!r}, must be one of {', '.join(NORMS)}")
    task = Task(
        {"images": Field((batch, side, side, 3)), "labels": Field((batch,), sizes.classes)},
        ("images",),
        lambda logits, data: cross_entropy(logits, data["labels"]),
    )
    model = WideResNet(sizes, norm, scanned, remat, dtype)
    return train_case(f"wide-resnet-{size.lower()}", model, task, depth=sum(sizes.blocks))
