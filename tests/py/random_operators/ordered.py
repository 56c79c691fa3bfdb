"""Operators that compare elements with each other."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from random_operators.dice import Dice
from random_operators.registry import jumping, operator, real


@operator
def sort(x: Any, y: Any, dice: Dice) -> Any:
    return jnp.sort(x, dice.dim(x), descending=dice.coin())


@jumping
def sort_several(x: Any, y: Any, dice: Dice) -> Any:
    keys = (real(x) * 2).astype(jnp.int32) // 2
    operands = (keys, x, lax.broadcasted_iota(jnp.int32, x.shape, dice.dim(x)))
    return lax.sort(operands, dimension=dice.dim(x), num_keys=dice.between(1, 2))[dice.pick(1, 2)]


@jumping
def argsort(x: Any, y: Any, dice: Dice) -> Any:
    return jnp.argsort(jnp.round(real(x)), dice.dim(x), stable=True, descending=dice.coin())


@jumping
def top_k(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    x = jnp.round(real(x) * 2) / 2 if dice.coin() else real(x)
    values, places = lax.top_k(x, dice.between(1, min(6, x.shape[dim])), axis=dim)
    return values + places / 8


@jumping
def place_of_extremum(x: Any, y: Any, dice: Dice) -> Any:
    function = dice.pick(jnp.argmax, jnp.argmin)
    return function(jnp.round(real(x)), dice.dim(x), keepdims=dice.coin())


@operator
def median(x: Any, y: Any, dice: Dice) -> Any:
    return jnp.median(real(x), dice.dim(x))


@jumping
def search_sorted(x: Any, y: Any, dice: Dice) -> Any:
    points = jnp.linspace(-1, 1, 8).astype(real(x).dtype)
    return jnp.searchsorted(jnp.sort(real(x).ravel()), points, side=dice.pick("left", "right"))
