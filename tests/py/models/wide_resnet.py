"""A wide residual network with batch norm in flax linen."""

from collections.abc import Sequence
from typing import Any

import jax
from flax import linen as nn

from models.case import TrainCase, cross_entropy, filled, make_case, random_images


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, each behind batch norm and ReLU, with a residual."""

    channels: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, height, width, inputs] to [batch, height/stride, width/stride, channels]."""
        y = nn.relu(nn.BatchNorm(use_running_average=False)(x))
        if self.stride != 1 or x.shape[-1] != self.channels:
            x = nn.Conv(self.channels, (1, 1), self.stride, use_bias=False)(y)
        y = nn.Conv(self.channels, (3, 3), self.stride, use_bias=False)(y)
        y = nn.relu(nn.BatchNorm(use_running_average=False)(y))
        return x + nn.Conv(self.channels, (3, 3), use_bias=False)(y)


class BottleneckBlock(nn.Module):
    """A 3x3 convolution between two 1x1 ones, each behind batch norm and ReLU, with a residual.

    Attributes:
        inner: channels of the 3x3 convolution.
    """

    channels: int
    inner: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, height, width, inputs] to [batch, height/stride, width/stride, channels]."""
        y = nn.relu(nn.BatchNorm(use_running_average=False)(x))
        if self.stride != 1 or x.shape[-1] != self.channels:
            x = nn.Conv(self.channels, (1, 1), self.stride, use_bias=False)(y)
        y = nn.Conv(self.inner, (1, 1), use_bias=False)(y)
        y = nn.relu(nn.BatchNorm(use_running_average=False)(y))
        y = nn.Conv(self.inner, (3, 3), self.stride, use_bias=False)(y)
        y = nn.relu(nn.BatchNorm(use_running_average=False)(y))
        return x + nn.Conv(self.channels, (1, 1), use_bias=False)(y)


class WideResNet(nn.Module):
    """Groups of residual blocks, each group but the first halving the image.

    Attributes:
        blocks: of each group.
        channels: of the first group; each further one has twice as many.
        width: of bottleneck blocks, inner channels over a quarter of their channels; 0 for blocks
            of two convolutions.
    """

    blocks: Sequence[int]
    channels: int
    classes: int
    width: int = 0

    @nn.compact
    def __call__(self, images: jax.Array) -> jax.Array:
        """Maps [batch, height, width, 3] to logits [batch, classes]."""
        x = nn.Conv(self.channels, (3, 3), use_bias=False)(images)
        x = nn.max_pool(x, (2, 2), (2, 2))
        for group, blocks in enumerate(self.blocks):
            channels = self.channels * 2**group
            for block in range(blocks):
                stride = 2 if group > 0 and block == 0 else 1
                if self.width:
                    x = BottleneckBlock(channels, self.width * channels // 4, stride)(x)
                else:
                    x = ResidualBlock(channels, stride)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=False)(x))
        return nn.Dense(self.classes)(x.mean(axis=(1, 2)))


# Wide-ResNet-101 with twice the inner channels, on images of 224 x 224.
WIDE_RESNET_101: dict[str, Any] = {
    "blocks": (3, 4, 23, 3),
    "channels": 256,
    "classes": 1000,
    "width": 2,
    "size": 224,
}


def make(
    *,
    batch: int = 16,
    size: int = 16,
    blocks: Sequence[int] = (1, 1),
    channels: int = 16,
    classes: int = 10,
    width: int = 0,
    optimizer: str = "sgd",
    with_gradients: bool = False,
) -> TrainCase:
    """Classification of random images; running statistics are part of the state."""
    model = WideResNet(tuple(blocks), channels, classes, width)
    data = random_images(2, batch, size, 3, classes)
    variables = filled(jax.eval_shape(model.init, jax.random.PRNGKey(0), data["images"]))

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        logits, updated = model.apply(
            {"params": params, "batch_stats": statistics}, batch["images"], mutable=["batch_stats"]
        )
        return cross_entropy(logits, batch["labels"]), updated["batch_stats"]

    return make_case(
        "wide_resnet",
        loss_fn,
        variables["params"],
        data,
        optimizer=optimizer,
        statistics=variables["batch_stats"],
        with_gradients=with_gradients,
    )
