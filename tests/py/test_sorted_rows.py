"""Rows that are sorted for products in groups, under micro-batches: each sorts its own.

Mixtures of experts without capacities are written so: tokens are sorted by expert, multiplied in
groups (`jax.lax.ragged_dot`), and brought back. What shows in which order tokens stand is no such
thing, and is refused, as rows that meet are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stablehlo_alpa
from stablehlo_alpa import CompileError, Method

BATCH, LENGTH, WIDTH, EXPERTS = 8, 6, 12, 4

Params = dict[str, jax.Array]
Count = Callable[[jax.Array], jax.Array]


def by_bincount(experts: jax.Array) -> jax.Array:
    return jnp.bincount(experts, length=EXPERTS)


def by_one_hot(experts: jax.Array) -> jax.Array:
    return jax.nn.one_hot(experts, EXPERTS).sum(0).astype(jnp.int32)


def by_comparison(experts: jax.Array) -> jax.Array:
    return jnp.sum(jnp.arange(EXPERTS)[:, None] == experts, axis=1)


def by_segments(experts: jax.Array) -> jax.Array:
    return jax.ops.segment_sum(jnp.ones_like(experts), experts, EXPERTS)


def feed_forward(params: Params, rows: jax.Array, sizes: jax.Array) -> jax.Array:
    gate = jax.nn.silu(jax.lax.ragged_dot(rows, params["gate"], sizes))
    up = jax.lax.ragged_dot(rows, params["up"], sizes)
    return jax.lax.ragged_dot(gate * up, params["down"], sizes)


def unsorted(rows: jax.Array, order: jax.Array, weights: jax.Array) -> jax.Array:
    tokens = rows[jnp.argsort(order)].reshape(*weights.shape, WIDTH)
    return jnp.einsum("tkd,tk->td", tokens, weights)


def by_inverse(rows: jax.Array, order: jax.Array, weights: jax.Array) -> jax.Array:
    inverse = jnp.zeros_like(order).at[order].set(jnp.arange(order.size, dtype=order.dtype))
    return jnp.einsum("tkd,tk->td", rows[inverse].reshape(*weights.shape, WIDTH), weights)


def written(rows: jax.Array, order: jax.Array, weights: jax.Array) -> jax.Array:
    back = jnp.zeros_like(rows).at[order].set(rows)
    return jnp.einsum("tkw,tk->tw", back.reshape(*weights.shape, WIDTH), weights)


def added(rows: jax.Array, order: jax.Array, weights: jax.Array) -> jax.Array:
    rows = rows * weights.reshape(-1)[order][:, None]
    return jnp.zeros((len(weights), WIDTH), rows.dtype).at[order // weights.shape[1]].add(rows)


def mixture(
    params: Params,
    x: jax.Array,
    *,
    chosen: int = 2,
    count: Count = by_bincount,
    combine: Callable[..., jax.Array] = unsorted,
    shift: int = 0,
    look: Callable[..., jax.Array] = lambda rows, *_: rows,
) -> jax.Array:
    """A layer of experts of which each token takes ``chosen``.

    Args:
        params: of router and experts.
        x: [batch, length, width].
        chosen: experts of a token.
        count: how many tokens each expert has.
        combine: what tokens get of the sorted rows.
        shift: added to the number of each expert.
        look: makes the sorted rows from them, the order and the sizes of groups.
    """
    tokens = x.reshape(-1, WIDTH)
    scores, experts = jax.lax.top_k(tokens @ params["router"], chosen)
    experts = experts.reshape(-1) + shift if shift else experts.reshape(-1)
    order, sizes = jnp.argsort(experts), count(experts).astype(jnp.int32)
    rows = look(tokens[order // chosen], order, sizes)
    made = combine(feed_forward(params, rows, sizes), order, jax.nn.softmax(scores))
    return x + made.reshape(x.shape)


def by_largest(params: Params, x: jax.Array) -> jax.Array:
    """Experts are numbers of as many bits as JAX's indices: those of ``top_k`` have 32."""
    tokens = x.reshape(-1, WIDTH)
    experts = (tokens @ params["router"]).argmax(-1)
    order, sizes = jnp.argsort(experts), by_bincount(experts).astype(jnp.int32)
    made = feed_forward(params, tokens[order], sizes)
    return x + jnp.zeros_like(tokens).at[order].set(made).reshape(x.shape)


