"""An encoder-decoder transformer in flax linen, with cross-attention in every decoder layer."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from models.case import TrainCase, cross_entropy, filled, make_case, random_tokens


class Layer(nn.Module):
    """Self-attention, cross-attention where there is something to attend to, feed-forward."""

    heads: int

    @nn.compact
    def __call__(self, x: jax.Array, encoded: jax.Array | None = None) -> jax.Array:
        """Maps [batch, length, hidden], and what the encoder made, to the same."""
        hidden = x.shape[-1]
        mask = None if encoded is None else nn.make_causal_mask(jnp.ones(x.shape[:2]))
        # Without biases: the softmax does not see that of the keys, whose gradient would be noise.
        attention = partial(nn.MultiHeadDotProductAttention, self.heads, use_bias=False)
        y = nn.LayerNorm()(x)
        x = x + attention(name="self")(y, mask=mask)
        if encoded is not None:
            y = nn.LayerNorm()(x)
            x = x + attention(name="cross")(y, encoded)
        y = nn.gelu(nn.Dense(4 * hidden, name="up")(nn.LayerNorm()(x)))
        return x + nn.Dense(hidden, name="down")(y)


class EncoderDecoder(nn.Module):
    """Logits of the next target token, given a source sequence."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int

    @nn.compact
    def __call__(self, source: jax.Array, target: jax.Array) -> jax.Array:
        """Maps int32[batch, length] twice to [batch, length, vocabulary]."""
        embed = nn.Embed(self.vocabulary, self.hidden, name="embed")
        init = nn.initializers.normal(0.02)
        position = self.param("position", init, (source.shape[1], self.hidden))
        encoded = embed(source) + position
        for layer in range(self.layers):
            encoded = Layer(self.heads, name=f"encoder_{layer}")(encoded)
        encoded = nn.LayerNorm(name="encoder_norm")(encoded)
        x = embed(target) + position
        for layer in range(self.layers):
            x = Layer(self.heads, name=f"decoder_{layer}")(x, encoded)
        return embed.attend(nn.LayerNorm(name="norm")(x))


def make(
    *,
    batch: int = 8,
    layers: int = 1,
    hidden: int = 64,
    heads: int = 4,
    vocabulary: int = 128,
    length: int = 32,
    optimizer: str = "adam",
    with_gradients: bool = False,
) -> TrainCase:
    """Translation of random tokens; ``layers`` in the encoder and as many in the decoder."""
    model = EncoderDecoder(layers, hidden, heads, vocabulary)
    source = random_tokens(1, batch, length, vocabulary)["tokens"]
    data = {"source": source, **random_tokens(0, batch, length, vocabulary)}
    params = filled(jax.eval_shape(model.init, jax.random.PRNGKey(0), source, data["tokens"]))

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        del rng
        logits = model.apply(params, batch["source"], batch["tokens"])
        return cross_entropy(logits, batch["targets"]), statistics

    return make_case(
        "encoder_decoder", loss_fn, params, data, optimizer=optimizer, with_gradients=with_gradients
    )
