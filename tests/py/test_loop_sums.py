"""What a loop adds up is reduced once, behind it."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import stablehlo_alpa
from stablehlo_alpa import DataParallel, Plan, ShardParallel

STEPS, BATCH, FEATURES, WIDTH = 12, 32, 24, 40


def real(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def loss(w: Any, x: Any) -> Any:
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def accumulated_by_hand(w: Any, xs: Any) -> Any:
    gradient = jnp.zeros_like(w)
    for x in xs:
        gradient += jax.grad(loss)(w, x)
    return w - 0.1 * gradient


def accumulated_by_scan(w: Any, xs: Any) -> Any:
    def body(gradient: Any, x: Any) -> Any:
        return gradient + jax.grad(loss)(w, x), None

    return w - 0.1 * lax.scan(body, jnp.zeros_like(w), xs)[0]


def on_a100(step: Any, method: Any, *args: Any) -> Plan:
    parallel = stablehlo_alpa.parallelize(step, method=method, cluster="p4d.24xlarge:1")
    return parallel.plan(*args)


def num_reductions(plan: Plan) -> float:
    kinds = {"all_reduce", "reduce_scatter"}
    return sum(use.count for use in plan.communication() if use.kind in kinds)


def num_exchanges(plan: Plan) -> float:
    return sum(use.count for use in plan.communication() if use.kind == "all_to_all")


@pytest.mark.parametrize("step", [accumulated_by_hand, accumulated_by_scan])
def test_gradients_that_are_added_up_are_reduced_once(step: Any) -> None:
    shapes = (
        jax.ShapeDtypeStruct((1024, 1024), np.float32),
        jax.ShapeDtypeStruct((16, 4096, 1024), np.float32),
    )
    assert num_reductions(on_a100(step, ShardParallel(mesh_shape=(8,)), *shapes)) <= 2
    w, xs = real(24, 40), real(4, 32, 24, seed=1)
    result = stablehlo_alpa.parallelize(step, method=DataParallel())(w, xs)
    np.testing.assert_allclose(result, jax.jit(step)(w, xs), rtol=1e-5, atol=1e-6)


def haiku_gru() -> tuple[Any, tuple[Any, ...]]:
    def apply(xs: Any) -> Any:
        core = hk.GRU(WIDTH)
        outputs, _ = hk.dynamic_unroll(
            core, jnp.swapaxes(xs, 0, 1), core.initial_state(xs.shape[0])
        )
        return hk.Linear(WIDTH)(outputs[-1])

    model = hk.without_apply_rng(hk.transform(apply))
    xs, y = real(BATCH, STEPS, FEATURES), real(BATCH, WIDTH, seed=1)
    params = model.init(jax.random.key(0), xs)

    def step(params: Any, xs: Any, y: Any) -> Any:
        def error(params: Any) -> Any:
            return jnp.mean((model.apply(params, xs) - y) ** 2)

        value, gradients = jax.value_and_grad(error)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return step, (params, xs, y)


class Recurrent(eqx.Module):
    """A gated recurrent unit over the steps of one example, and a layer behind it."""

    cell: eqx.nn.GRUCell
    last: eqx.nn.Linear

    def __init__(self, key: Any) -> None:
        self.cell = eqx.nn.GRUCell(FEATURES, WIDTH, key=key)
        self.last = eqx.nn.Linear(WIDTH, WIDTH, key=key)

    def __call__(self, xs: Any) -> Any:
        """``xs``: float[STEPS, FEATURES]."""
        h, _ = lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(WIDTH), xs)
        return self.last(h)


def equinox_gru() -> tuple[Any, tuple[Any, ...]]:
    params, static = eqx.partition(Recurrent(jax.random.key(0)), eqx.is_array)

    def step(params: Any, xs: Any, y: Any) -> Any:
        def error(params: Any) -> Any:
            return jnp.mean((jax.vmap(eqx.combine(params, static))(xs) - y) ** 2)

        value, gradients = jax.value_and_grad(error)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return step, (params, real(BATCH, STEPS, FEATURES), real(BATCH, WIDTH, seed=1))


@pytest.mark.slow
@pytest.mark.parametrize("make", [haiku_gru, equinox_gru])
def test_recurrent_networks_move_their_gradients_only(make: Any) -> None:
    step, args = make()
    plan = on_a100(step, DataParallel(), *args)
    # One for every parameter and one for the loss.
    assert num_reductions(plan) <= len(jax.tree.leaves(args[0])) + 1
    assert num_exchanges(plan) == 0
    results = stablehlo_alpa.parallelize(step, method=DataParallel())(*args)
    for result, expected in zip(
        jax.tree.leaves(results), jax.tree.leaves(jax.jit(step)(*args)), strict=True
    ):
        np.testing.assert_allclose(result, expected, rtol=2e-4, atol=1e-5)
