"""Slices, gathers and scatters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from random_operators.dice import Dice
from random_operators.registry import bounded, fitted, jumping, operator, real


@operator
def slice_of_dim(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    size = x.shape[dim]
    start, end = dice.between(0, size // 3), size - dice.between(0, size // 3)
    return lax.slice_in_dim(x, start, max(start + 1, end), dice.pick(1, 1, 2, 3), dim)


@operator
def one_of_dim(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    return lax.index_in_dim(x, dice.between(0, x.shape[dim] - 1), dim, keepdims=dice.coin())


@operator
def difference(x: Any, y: Any, dice: Dice) -> Any:
    return jnp.diff(x, axis=dice.dim(x))


@operator
def dynamic_slice(x: Any, y: Any, dice: Dice) -> Any:
    sizes = [dice.between(1, n) if dice.coin() else n for n in x.shape]
    return lax.dynamic_slice(x, [dice.index() for _ in sizes], sizes)


@operator
def dynamic_update_slice(x: Any, y: Any, dice: Dice) -> Any:
    sizes = [dice.between(1, n) if dice.coin() else n for n in x.shape]
    # XLA:CPU writes a slice of a value to another place of it before it has read all of the slice.
    update = jnp.sort(fitted(y, sizes, x.dtype), 0)
    return lax.dynamic_update_slice(x, update, [dice.index() for _ in sizes])


@operator
def dynamic_slices(x: Any, y: Any, dice: Dice) -> Any:
    """One a number, which is a gather."""
    size = dice.between(1, x.shape[0])
    return jax.vmap(lambda i: lax.dynamic_slice_in_dim(x, i, size).max(0))(dice.numbers)


@jumping
def slice_at_the_greatest(x: Any, y: Any, dice: Dice) -> Any:
    size = max(1, x.shape[0] // 2)
    return lax.dynamic_slice_in_dim(x, jnp.argmax(real(y).ravel()[:13]).astype(jnp.int32), size)


@operator
def take(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    mode = dice.pick("clip", "fill", "wrap")
    return jnp.take(x, dice.places(x.shape[dim]), dim, mode=mode, fill_value=1)


@operator
def take_points(x: Any, y: Any, dice: Dice) -> Any:
    if x.ndim < 2:
        return x[dice.numbers[:3] % x.shape[0]]
    rows, columns = dice.numbers, dice.numbers[::-1]
    return dice.pick(x.at[rows, columns], x.at[:, columns], x.at[..., rows]).get(mode="clip")


@operator
def own_rows(x: Any, y: Any, dice: Dice) -> Any:
    """Rows that are looked up or changed by their own numbers, and others beside them."""
    dim = dice.dim(x)
    x = jnp.moveaxis(x, dim, 0)
    rows, mode = jnp.arange(len(x)), dice.pick("clip", "fill", "drop", "promise_in_bounds", None)
    index: Any = rows
    if x.ndim > 1 and dice.between(0, 3):
        columns = dice.places(x.shape[1])
        if mode == "promise_in_bounds":
            columns = columns % x.shape[1]
        index = dice.pick(
            (rows, jnp.resize(columns, rows.shape)), (rows[:, None], columns[:2]), (rows, 0, ...)
        )
    at, parts = x.at[index], jnp.sin(jnp.arange(1, len(x) + 1)).astype(x.dtype)
    if dice.coin():
        return at.get(mode=None if mode == "drop" else mode, fill_value=1)
    found = at.get(mode="clip")
    parts = parts.reshape(-1, *[1] * (found.ndim - 1))
    if x.dtype == bool or dice.coin():
        return at.max(parts, mode=mode)
    return at.add(parts, mode=mode)


@operator
def own_rows_in_turns(x: Any, y: Any, dice: Dice) -> Any:
    """Of which each turn of a loop keeps the indices for its gradient."""
    x = jnp.tanh(real(x).reshape(len(x), -1))
    mode, size, rows = dice.pick("clip", "fill"), x.shape[1], jnp.arange(len(x))[:, None]

    def turn(x: Any, number: Any) -> Any:
        columns = (number + jnp.arange(2)) % (size if mode == "fill" else size + 1)
        found = x.at[rows, columns].get(mode=mode)
        return x / 2 + found.sum(1, keepdims=True), found

    return dice.pick(*lax.scan(turn, x, dice.numbers[:3] % size, reverse=dice.coin()))


@jumping
def take_along(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    places = jnp.argsort(real(x), dim) if dice.coin() else (real(x) * 7).astype(jnp.int32)
    return jnp.take_along_axis(x, lax.stop_gradient(places) % x.shape[dim], dim)


@operator
def scatter(x: Any, y: Any, dice: Dice) -> Any:
    places = dice.places(x.shape[0])
    parts = fitted(y, (*places.shape, *x.shape[1:]), x.dtype)
    mode = dice.pick("drop", "clip", None)
    at = x.at[places]
    # The gradient of products asks for indices that are all different.
    constant, factors = lax.stop_gradient((x, parts))
    functions = (
        lambda: at.add(parts, mode=mode),
        lambda: at.max(parts, mode=mode),
        lambda: at.min(parts, mode=mode),
        lambda: constant.at[places].mul(factors, mode=mode),
    )
    return bounded(dice.pick(*functions)())


@operator
def scatter_once(x: Any, y: Any, dice: Dice) -> Any:
    size = x.shape[0]
    places = jnp.unique(dice.numbers % size, size=8, fill_value=size)
    parts = fitted(y, (8, *x.shape[1:]), x.dtype)
    return x.at[places].set(parts, mode="drop", unique_indices=dice.coin())


@operator
def scatter_points(x: Any, y: Any, dice: Dice) -> Any:
    x = jnp.atleast_2d(x)
    rows, columns = dice.numbers, dice.numbers[::-1]
    at = dice.pick(x.at[rows, columns], x.at[:, columns], x.at[rows[:3, None], columns])
    return at.max(jnp.asarray(1, x.dtype)) if x.dtype == bool else at.add(jnp.asarray(1, x.dtype))


@operator
def segments(x: Any, y: Any, dice: Dice) -> Any:
    numbers = jnp.resize(dice.numbers, x.shape[:1])
    function = dice.pick(jax.ops.segment_sum, jax.ops.segment_max, jax.ops.segment_min)
    return bounded(function(x, numbers, dice.pick(5, 8)))


@jumping
def one_hot(x: Any, y: Any, dice: Dice) -> Any:
    return jax.nn.one_hot(real(x).astype(jnp.int32), 8, axis=dice.between(-1, x.ndim - 1))
