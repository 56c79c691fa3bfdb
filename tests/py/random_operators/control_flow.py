"""Loops, branches and what is drawn in them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from random_operators.dice import Dice
from random_operators.registry import operator, real


@operator
def scan(x: Any, y: Any, dice: Dice) -> Any:
    """A recurrence that captures a value of outside."""
    x = real(x)
    captured = jnp.tanh(real(y).sum()).astype(x.dtype)
    bodies = (
        lambda c, a: (jnp.tanh(c + a), c * captured),
        lambda c, a: (c / 2 + a * captured, c.sum()),
        lambda c, a: (jnp.maximum(c, a), a - c),
    )
    carry, rows = lax.scan(dice.pick(*bodies), jnp.zeros_like(x[0]), x, reverse=dice.coin())
    return dice.pick(carry, rows)


@operator
def counted_loop(x: Any, y: Any, dice: Dice) -> Any:
    size = x.shape[0]
    if dice.coin():
        return lax.fori_loop(0, min(size, 4), lambda i, c: c.at[i].set(c[(i + 1) % size]), x)
    return lax.fori_loop(1, 4, lambda i, c: jnp.roll(c, 1, 0), x)


@operator
def loop_of_unknown_length(x: Any, y: Any, dice: Dice) -> Any:
    last = dice.index() % 4
    x, y = lax.stop_gradient((real(x), real(y)))
    added = jnp.cos(y.sum()).astype(x.dtype)
    return lax.while_loop(lambda c: c[0] < last, lambda c: (c[0] + 1, c[1] / 2 + added), (0, x))[1]


@operator
def condition(x: Any, y: Any, dice: Dice) -> Any:
    captured = real(y).max()
    branches = (
        lambda a: a[::-1],
        lambda a: a * captured.astype(a.dtype),
        lambda a: jnp.sort(a, 0),
    )
    if dice.coin():
        return lax.cond(dice.index() > 3, *branches[:2], real(x))
    return lax.switch(dice.index(), branches, real(x))


@operator
def mapped(x: Any, y: Any, dice: Dice) -> Any:
    def body(row: Any) -> Any:
        return jnp.sin(real(row)) + real(y).max().astype(real(x).dtype)

    return lax.map(body, x, batch_size=dice.pick(None, 4, 5))


@operator
def recomputed(x: Any, y: Any, dice: Dice) -> Any:
    return jax.checkpoint(lambda a: jnp.tanh(jnp.sin(a)) * a)(real(x))


@operator
def random_numbers(x: Any, y: Any, dice: Dice) -> Any:
    key = jax.random.fold_in(jax.random.key(dice.between(0, 9)), dice.index())
    drawn = (
        lambda: jax.random.bernoulli(key, 0.5, x.shape),
        lambda: jax.random.normal(key, x.shape),
        lambda: jax.random.uniform(key, x.shape),
        lambda: jax.random.randint(key, x.shape, 0, 9),
    )
    if dice.between(0, 4) == 0:
        return jax.random.permutation(key, x, dice.dim(x))
    return real(x) * dice.pick(*drawn)().astype(real(x).dtype)
