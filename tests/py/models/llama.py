"""A Llama-3-style decoder in flax linen: grouped-query attention, rotary positions, SwiGLU."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from models.case import TrainCase, cross_entropy, filled, make_case, random_tokens


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes; the defaults are small, `LLAMA_3_8B` is the published model.

    Attributes:
        groups: key-value heads, each shared by ``heads / groups`` query heads.
        dtype: of activations; parameters are f32.
    """

    layers: int = 2
    hidden: int = 64
    heads: int = 4
    groups: int = 2
    inner: int = 128
    vocabulary: int = 128
    length: int = 32
    dtype: Any = jnp.float32


LLAMA_3_8B: dict[str, Any] = {
    "layers": 32,
    "hidden": 4096,
    "heads": 32,
    "groups": 8,
    "inner": 14336,
    "vocabulary": 128256,
    "dtype": jnp.bfloat16,
}


def rotate(x: jax.Array, base: float = 500_000.0) -> jax.Array:
    """Rotary position embedding of [batch, length, heads, size]."""
    size = x.shape[-1]
    frequency = base ** (-jnp.arange(0, size, 2, jnp.float32) / size)
    angle = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None] * frequency
    sine, cosine = jnp.sin(angle)[:, None, :], jnp.cos(angle)[:, None, :]
    one, two = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([one * cosine - two * sine, two * cosine + one * sine], axis=-1)
    return turned.astype(x.dtype)


class Attention(nn.Module):
    """Causal grouped-query self-attention."""

    config: LlamaConfig

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        config = self.config
        size = config.hidden // config.heads
        project = partial(nn.DenseGeneral, dtype=config.dtype, use_bias=False)
        query = rotate(project((config.heads, size), name="query")(x))
        key = rotate(project((config.groups, size), name="key")(x))
        value = project((config.groups, size), name="value")(x)
        shared = config.heads // config.groups
        query = query.reshape(*query.shape[:2], config.groups, shared, size)
        scores = jnp.einsum("bqgsd,bkgd->bgsqk", query, key).astype(jnp.float32) / size**0.5
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9)).astype(config.dtype)
        mixed = jnp.einsum("bgsqk,bkgd->bqgsd", weights, value)
        mixed = mixed.reshape(*x.shape[:2], config.heads, size)
        return project(config.hidden, axis=(-2, -1), name="out")(mixed)


class Block(nn.Module):
    """Attention and a gated feed-forward network, each behind an RMS norm, with residuals."""

    config: LlamaConfig

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Maps [batch, length, hidden] to the same."""
        config = self.config
        dense = partial(nn.Dense, dtype=config.dtype, use_bias=False)
        y = nn.RMSNorm(dtype=config.dtype, name="norm_attention")(x)
        x = x + Attention(config, name="attention")(y)
        y = nn.RMSNorm(dtype=config.dtype, name="norm_mlp")(x)
        gated = nn.silu(dense(config.inner, name="gate")(y)) * dense(config.inner, name="up")(y)
        return x + dense(config.hidden, name="down")(gated)


class Llama(nn.Module):
    """Logits of the next token."""

    config: LlamaConfig

    @nn.compact
    def __call__(self, tokens: jax.Array) -> jax.Array:
        """Maps int32[batch, length] to [batch, length, vocabulary]."""
        config = self.config
        x = nn.Embed(config.vocabulary, config.hidden, dtype=config.dtype, name="embed")(tokens)
        for layer in range(config.layers):
            x = Block(config, name=f"layer_{layer}")(x)
        x = nn.RMSNorm(dtype=config.dtype, name="norm")(x)
        return nn.Dense(config.vocabulary, use_bias=False, dtype=config.dtype, name="head")(x)


def make(
    *, batch: int = 8, optimizer: str = "adam", with_gradients: bool = False, **sizes: Any
) -> TrainCase:
    """Next-token prediction on random tokens; ``sizes`` as in `LlamaConfig`."""
    config = LlamaConfig(**sizes)
    model = Llama(config)
    data = random_tokens(0, batch, config.length, config.vocabulary)
    params = filled(jax.eval_shape(model.init, jax.random.PRNGKey(0), data["tokens"]))

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        del rng
        return cross_entropy(model.apply(params, batch["tokens"]), batch["targets"]), statistics

    return make_case(
        "llama", loss_fn, params, data, optimizer=optimizer, with_gradients=with_gradients
    )
