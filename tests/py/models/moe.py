"""A mixture of experts in flax linen: top-2 gating, dispatch and combination by einsum (GShard)."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from models.case import TrainCase, cross_entropy, filled, make_case, random_tokens


def top_2_gating(scores: jax.Array, capacity: int) -> tuple[jax.Array, jax.Array]:
    """Sends every token to its two best experts, as long as these have room.

    Args:
        scores: f32[groups, tokens, experts], probabilities.
        capacity: tokens of one group that one expert takes.

    Returns:
        combine weights f32[groups, tokens, experts, capacity], and the load-balancing loss f32[].
    """
    experts = scores.shape[-1]
    first = jax.nn.one_hot(jnp.argmax(scores, axis=-1), experts)
    second = jax.nn.one_hot(jnp.argmax(scores * (1 - first), axis=-1), experts)
    balance = (first.mean(axis=1) * scores.mean(axis=1)).mean() * experts**2

    rank_first = jnp.cumsum(first, axis=1) - first
    rank_second = jnp.cumsum(second, axis=1) - second + first.sum(axis=1, keepdims=True)
    gates = []
    for chosen, rank in ((first, rank_first), (second, rank_second)):
        slot = (rank * chosen).sum(axis=-1).astype(jnp.int32)
        weight = (scores * chosen).sum(axis=-1)
        gates.append((chosen, slot, weight))
    total = gates[0][2] + gates[1][2] + 1e-9
    combine = sum(
        (weight / total)[..., None, None]
        * chosen[..., None]
        * jax.nn.one_hot(slot, capacity)[..., None, :]
        for chosen, slot, weight in gates
    )
    return jnp.asarray(combine), balance


class ExpertLayer(nn.Module):
    """A feed-forward network per expert."""

    experts: int
    hidden: int
    capacity: int

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Maps [groups, tokens, hidden] to the same, and the load-balancing loss f32[]."""
        scores = jax.nn.softmax(nn.Dense(self.experts, use_bias=False, name="gate")(x))
        combine, balance = top_2_gating(scores, self.capacity)
        dispatch = (combine > 0).astype(x.dtype)
        init = nn.initializers.lecun_normal(batch_axis=0)
        up = self.param("up", init, (self.experts, self.hidden, 4 * self.hidden))
        down = self.param("down", init, (self.experts, 4 * self.hidden, self.hidden))
        sent = jnp.einsum("gsec,gsm->egcm", dispatch, x)
        inner = nn.relu(jnp.einsum("egcm,emh->egch", sent, up))
        results = jnp.einsum("egch,ehm->egcm", inner, down)
        return jnp.einsum("gsec,egcm->gsm", combine, results), balance


class MoE(nn.Module):
    """Embedding, expert layers with residuals, and logits."""

    layers: int
    experts: int
    hidden: int
    vocabulary: int
    capacity: int

    @nn.compact
    def __call__(self, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Maps int32[groups, tokens] to [groups, tokens, vocabulary], and the balancing loss."""
        x = nn.Embed(self.vocabulary, self.hidden, name="embed")(tokens)
        total = jnp.zeros(())
        for layer in range(self.layers):
            y = nn.LayerNorm(name=f"norm_{layer}")(x)
            y, balance = ExpertLayer(
                self.experts, self.hidden, self.capacity, name=f"experts_{layer}"
            )(y)
            x, total = x + y, total + balance
        return nn.Dense(self.vocabulary, name="logits")(x), total


def make(
    *,
    batch: int = 8,
    layers: int = 2,
    experts: int = 8,
    hidden: int = 32,
    vocabulary: int = 64,
    length: int = 32,
    optimizer: str = "adam",
    with_gradients: bool = False,
) -> TrainCase:
    """Next-token prediction on random tokens; experts have room for twice their fair share."""
    model = MoE(layers, experts, hidden, vocabulary, max(1, 4 * length // experts))
    data = random_tokens(1, batch, length, vocabulary)
    params = filled(jax.eval_shape(model.init, jax.random.PRNGKey(0), data["tokens"]))

    def loss_fn(params: Any, statistics: Any, batch: Any, rng: jax.Array) -> tuple[jax.Array, Any]:
        logits, balance = model.apply(params, batch["tokens"])
        return cross_entropy(logits, batch["targets"]) + 0.01 * balance, statistics

    return make_case(
        "moe", loss_fn, params, data, optimizer=optimizer, with_gradients=with_gradients
    )
