"""A language model of LSTM layers in haiku: recurrence over time as ``lax.scan``."""

from typing import Any

import haiku as hk
import jax

from models.case import TrainCase, cross_entropy, filled, make_case, random_tokens


def make(
    *,
    batch: int = 16,
    length: int = 12,
    hidden: int = 32,
    layers: int = 2,
    vocabulary: int = 64,
    optimizer: str = "adam",
    with_gradients: bool = False,
) -> TrainCase:
    """Next-token prediction on random tokens."""

    def forward(tokens: jax.Array) -> jax.Array:
        x = hk.Embed(vocabulary, hidden)(tokens)
        for layer in range(layers):
            core = hk.LSTM(hidden, name=f"lstm_{layer}")
            x, _ = hk.dynamic_unroll(core, x, core.initial_state(tokens.shape[0]), time_major=False)
        return hk.Linear(vocabulary)(x)

    model = hk.without_apply_rng(hk.transform(forward))
    data = random_tokens(4, batch, length, vocabulary)
    params = filled(jax.eval_shape(model.init, jax.random.PRNGKey(0), data["tokens"]))

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        return cross_entropy(model.apply(params, batch["tokens"]), batch["targets"]), statistics

    return make_case(
        "lstm", loss_fn, params, data, optimizer=optimizer, with_gradients=with_gradients
    )