def with_penalty(params: Params, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The experts' loads are to be even: they and the router's mean meet in a sum of products."""
    chances = jax.nn.softmax(x.reshape(-1, WIDTH) @ params["router"])
    loads = jax.nn.one_hot(chances.argmax(-1), EXPERTS).mean(0)
    return mixture(params, x), EXPERTS * jnp.sum(loads * chances.mean(0))


def by_load(params: Params, x: jax.Array) -> jax.Array:
    """How many tokens the largest group of the batch has is no number of a micro-batch."""
    return mixture(params, x, look=lambda rows, _, sizes: rows * (1 + sizes.max() / 96))


def scanned(params: Params, x: jax.Array) -> jax.Array:
    layer = jax.checkpoint(lambda x: mixture(params, jnp.tanh(x)))
    return jax.lax.scan(lambda x, _: (layer(x), None), x, length=2)[0]


def twice(params: Params, x: jax.Array) -> jax.Array:
    return mixture(params, jnp.tanh(mixture(params, x)), combine=added)


def problem(model: Callable[..., Any], grad: Callable[..., Any]) -> tuple[Callable[..., Any], Any]:
    keys = jax.random.split(jax.random.key(0), 7)
    experts = {
        name: jax.random.normal(key, (EXPERTS, WIDTH, WIDTH)) / 3
        for name, key in zip(("gate", "up", "down"), keys, strict=False)
    }
    params = experts | {
        "router": jax.random.normal(keys[3], (WIDTH, EXPERTS)),
        "head": jax.random.normal(keys[4], (WIDTH, WIDTH)) / 3,
    }
    x, y = (jax.random.normal(key, (BATCH, LENGTH, WIDTH)) for key in keys[5:])

    def loss(params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
        made = model(params, jnp.tanh(x @ params["head"]))
        made, penalty = made if isinstance(made, tuple) else (made, 0.0)
        return jnp.mean((made @ params["head"] - y) ** 2) + 0.01 * penalty

    def step(params: Params, x: jax.Array, y: jax.Array) -> tuple[Params, jax.Array]:
        value, grads = grad(loss)(params, x, y)
        return jax.tree.map(lambda old, new: old - 0.1 * new, params, grads), value

    return step, (params, x, y)


METHODS: dict[str, Method] = {
    "micro-batches": stablehlo_alpa.ShardParallel(mesh_shape=(8,), num_micro_batches=2),
    "stages": stablehlo_alpa.PipeshardParallel(
        num_micro_batches=2,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
    ),
}
LAYERS: dict[str, Callable[..., Any]] = {
    "one expert": lambda params, x: mixture(params, x, chosen=1),
    "one_hot": lambda params, x: mixture(params, x, count=by_one_hot),
    "comparison": lambda params, x: mixture(params, x, chosen=3, count=by_comparison),
    "segments": lambda params, x: mixture(params, x, count=by_segments, combine=by_inverse),
    "written back": lambda params, x: mixture(params, x, combine=written),
    "numbers below 0": lambda params, x: mixture(params, x, shift=-1),
    "experts that are not there": lambda params, x: mixture(params, x, shift=1, combine=added),
    "two layers": twice,
    "computed again": lambda params, x: jax.checkpoint(mixture)(params, x),
    "scanned": scanned,
    "positions in the sequence": lambda params, x: mixture(
        params, x, look=lambda rows, order, _: rows + 0.1 * (order // 2 % LENGTH)[:, None]
    ),
}
SHOWN: dict[str, Callable[..., Any]] = {
    "position in the batch": lambda params, x: mixture(
        params, x, look=lambda rows, order, _: rows + 0.01 * order[:, None]
    ),
    "place among the sorted": lambda params, x: mixture(
        params, x, look=lambda rows, *_: rows * (1 + 0.01 * jnp.arange(len(rows))[:, None])
    ),
    "neighbours": lambda params, x: mixture(
        params, x, look=lambda rows, *_: rows + 0.1 * jnp.roll(rows, 1, 0)
    ),
    "running totals": lambda params, x: mixture(
        params, x, look=lambda rows, *_: rows + 0.01 * jnp.cumsum(rows, 0)
    ),
    "pairs": lambda params, x: mixture(
        params,
        x,
        look=lambda rows, *_: rows + rows.reshape(-1, 2, WIDTH)[:, ::-1].reshape(rows.shape),
    ),
    "positions that wrap around in 4 bits": lambda params, x: mixture(
        params, x, look=lambda rows, order, _: rows + (order.astype("int4") < 0)[:, None]
    ),
    "numbers below 0 that count as none": lambda params, x: mixture(
        params, x, shift=-1, count=by_one_hot
    ),
}


def assert_equal(layer: Callable[..., Any], method: Method, grad: Callable[..., Any]) -> None:
    step, args = problem(layer, grad)
    expected = jax.jit(step)(*args)
    found = stablehlo_alpa.parallelize(step, method=method, batch_argnums=(1, 2))(*args)
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5),
        found,
        expected,
    )


@pytest.mark.whole
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("layer", LAYERS)
def test_each_micro_batch_sorts_its_rows(layer: str, method: str) -> None:
    assert_equal(LAYERS[layer], METHODS[method], stablehlo_alpa.value_and_grad)


@pytest.mark.parametrize("method", METHODS)
def test_behind_gradients_of_jax(method: str) -> None:
    assert_equal(mixture, METHODS[method], jax.value_and_grad)


@pytest.mark.parametrize("layer", [with_penalty, by_load])
def test_loads_are_of_the_whole_batch(layer: Callable[..., Any]) -> None:
    assert_equal(layer, METHODS["micro-batches"], stablehlo_alpa.value_and_grad)


def test_indices_of_64_bits() -> None:
    with jax.enable_x64(True):
        for count in (by_bincount, by_comparison):
            layer = functools.partial(mixture, count=count)
            assert_equal(layer, METHODS["micro-batches"], stablehlo_alpa.value_and_grad)
        assert_equal(by_largest, METHODS["micro-batches"], stablehlo_alpa.value_and_grad)


@pytest.mark.whole
@pytest.mark.parametrize("layer", SHOWN)
def test_what_shows_the_order_is_refused(layer: str) -> None:
    step, args = problem(SHOWN[layer], stablehlo_alpa.value_and_grad)
    parallel = stablehlo_alpa.parallelize(
        step, method=METHODS["micro-batches"], batch_argnums=(1, 2)
    )
    with pytest.raises(CompileError, match="needs the whole batch"):
        parallel.plan(*args)
