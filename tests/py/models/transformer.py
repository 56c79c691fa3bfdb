"""A decoder of haiku's own modules, as its transformer example has it."""

from typing import Any

import haiku as hk
import jax
import numpy as np

from models.case import TrainCase, cross_entropy, filled, make_case, random_tokens


def _normed(x: jax.Array) -> jax.Array:
    return hk.LayerNorm(axis=-1, create_scale=True, create_offset=True)(x)


def _logits(
    tokens: jax.Array, *, vocabulary: int, hidden: int, heads: int, layers: int
) -> jax.Array:
    length = tokens.shape[1]
    init = hk.initializers.TruncatedNormal(0.02)
    positions = hk.get_parameter("positions", [length, hidden], init=init)
    x = hk.Embed(vocabulary, hidden, w_init=init)(tokens) + positions
    causal = np.tril(np.ones((1, 1, length, length)))
    scaling = hk.initializers.VarianceScaling(2 / layers)
    for _ in range(layers):
        # The softmax does not see a bias of the keys: its gradient would be rounding noise.
        attention = hk.MultiHeadAttention(
            heads, hidden // heads, model_size=hidden, w_init=scaling, with_bias=False
        )
        normed = _normed(x)
        x = x + attention(normed, normed, normed, mask=causal)
        inner = jax.nn.gelu(hk.Linear(4 * hidden, w_init=scaling)(_normed(x)))
        x = x + hk.Linear(hidden, w_init=scaling)(inner)
    return hk.Linear(vocabulary)(_normed(x))


def make(
    *,
    batch: int = 8,
    length: int = 16,
    vocabulary: int = 64,
    hidden: int = 32,
    heads: int = 4,
    layers: int = 2,
    optimizer: str = "adam",
    with_gradients: bool = False,
) -> TrainCase:
    """Next-token prediction on random tokens."""
    sizes = {"vocabulary": vocabulary, "hidden": hidden, "heads": heads, "layers": layers}
    model = hk.without_apply_rng(hk.transform(lambda tokens: _logits(tokens, **sizes)))
    data = random_tokens(5, batch, length, vocabulary)
    params = filled(jax.eval_shape(model.init, jax.random.PRNGKey(0), data["tokens"]))

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        return cross_entropy(model.apply(params, batch["tokens"]), batch["targets"]), statistics

    return make_case(
        "transformer",
        loss_fn,
        params,
        data,
        optimizer=optimizer,
        with_gradients=with_gradients,
    )
