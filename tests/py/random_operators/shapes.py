"""Operators that move elements, or repeat them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from random_operators.dice import Dice
from random_operators.registry import operator, part


@operator
def transpose(x: Any, y: Any, dice: Dice) -> Any:
    return jnp.transpose(x, [int(i) for i in dice.rng.permutation(x.ndim)])


@operator
def merge(x: Any, y: Any, dice: Dice) -> Any:
    if x.ndim < 2:
        return x[None]
    dim = dice.between(0, x.ndim - 2)
    return x.reshape(*x.shape[:dim], -1, *x.shape[dim + 2 :])


@operator
def split(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    factors = [k for k in (2, 3, 4, 6, 8) if x.shape[dim] % k == 0] or [1]
    return x.reshape(*x.shape[:dim], dice.pick(*factors), -1, *x.shape[dim + 1 :])


@operator
def flatten(x: Any, y: Any, dice: Dice) -> Any:
    return x.ravel()


@operator
def reshape_unlike(x: Any, y: Any, dice: Dice) -> Any:
    """Neither merges nor splits of dimensions alone."""
    rows = [k for k in (3, 4, 5, 6, 10) if x.size % k == 0] or [1]
    return x.reshape(-1, dice.pick(*rows)).T.reshape(x.shape[::-1])


@operator
def broadcast(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.between(0, x.ndim)
    shape = (*x.shape[:dim], dice.pick(3, 8), *x.shape[dim:])
    return jnp.broadcast_to(jnp.expand_dims(x, dim), shape)


@operator
def reverse(x: Any, y: Any, dice: Dice) -> Any:
    return jnp.flip(x, dice.dims(x))


@operator
def roll(x: Any, y: Any, dice: Dice) -> Any:
    return jnp.roll(x, dice.index() if dice.coin() else dice.between(-5, 5), dice.dim(x))


@operator
def repeat(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    return jnp.repeat(x, 2, dim) if dice.coin() else jnp.tile(x, [1] * dim + [2])


@operator
def concatenate(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    parts = [part(x, dim, max(1, x.shape[dim] // 2)), -x, x]
    return jnp.concatenate(parts[dice.between(0, 1) :], dim)


@operator
def stack(x: Any, y: Any, dice: Dice) -> Any:
    return jnp.stack([x, x * x, -x], dice.between(0, x.ndim))


@operator
def pad(x: Any, y: Any, dice: Dice) -> Any:
    low_high_inside = [
        (dice.between(-1, 2), dice.between(-1, 2), dice.pick(0, 0, 1)) if n > 3 else (0, 1, 0)
        for n in x.shape
    ]
    return lax.pad(x, jnp.asarray(dice.coin(), x.dtype), low_high_inside)


@operator
def pad_by_itself(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    widths = [(2, 1) if i == dim else (0, 0) for i in range(x.ndim)]
    return jnp.pad(x, widths, mode=dice.pick("reflect", "wrap", "edge", "symmetric"))


@operator
def diagonal(x: Any, y: Any, dice: Dice) -> Any:
    return jnp.diagonal(x, dice.between(-1, 1)) if x.ndim > 1 else jnp.diag(x[:40])


@operator
def triangle(x: Any, y: Any, dice: Dice) -> Any:
    return dice.pick(jnp.triu, jnp.tril)(jnp.atleast_2d(x), dice.between(-2, 2))
