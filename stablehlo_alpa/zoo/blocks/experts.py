"""A mixture of experts: tokens are sent and fetched by products with what the gate says."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from stablehlo_alpa.errors import ModelError
from stablehlo_alpa.zoo.blocks.gating import gate
from stablehlo_alpa.zoo.linen import nn


class Experts(nn.Module):
    """A feed-forward network per expert.

    Attributes:
        experts: how many.
        chosen: of a token.
        inner: size between the products of an expert.
        group: tokens among which places at the experts are given away.
        room: places of all experts over what the tokens ask for.
        is_gated: experts are SwiGLU, in place of two products around ReLU.
        has_sigmoid: scores are sigmoids, in place of a softmax.
        dtype: of what is computed; the gate is f32.
    """

    experts: int
    chosen: int
    inner: int
    group: int
    room: float = 1.0
    is_gated: bool = True
    has_sigmoid: bool = False
    dtype: Any = jnp.bfloat16

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Maps [batch, length, hidden] to the same, and the balancing loss f32[].

        Raises:
            ModelError: the tokens are not whole groups.
        """
        count, hidden = math.prod(x.shape[:2]), x.shape[-1]
        size = min(self.group, count)
        if count % size:
            raise ModelError(
                f"{x.shape[0]} sequences of {x.shape[1]} tokens are no groups of {size}: choose a "
                "batch or a sequence that they divide"
            )
        grouped = x.reshape(count // size, size, hidden)
        logits = nn.Dense(self.experts, use_bias=False, name="router")(grouped.astype(jnp.float32))
        scores = jax.nn.sigmoid(logits) if self.has_sigmoid else jax.nn.softmax(logits)
        capacity = max(1, math.ceil(self.chosen * size * self.room / self.experts))
        combine, balance = gate(scores, self.chosen, capacity)
        combine = combine.astype(self.dtype)
        sent = jnp.einsum("gsec,gsm->egcm", (combine > 0).astype(self.dtype), grouped)
        results = self._expert(sent, hidden)
        return jnp.einsum("gsec,egcm->gsm", combine, results).reshape(x.shape), balance

    def _expert(self, sent: jax.Array, hidden: int) -> jax.Array:
        """Maps [experts, groups, capacity, hidden] to the same, each expert by its own network."""
        init = nn.initializers.lecun_normal(batch_axis=0)

        def product(name: str, y: jax.Array, size: int) -> jax.Array:
            kernel = self.param(f"experts_{name}", init, (self.experts, y.shape[-1], size))
            return jnp.einsum("egcm,emh->egch", y, kernel.astype(self.dtype))

        inner = product("up", sent, self.inner)
        if self.is_gated:
            inner = nn.silu(product("gate", sent, self.inner)) * inner
        else:
            inner = nn.relu(inner)
        return product("down", inner, hidden)
