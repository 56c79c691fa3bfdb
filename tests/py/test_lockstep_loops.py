"""Loops that each example leaves by itself, in micro-batches: each has turns of its own."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from batch_steps import BATCH, PARAMS, check, hidden, pipeline
from jax import lax
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import ShardParallel
from stablehlo_alpa.errors import CompileError


def root(a: Any) -> Any:
    """Of ``y^3 + y = a``, by as many steps of Newton's method as that takes."""

    def residual(y: Any) -> Any:
        return y**3 + y - a

    return lax.while_loop(
        lambda y: jnp.abs(residual(y)) > 1e-3,
        lambda y: y - residual(y) / (3 * y**2 + 1),
        jnp.zeros_like(a),
    )


def counted(a: Any) -> Any:
    """Turns, and what they have added up."""
    start = a, 0, jnp.zeros(3)
    return lax.while_loop(
        lambda now: (now[0] < 9) & (now[1] < 20),
        lambda now: (1.3 * now[0] + 0.1, now[1] + 1, now[2] + now[0]),
        start,
    )[1:]


def nested(a: Any) -> Any:
    def turn(now: Any) -> Any:
        inner = lax.while_loop(lambda n: n < now[0], lambda n: 2 * n + 1, 0.0)
        return now[0] + 1, now[1] + inner

    return lax.while_loop(lambda now: now[0] < a, turn, (0.0, 0.0))[1]


def series(a: Any) -> Any:
    """Written for all rows: a counter of turns beside them, and rows that are done."""

    def turn(now: Any) -> Any:
        number, goes_on, total, term = now
        following = term * a / (number + 1)
        more = goes_on & (jnp.abs(following) > 1e-3)
        chosen = [
            jnp.where(goes_on, new, old)
            for new, old in ((total + following, total), (following, term))
        ]
        return number + 1, more, *chosen

    start = 0, jnp.abs(a) > 0.2, jnp.ones_like(a), jnp.ones_like(a)
    return lax.while_loop(lambda now: (now[0] < 30) & jnp.any(now[1]), turn, start)[2]


def residual(y: Any, a: Any) -> Any:
    return y**3 + y - a


def masked(a: Any, goes_on: Any, done: Any) -> Any:
    """As equinox writes it: who goes on is carried beside what that is made of."""

    def turn(now: Any) -> Any:
        number, goes_on, y, done = now
        following = y - residual(y, a) / (3 * y**2 + 1)
        is_found = jnp.abs(residual(following, a)) < 1e-3
        y, done = jnp.where(goes_on, following, y), jnp.where(goes_on, is_found, done)
        return number + 1, goes_on & ~is_found, y, done

    start = 0, goes_on, 0 * a, done
    return [lax.while_loop(lambda now: (now[0] < 30) & jnp.any(~now[3]), turn, start)[2]]


def in_some_turns(a: Any, first: Any, asks: Any) -> Any:
    """As lineax writes it: every third turn does something else, in all rows."""

    def turn(now: Any) -> Any:
        count, y = now
        wants = (jnp.abs(residual(y, a)) > 1e-3) & (count < 20)
        slope = lax.cond(asks(count, y), lambda: 3 * y**2 + 1, lambda: 3 * y**2 + 2)
        following = y - residual(y, a) / slope
        return jnp.where(wants, count + 1, count), jnp.where(wants, following, y)

    def goes_on(now: Any) -> Any:
        return jnp.any((jnp.abs(residual(now[1], a)) > 1e-3) & (now[0] < 20))

    return [lax.while_loop(goes_on, turn, (first, 0 * a))[1]]


def recorded(a: Any, where: Any = lambda count: count) -> Any:
    """Each row writes where it has come to into a buffer, or what is there."""

    def turn(a: Any, count: Any, goes_on: Any, y: Any, ys: Any) -> Any:
        y = jnp.where(goes_on, y - residual(y, a) / (3 * y**2 + 1), y)
        ys = ys.at[count].set(jnp.where(goes_on, y, ys[where(count)]))
        more = (jnp.abs(residual(y, a)) > 1e-3) & (count < 5)
        return jnp.where(goes_on, count + 1, count), goes_on & more, y, ys

    start = jnp.zeros(len(a), int), jnp.ones(len(a), bool), 0 * a, jnp.ones((len(a), 6))
    return [
        lax.while_loop(lambda now: jnp.any(now[1]), lambda now: jax.vmap(turn)(a, *now), start)[3]
    ]


