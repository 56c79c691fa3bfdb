"""A vision transformer in flax nnx."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from models.case import TrainCase, cross_entropy, filled, make_case, random_images


class Encoder(nnx.Module):
    """Self-attention and a feed-forward network with residuals."""

    def __init__(self, hidden: int, heads: int, *, rngs: nnx.Rngs):
        self.norm_attention = nnx.LayerNorm(hidden, rngs=rngs)
        # The softmax does not see a bias of the keys: its gradient would be rounding noise.
        self.attention = nnx.MultiHeadAttention(
            heads, hidden, use_bias=False, decode=False, rngs=rngs
        )
        self.norm_mlp = nnx.LayerNorm(hidden, rngs=rngs)
        self.up = nnx.Linear(hidden, 4 * hidden, rngs=rngs)
        self.down = nnx.Linear(4 * hidden, hidden, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, tokens, hidden] to the same."""
        x = x + self.attention(self.norm_attention(x))
        return x + self.down(nnx.gelu(self.up(self.norm_mlp(x))))


class ViT(nnx.Module):
    """Patches by convolution, a class token, encoders, logits."""

    def __init__(
        self,
        size: int,
        patch: int,
        hidden: int,
        heads: int,
        layers: int,
        classes: int,
        *,
        rngs: nnx.Rngs,
    ):
        tokens = (size // patch) ** 2 + 1
        self.patches = nnx.Conv(3, hidden, (patch, patch), patch, padding="VALID", rngs=rngs)
        self.class_token = nnx.Param(jnp.zeros((1, 1, hidden)))
        self.position = nnx.Param(0.02 * jax.random.normal(rngs.params(), (1, tokens, hidden)))
        self.layers = nnx.List([Encoder(hidden, heads, rngs=rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(hidden, rngs=rngs)
        self.head = nnx.Linear(hidden, classes, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        """Maps [batch, size, size, 3] to logits [batch, classes]."""
        x = self.patches(images)
        x = x.reshape(x.shape[0], -1, x.shape[-1])
        first = jnp.broadcast_to(self.class_token[...], (x.shape[0], 1, x.shape[-1]))
        x = jnp.concatenate([first, x], axis=1) + self.position[...]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


def make(
    *,
    batch: int = 16,
    size: int = 16,
    patch: int = 4,
    hidden: int = 32,
    heads: int = 4,
    layers: int = 2,
    classes: int = 10,
    optimizer: str = "adam",
    with_gradients: bool = False,
) -> TrainCase:
    """Classification of random images."""
    sizes = (size, patch, hidden, heads, layers, classes)
    shapes = nnx.eval_shape(lambda: ViT(*sizes, rngs=nnx.Rngs(0)))
    graph, params, rest = nnx.split(shapes, nnx.Param, ...)
    params = filled(params)
    data = random_images(3, batch, size, 3, classes)

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        logits = nnx.merge(graph, params, rest)(batch["images"])
        return cross_entropy(logits, batch["labels"]), statistics

    return make_case(
        "vit", loss_fn, params, data, optimizer=optimizer, with_gradients=with_gradients
    )
