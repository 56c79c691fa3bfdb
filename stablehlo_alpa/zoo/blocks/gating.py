"""Which experts a token goes to."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def gate(scores: jax.Array, chosen: int, capacity: int) -> tuple[jax.Array, jax.Array]:
    """Sends every token to its best experts, as long as these have room.

    First choices of all tokens of a group are served before second ones (Lepikhin et al., GShard,
    ICLR 2021, algorithm 1).

    Args:
        scores: f32[groups, tokens, experts], positive.
        chosen: experts of a token.
        capacity: tokens of one group that one expert takes.

    Returns:
        weights f32[groups, tokens, experts, capacity] of what comes back, which add up to 1 over
        the experts of a token that had room for it; and the balancing loss f32[], 1 where all
        experts are met equally often.
    """
    groups, tokens, experts = scores.shape
    _, best = jax.lax.top_k(jax.lax.stop_gradient(scores), chosen)
    # groups, chosen, tokens, experts: ranks count along choices first.
    is_met = jax.nn.one_hot(best.swapaxes(1, 2), experts)
    flat = is_met.reshape(groups, chosen * tokens, experts)
    rank = (jnp.cumsum(flat, axis=1) - flat).reshape(is_met.shape)
    slot = jnp.sum(rank * is_met, axis=-1).astype(jnp.int32)
    weight = jnp.sum(scores[:, None] * is_met, axis=-1)
    weight = weight / (weight.sum(axis=1, keepdims=True) + 1e-9)
    # A slot from the capacity on is a row of zeros: its token is passed over.
    combine = jnp.einsum(
        "gkse,gksc->gsec", is_met * weight[..., None], jax.nn.one_hot(slot, capacity)
    )
    share = scores / scores.sum(axis=-1, keepdims=True)
    met = is_met.sum(axis=1).mean(axis=1) / chosen
    balance = jnp.mean(met * share.mean(axis=1)) * experts**2
    return combine, balance