def every_third(count: Any, y: Any) -> Any:
    return jnp.max(count + 1) % 3 == 0


def step_of(loop: Any) -> Any:
    def loss(params: Any, x: Any) -> Any:
        made = hidden(params, x)
        found = loop(lax.stop_gradient(5 * made[:, 0]))
        weights: Any = sum(jnp.tanh(0.1 * one).reshape(len(x), -1).sum(1) for one in found)
        return jnp.mean(weights[:, None] * made**2), found

    def step(params: Any, x: Any) -> Any:
        return stablehlo_alpa.value_and_grad(loss, has_aux=True)(params, x)

    return step


LOOPS = {
    "root": lambda a: [jax.vmap(root)(a)],
    "counted": lambda a: jax.vmap(counted)(a),
    "nested": lambda a: [jax.vmap(nested)(jnp.abs(a))],
    "series": lambda a: [series(a)],
    "masked": lambda a: masked(a, ~(a > 0.5), a > 0.5),
    "in some turns": lambda a: in_some_turns(a, jnp.zeros(len(a), int), every_third),
    "recorded": recorded,
}


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", LOOPS)
def test_rows_of_a_micro_batch_leave_by_themselves(name: str, count: int) -> None:
    step = step_of(LOOPS[name])
    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=count))
    assert_same(parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))


@pytest.mark.parametrize("name", LOOPS)
def test_rows_of_a_stage_leave_by_themselves(name: str) -> None:
    check(step_of(LOOPS[name]), PARAMS, BATCH)


def until_all_are_done(a: Any) -> Any:
    """Rows go on as long as another one does."""
    return [lax.while_loop(lambda a: jnp.any(jnp.abs(a) > 1), lambda a: 0.7 * a, a)]


def turns_of_the_longest(a: Any) -> Any:
    """Rows stop by themselves; how many turns there were is of all of them."""

    def turn(now: Any) -> Any:
        return now[0] + 1, jnp.where(jnp.abs(now[1]) > 1, 0.7 * now[1], now[1])

    number, a = lax.while_loop(lambda now: jnp.any(jnp.abs(now[1]) > 1), turn, (0, a))
    return [a * number]


def starting_again(a: Any) -> Any:
    """What is counted beside the rows lets those that have stopped go on."""

    def wants(now: Any) -> Any:
        return (jnp.abs(now[1]) > 1) | (now[0] % 3 == 0)

    def turn(now: Any) -> Any:
        return now[0] + 1, jnp.where(wants(now), 0.7 * now[1], now[1])

    def goes_on(now: Any) -> Any:
        return jnp.any(wants(now))

    return [lax.while_loop(goes_on, turn, (0, a))[1]]


def masked_otherwise(a: Any) -> Any:
    """Rows that are done take the first turn, if there is one."""
    return masked(a, jnp.ones(len(a), bool), a > 0.5)


def counted_from_others(a: Any) -> Any:
    """The most turns are those of a row that may be done."""
    return in_some_turns(a, jnp.arange(len(a)), every_third)


def asked_of_all_rows(a: Any) -> Any:
    return in_some_turns(a, jnp.zeros(len(a), int), lambda count, y: jnp.any(y > 1))


def recorded_elsewhere(a: Any) -> Any:
    """Rows that are done move what others have left."""
    return recorded(a, lambda count: count + 1)


TOGETHER = [
    recorded_elsewhere,
    until_all_are_done,
    turns_of_the_longest,
    starting_again,
    masked_otherwise,
    counted_from_others,
    asked_of_all_rows,
]


@pytest.mark.parametrize("loop", TOGETHER)
def test_rows_that_go_by_those_of_others_meet_behind_the_first_pass(loop: Any) -> None:
    step = step_of(loop)
    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=2))
    assert_same(parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))


@pytest.mark.parametrize("loop", TOGETHER)
def test_rows_of_a_stage_that_go_by_those_of_others_are_refused(loop: Any) -> None:
    with pytest.raises(CompileError, match=r"while', which needs the whole batch"):
        pipeline(step_of(loop), 2).plan(PARAMS, BATCH)
