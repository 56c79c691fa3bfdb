"""Mixtures of experts whose capacity is counted over the tokens of the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from batch_steps import normal, pipeline, weights
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import DataParallel, ExpertParallel, ShardParallel
from stablehlo_alpa.errors import CompileError

ROWS, TOKENS, WIDTH, EXPERTS, HIDDEN = 8, 4, 16, 4, 24
PARAMS = {
    "in": weights(WIDTH, WIDTH),
    "gate": 3.0 * weights(WIDTH, EXPERTS, seed=1),
    "up": weights(EXPERTS, WIDTH, HIDDEN, seed=2),
    "down": weights(EXPERTS, HIDDEN, WIDTH, seed=3),
    "out": weights(WIDTH, 3, seed=4),
}
X = normal(ROWS, TOKENS, WIDTH, seed=5)
Y = normal(ROWS, TOKENS, 3, seed=6)


def experts(params: Any, tokens: Any) -> tuple[Any, Any]:
    """A layer as Switch Transformers have it (Fedus et al. 2021), with half of the room needed."""
    room = len(tokens) // EXPERTS // 2
    gates = jax.nn.softmax(tokens @ params["gate"])
    chosen = jax.nn.one_hot(gates.argmax(-1), EXPERTS)
    places = (jnp.cumsum(chosen, 0) - 1) * chosen
    kept = chosen * (places < room)
    sent = kept[:, :, None] * jax.nn.one_hot(places.sum(-1).astype(int), room)[:, None]
    inputs = jnp.einsum("td,tec->ecd", tokens, sent)
    inner = jax.nn.relu(jnp.einsum("ecd,edh->ech", inputs, params["up"]))
    outputs = jnp.einsum("ech,ehd->ecd", inner, params["down"])
    mixed = jnp.einsum("ecd,tec->td", outputs, sent * (gates * kept).sum(-1)[:, None, None])
    return mixed, EXPERTS * jnp.sum(chosen.mean(0) * gates.mean(0))


def of_batch(params: Any, x: Any) -> tuple[Any, Any]:
    mixed, balance = experts(params, x.reshape(-1, WIDTH))
    return mixed.reshape(x.shape), balance


def of_groups(params: Any, x: Any) -> tuple[Any, Any]:
    """The same for each two examples."""
    groups = x.reshape(ROWS // 2, 2 * TOKENS, WIDTH)
    mixed, balance = jax.vmap(lambda tokens: experts(params, tokens))(groups)
    return mixed.reshape(x.shape), balance.mean()


def step_of(layer: Callable[..., tuple[Any, Any]]) -> Callable[..., Any]:
    def step(params: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            hidden = jnp.tanh(x @ params["in"])
            mixed, balance = layer(params, hidden)
            return jnp.mean(((hidden + mixed) @ params["out"] - y) ** 2) + 0.01 * balance

        value, gradients = stablehlo_alpa.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return step


CUT = {
    "search": lambda step: stablehlo_alpa.parallelize(
        step, method=ShardParallel(num_micro_batches=2)
    ),
    "data": lambda step: stablehlo_alpa.parallelize(step, method=DataParallel(num_micro_batches=4)),
    "pipeline": lambda step: pipeline(step, 2),
}


@pytest.mark.parametrize("name", CUT)
def test_totals_over_the_batch_are_refused_with_their_mend(name: str) -> None:
    mend = r"cumsum.*needs the whole batch.*reshape the batch to groups, and jax.vmap over these"
    with pytest.raises(CompileError, match=mend):
        CUT[name](step_of(of_batch)).plan(PARAMS, X, Y)


@pytest.mark.parametrize("name", CUT)
def test_totals_over_groups_are_cut(name: str) -> None:
    step = step_of(of_groups)
    assert_same(CUT[name](step)(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))


@pytest.mark.parametrize("layer", [of_batch, of_groups])
@pytest.mark.parametrize("count", [0, 1], ids=["mesh", "stages"])
def test_one_micro_batch_has_them_all(layer: Any, count: int) -> None:
    step = step_of(layer)
    if count:
        parallel = pipeline(step, count)
    else:
        parallel = stablehlo_alpa.parallelize(step, method=ExpertParallel(expert=4))
    assert_same(parallel(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))
