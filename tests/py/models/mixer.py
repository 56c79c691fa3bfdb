"""An MLP-mixer in equinox: written for one image, mapped over the batch by ``jax.vmap``."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from models.case import TrainCase, cross_entropy, filled, make_case, random_images


class MixerBlock(eqx.Module):
    """Mixing over patches, then over channels."""

    norm_patches: eqx.nn.LayerNorm
    norm_channels: eqx.nn.LayerNorm
    patches: eqx.nn.MLP
    channels: eqx.nn.MLP

    def __init__(self, patches: int, hidden: int, *, key: jax.Array):
        key_patches, key_channels = jax.random.split(key)
        self.norm_patches = eqx.nn.LayerNorm((hidden, patches))
        self.norm_channels = eqx.nn.LayerNorm((hidden, patches))
        # A last bias per patch almost vanishes in the norms; its gradient would be rounding noise.
        self.patches = eqx.nn.MLP(
            patches,
            patches,
            2 * patches,
            1,
            jax.nn.gelu,
            use_final_bias=False,
            key=key_patches,
        )
        self.channels = eqx.nn.MLP(hidden, hidden, 4 * hidden, 1, jax.nn.gelu, key=key_channels)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [hidden, patches] to the same."""
        x = x + jax.vmap(self.patches)(self.norm_patches(x))
        return x + jax.vmap(self.channels, in_axes=1, out_axes=1)(self.norm_channels(x))


class Mixer(eqx.Module):
    """Patches by convolution, mixer blocks, logits."""

    embed: eqx.nn.Conv2d
    blocks: list[MixerBlock]
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear

    def __init__(
        self, size: int, patch: int, hidden: int, layers: int, classes: int, *, key: jax.Array
    ):
        keys = jax.random.split(key, layers + 2)
        patches = (size // patch) ** 2
        self.embed = eqx.nn.Conv2d(3, hidden, patch, patch, key=keys[0])
        self.blocks = [MixerBlock(patches, hidden, key=k) for k in keys[1:-1]]
        self.norm = eqx.nn.LayerNorm((hidden, patches))
        self.head = eqx.nn.Linear(hidden, classes, key=keys[-1])

    def __call__(self, image: jax.Array) -> jax.Array:
        """Maps one image [size, size, 3] to logits [classes]."""
        x = self.embed(jnp.transpose(image, (2, 0, 1)))
        x = x.reshape(x.shape[0], -1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(axis=1))


def make(
    *,
    batch: int = 16,
    size: int = 16,
    patch: int = 4,
    hidden: int = 32,
    layers: int = 2,
    classes: int = 10,
    optimizer: str = "adam",
    with_gradients: bool = False,
) -> TrainCase:
    """Classification of random images."""
    sizes, key = (size, patch, hidden, layers, classes), jax.random.PRNGKey(0)
    shapes = eqx.filter_eval_shape(Mixer, *sizes, key=key)
    params, static = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))
    params = filled(params)
    data = random_images(5, batch, size, 3, classes)

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        logits = jax.vmap(eqx.combine(params, static))(batch["images"])
        return cross_entropy(logits, batch["labels"]), statistics

    return make_case(
        "mixer", loss_fn, params, data, optimizer=optimizer, with_gradients=with_gradients
    )
