"""Steps that add up gradients in a loop of their own, under methods that take micro-batches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from batch_steps import BATCH, PARAMS, WIDTH, check, hidden, pipeline, weights
from jax import lax
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun
from often import one_in
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import ShardParallel
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.own_draws import with_own_draws

TURNS = 4


def loss_of(params: Any, x: Any) -> Any:
    return jnp.mean(hidden(params, x) ** 2)


def zeros(params: Any) -> Any:
    return 0.0, jax.tree.map(jnp.zeros_like, params)


def updated(params: Any, total: Any) -> Any:
    value, gradients = jax.tree.map(lambda one: one / TURNS, total)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def scanned(params: Any, x: Any) -> Any:
    def turn(total: Any, part: Any) -> Any:
        found = stablehlo_alpa.value_and_grad(loss_of)(params, part)
        return jax.tree.map(jnp.add, total, found), found[0]

    parts = x.reshape(TURNS, -1, WIDTH)
    total, losses = lax.scan(turn, zeros(params), parts)
    return *updated(params, total), losses


def counted(params: Any, x: Any) -> Any:
    """Rows are found by the number of the turn."""
    size = len(x) // TURNS

    def turn(number: Any, total: Any) -> Any:
        part = lax.dynamic_slice_in_dim(x, number * size, size)
        found = jax.jit(stablehlo_alpa.value_and_grad(loss_of))(params, part)
        return jax.tree.map(lambda a, b: a + b, total, found)

    return updated(params, lax.fori_loop(0, TURNS, turn, zeros(params)))


def indexed(params: Any, x: Any) -> Any:
    parts = x.reshape(TURNS, -1, WIDTH)

    def turn(number: Any, total: Any) -> Any:
        found = stablehlo_alpa.value_and_grad(loss_of)(params, parts[number])
        return jax.tree.map(jnp.add, total, found)

    return updated(params, lax.fori_loop(0, TURNS, turn, zeros(params)))


def keyed(params: Any, x: Any) -> Any:
    """Each turn splits the key that it got of the one before; also counted are its examples.

    Of the other implementation ``jax.vmap`` draws for the first of several keys alone.
    """

    def dropped(params: Any, x: Any, *keys: Any) -> Any:
        kept = [jax.random.bernoulli(key, 0.7, x.shape) for key in keys]
        return loss_of(params, x * kept[0] * kept[1])

    def turn(carried: Any, part: Any) -> Any:
        total, key, count = carried
        key, own = jax.random.split(key)
        other = jax.random.fold_in(jax.random.key(4, impl="unsafe_rbg"), count)
        found = stablehlo_alpa.value_and_grad(dropped)(params, part, own, other)
        return (jax.tree.map(jnp.add, total, found), key, count + len(part)), None

    start = zeros(params), jax.random.key(3), 0
    parts = x.reshape(TURNS, -1, WIDTH)
    total, key, count = lax.scan(turn, start, parts)[0]
    return *updated(params, total), jax.random.key_data(key), count


def backwards(params: Any, x: Any) -> Any:
    """The last part first, added to the decay of weights, in a type that is wider than theirs."""

    def turn(total: Any, part: Any) -> Any:
        short = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
        value, gradients = stablehlo_alpa.value_and_grad(loss_of)(short, part.astype(jnp.bfloat16))
        wide = jax.tree.map(lambda t, g: t + g.astype(t.dtype), total, gradients)
        return wide, (value, part.sum(1))

    start = jax.tree.map(lambda p: 0.01 * p, params)
    return lax.scan(turn, start, x.reshape(TURNS, -1, WIDTH), reverse=True)


def stacked(params: Any, x: Any) -> Any:
    """Gradients of all parts are there before their mean is taken."""
    found = stablehlo_alpa.value_and_grad(loss_of)
    total = lax.map(lambda part: found(params, part), x.reshape(TURNS, -1, WIDTH))
    return updated(params, jax.tree.map(lambda one: one.sum(0), total))


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_turns_draw_what_each_draws_by_itself(impl: str) -> None:
    def draw(seed: Any) -> Any:
        one, other = jax.random.split(jax.random.key(seed, impl=impl))
        drawn = lax.map(lambda i: jax.random.bits(jax.random.fold_in(one, i)), jnp.arange(3))
        return drawn, jax.random.gamma(other, 2.0)

    seeds = jnp.arange(3)
    jaxpr = with_own_draws(jax.make_jaxpr(draw)(seeds[0]).jaxpr)
    found = jax.vmap(jaxpr_as_fun(ClosedJaxpr(jaxpr, ())))(seeds)
    for one, other in zip(found, lax.map(draw, seeds), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


STEPS = [stacked, scanned, counted, indexed, keyed, backwards]


def on_one_mesh(step: Any, count: int) -> Any:
    return stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=count))


def tolerance(step: Any) -> float:
    return 2e-2 if step is backwards else 1e-5


@pytest.mark.parametrize(
    ("step", "count"),
    [
        *((step, TURNS) for step in STEPS),
        *one_in(3, ((step, count) for count in (1, 2) for step in STEPS)),
    ],
)
def test_a_pipeline_takes_the_turns_as_micro_batches(step: Any, count: int) -> None:
    check(step, PARAMS, BATCH, count=count, tolerance=tolerance(step))


@pytest.mark.parametrize("count", [2, TURNS])
@pytest.mark.parametrize("step", STEPS)
def test_gradients_of_jax_are_accumulated_on_one_mesh(step: Any, count: int) -> None:
    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=count))
    found, expected = parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH)
    if step is not backwards:
        assert_same(found, expected)
        return
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(
            np.asarray(one, np.float32), np.asarray(other, np.float32), atol=2e-2
        )


def test_turns_of_a_micro_batch_stay_a_loop() -> None:
    """What is kept for the gradients is that of one turn, as in the function."""

    def text(count: int) -> str:
        method = ShardParallel(num_micro_batches=count)
        return stablehlo_alpa.parallelize(scanned, method=method).plan(PARAMS, BATCH).module_text()

    assert "stablehlo.while" in text(2)
    assert "stablehlo.while" not in text(TURNS)


@pytest.mark.parametrize("make", [lambda f: pipeline(f, 3), lambda f: pipeline(f, 8)])
def test_turns_that_are_no_multiple_of_micro_batches_are_named(make: Any) -> None:
    with pytest.raises(TraceError, match=r"in a loop of 4 turns, .* pass num_micro_batches=4"):
        make(scanned).plan(PARAMS, weights(24, WIDTH))


def first_in_front(parts: int) -> Any:
    """Gradients of the first part of the batch are what the loop starts with."""

    def step(params: Any, x: Any, key: Any) -> Any:
        def dropped(params: Any, x: Any, key: Any) -> Any:
            return loss_of(params, x * jax.random.bernoulli(key, 0.7, x.shape))

        size, found = len(x) // parts, stablehlo_alpa.value_and_grad(dropped)

        def turn(number: Any, total: Any) -> Any:
            part = lax.dynamic_slice(x, (number * size, 0), (size, WIDTH))
            own = found(params, part, jax.random.fold_in(key, number))
            return jax.tree.map(jnp.add, total, own)

        first = found(params, x[:size], jax.random.fold_in(key, 0))
        return updated(params, lax.fori_loop(1, parts, turn, first))

    return step


@pytest.mark.parametrize("parts", [2, 4, 5])
@pytest.mark.parametrize("make", [lambda f: pipeline(f, 2), lambda f: on_one_mesh(f, 4)])
def test_the_first_part_is_in_front_of_the_loop(make: Any, parts: int) -> None:
    """Turns are no multiple of micro-batches: each has a part of the rows of every turn."""
    step, args = first_in_front(parts), (PARAMS, weights(4 * parts, WIDTH), jax.random.key(5))
    parallel = make(step)
    assert_same(parallel(*args), jax.jit(step)(*args))


@pytest.mark.parametrize("count", [2, TURNS])
@pytest.mark.parametrize("make", [pipeline, on_one_mesh], ids=["pipeline", "one mesh"])
def test_turns_of_optax_are_taken(make: Any, count: int) -> None:
    """Each takes every fourth row, by ``jnp.take``."""
    microbatching = pytest.importorskip("optax.microbatching")

    def step(params: Any, x: Any) -> Any:
        found = microbatching.microbatch(
            lambda params, x: stablehlo_alpa.value_and_grad(loss_of)(params, x),
            argnums=1,
            microbatch_size=4,
            accumulator=microbatching.AccumulationType.MEAN,
        )
        return found(params, x)

    args = PARAMS, weights(4 * TURNS, WIDTH)
    assert_same(make(step, count)(*args), jax.jit(step)(*args))


def test_rows_of_a_turn_that_do_not_divide_are_named() -> None:
    with pytest.raises(TraceError, match=r"loop of 3 turns.* what divides the 6 examples of a"):
        on_one_mesh(first_in_front(4), 4).plan(PARAMS, weights(24, WIDTH), jax.random.key(5))


def test_a_loop_over_samples_of_the_whole_batch_stays_one() -> None:
    """Three draws of noise for all examples: there is nothing to put micro-batches in place of."""

    def step(params: Any, x: Any, key: Any) -> Any:
        def turn(total: Any, key: Any) -> Any:
            noise = jax.random.normal(key, (WIDTH,))
            return jax.tree.map(jnp.add, total, jax.grad(loss_of)(params, x + noise)), None

        start = jax.tree.map(jnp.zeros_like, params)
        total = lax.scan(turn, start, jax.random.split(key, 3))[0]
        return jax.tree.map(lambda p, g: p - g, params, total)

    args = PARAMS, BATCH, jax.random.key(1)
    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=2))
    assert_same(parallel(*args), jax.jit(step)(*args))


def test_a_loop_over_time_stays_one() -> None:
    """Each of its five turns has all examples."""

    def step(params: Any, x: Any) -> Any:
        def turn(total: Any, now: Any) -> Any:
            return jax.tree.map(jnp.add, total, jax.grad(loss_of)(params, now)), None

        start = jax.tree.map(jnp.zeros_like, params)
        total = lax.scan(turn, start, x.swapaxes(0, 1))[0]
        return jax.tree.map(lambda p, g: p - g, params, total)

    args = PARAMS, jax.random.normal(jax.random.key(2), (8, 5, WIDTH))
    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))
    assert_same(parallel(*args), jax.jit(step)(*args))


def test_a_loop_of_updates_stays_one() -> None:
    """Each turn trains the parameters of the one before, and goes through the batch by itself."""

    def step(params: Any, x: Any) -> Any:
        def turn(params: Any, _: Any) -> Any:
            return jax.tree.map(lambda p, g: p - g, params, jax.grad(loss_of)(params, x)), None

        return lax.scan(turn, params, None, TURNS)[0]

    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=2))
    assert_same(parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))
