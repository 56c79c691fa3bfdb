"""A decoder-only transformer in flax linen, dropout included; layers unrolled or scanned."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from models.case import TrainCase, cross_entropy, filled, make_case, random_tokens


@dataclass(frozen=True)
class GPTConfig:
    """Sizes of a GPT.

    Attributes:
        is_scanned: the layers are one ``lax.scan`` over stacked parameters.
        has_bias: dense layers and norms add a bias. Its gradient, a sum over all tokens, keeps too
            few digits in bf16 for a comparison.
        dtype: of activations; parameters are f32.
        is_jitted: each block is a call, which JAX traces once for all.
    """

    layers: int = 2
    hidden: int = 64
    heads: int = 4
    vocabulary: int = 128
    length: int = 32
    dropout: float = 0.1
    is_scanned: bool = False
    has_bias: bool = True
    dtype: Any = jnp.float32
    is_jitted: bool = False


class Attention(nn.Module):
    """Causal self-attention."""

    config: GPTConfig

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        config = self.config
        shape = (config.heads, config.hidden // config.heads)
        # Without biases: the softmax does not see that of the keys, so that its gradient would be
        # rounding noise, and that of the values loses its digits in bf16.
        project = partial(nn.DenseGeneral, shape, dtype=config.dtype, use_bias=False)
        query, key, value = (project(name=name)(x) for name in ("query", "key", "value"))
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / jnp.sqrt(shape[1]).astype(config.dtype)
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
        scores = jnp.where(mask, scores.astype(jnp.float32), -1e9)
        weights = nn.Dropout(config.dropout, deterministic=False)(jax.nn.softmax(scores))
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights.astype(config.dtype), value)
        options = {"use_bias": config.has_bias, "dtype": config.dtype}
        return nn.DenseGeneral(config.hidden, axis=(-2, -1), name="out", **options)(mixed)


class Block(nn.Module):
    """Attention and a feed-forward network, each behind a layer norm, with residuals."""

    config: GPTConfig

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        config = self.config
        dropout = nn.Dropout(config.dropout, deterministic=False)
        options = {"use_bias": config.has_bias, "dtype": config.dtype}
        y = nn.LayerNorm(name="norm_attention", **options)(x)
        x = x + dropout(Attention(config, name="attention")(y))
        y = nn.LayerNorm(name="norm_mlp", **options)(x)
        y = nn.gelu(nn.Dense(4 * config.hidden, name="up", **options)(y))
        y = nn.Dense(config.hidden, name="down", **options)(y)
        return x + dropout(y)


JittedBlock = nn.jit(Block)


class ScanBody(nn.Module):
    """One block, shaped as the body of ``nn.scan``."""

    config: GPTConfig

    @nn.compact
    def __call__(self, x: jax.Array, _: None) -> tuple[jax.Array, None]:
        """Maps the carried [batch, length, hidden] to the same."""
        return Block(self.config, name="block")(x), None


class GPT(nn.Module):
    """Logits of the next token."""

    config: GPTConfig

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Maps int32[batch, length] to [batch, length, vocabulary]."""
        config = self.config
        embed = nn.Embed(config.vocabulary, config.hidden, dtype=config.dtype, name="embed")
        position = self.param(
            "position", nn.initializers.normal(0.02), (config.length, config.hidden)
        )
        x = embed(tokens) + position.astype(config.dtype)
        x = nn.Dropout(config.dropout, deterministic=False)(x)
        if config.is_scanned:
            layers = nn.scan(
                ScanBody,
                variable_axes={"params": 0},
                split_rngs={"params": True, "dropout": True},
                length=config.layers,
            )
            x, _ = layers(config, name="layers")(x, None)
        else:
            make = JittedBlock if config.is_jitted else Block
            for layer in range(config.layers):
                x = make(config, name=f"layer_{layer}")(x)
        return embed.attend(
            nn.LayerNorm(use_bias=config.has_bias, dtype=config.dtype, name="norm")(x)
        )


def make(
    *,
    batch: int = 8,
    layers: int = 2,
    hidden: int = 64,
    heads: int = 4,
    vocabulary: int = 128,
    length: int = 32,
    dropout: float = 0.1,
    is_scanned: bool = False,
    has_bias: bool = True,
    dtype: Any = jnp.float32,
    optimizer: str = "adam",
    with_gradients: bool = False,
    is_jitted: bool = False,
) -> TrainCase:
    """Next-token prediction on random tokens."""
    config = GPTConfig(
        layers, hidden, heads, vocabulary, length, dropout, is_scanned, has_bias, dtype, is_jitted
    )
    model = GPT(config)
    data = random_tokens(0, batch, length, vocabulary)
    key = jax.random.PRNGKey(0)
    params = filled(jax.eval_shape(model.init, {"params": key, "dropout": key}, data["tokens"]))

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        logits = model.apply(params, batch["tokens"], rngs={"dropout": rng})
        return cross_entropy(logits, batch["targets"]), statistics

    return make_case(
        "gpt_scan" if is_scanned else "gpt",
        loss_fn,
        params,
        data,
        optimizer=optimizer,
        with_gradients=with_gradients,
    )
