"""Operators of elements."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from random_operators.dice import Dice
from random_operators.registry import bounded, fitted, jumping, operator, real


@operator
def smooth(x: Any, y: Any, dice: Dice) -> Any:
    functions = (jnp.sin, jnp.tanh, jnp.cos, lambda a: a * a / 4, lambda a: jnp.exp(-a * a))
    return dice.pick(*functions, jax.nn.gelu, lax.erf, jnp.arctan)(real(x))


@operator
def kinked(x: Any, y: Any, dice: Dice) -> Any:
    functions = (jnp.abs, jax.nn.relu, jnp.negative, lambda a: jnp.clip(a, -1, 1), lambda a: a - 1)
    return dice.pick(*functions)(real(x))


@jumping
def stepped(x: Any, y: Any, dice: Dice) -> Any:
    return dice.pick(jnp.floor, jnp.sign, jnp.round, jnp.ceil)(real(x))


@operator
def with_reduced(x: Any, y: Any, dice: Dice) -> Any:
    """A vector of another value along one dimension, or its sum."""
    if y.ndim and dice.coin():
        dim = dice.dim(x)
        sums = y.sum(tuple(range(y.ndim - 1)))
        shape = [n if i == dim else 1 for i, n in enumerate(x.shape)]
        y = fitted(sums, (x.shape[dim],), y.dtype).reshape(shape)
    else:
        y = y.sum()
    return bounded(x * jnp.cos(y) if dice.coin() else x - jnp.tanh(y) / 2)


@operator
def with_corner(x: Any, y: Any, dice: Dice) -> Any:
    """What two values of one rank have in common."""
    if x.ndim != y.ndim:
        return x + jnp.tanh(y.sum())
    sizes = [min(a, b) for a, b in zip(x.shape, y.shape, strict=True)]
    ends = tuple(slice(n) if dice.coin() else slice(-n, None) for n in sizes)
    return x[ends] / 2 + jnp.sin(y[tuple(slice(n) for n in sizes)])


@operator
def masked(x: Any, y: Any, dice: Dice) -> Any:
    dim = dice.dim(x)
    rows = lax.broadcasted_iota(jnp.int32, x.shape, dim)
    return jnp.where(rows % 3 == 0 if dice.coin() else rows > x.shape[dim] // 2, x, 1)


@jumping
def compared(x: Any, y: Any, dice: Dice) -> Any:
    x = real(x)
    return jnp.where(x > jnp.mean(x), x, -x) if dice.coin() else (x > 0) ^ (x < -1)


@jumping
def converted(x: Any, y: Any, dice: Dice) -> Any:
    dtype = dice.pick(jnp.bfloat16, jnp.float16, jnp.int8, jnp.uint8, jnp.int32, jnp.uint32, bool)
    return (real(bounded(x)) * 3).astype(dtype)


@jumping
def tiny_floats(x: Any, y: Any, dice: Dice) -> Any:
    """Of eight bits, which have no sums over devices."""
    tiny = jnp.clip(real(x), -8, 8).astype(dice.pick(jnp.float8_e4m3fn, jnp.float8_e5m2))
    dim = dice.dim(tiny)
    functions = (
        lambda a: a,
        lambda a: jnp.concatenate([a, a], dim),
        lambda a: jnp.take(a, dice.places(a.shape[dim]), dim, mode="clip"),
        lambda a: lax.index_in_dim(a, 0, dim),
        lambda a: jnp.max(a, dim),
    )
    return dice.pick(*functions)(lax.stop_gradient(tiny)).astype(jnp.float32)


@jumping
def bits(x: Any, y: Any, dice: Dice) -> Any:
    x = lax.bitcast_convert_type(real(x).astype(jnp.float32), jnp.int32) >> 24
    functions = (lambda a: a // 3, lambda a: a % 5, lambda a: a << 2, lax.population_count, lax.clz)
    return dice.pick(*functions, lambda a: a ^ (a >> 1), lambda a: jnp.gcd(a, 6), jnp.invert)(x)


@jumping
def halves_of_bits(x: Any, y: Any, dice: Dice) -> Any:
    return lax.bitcast_convert_type((real(x) * 99).astype(jnp.int32), jnp.int8)


@operator
def complex_number(x: Any, y: Any, dice: Dice) -> Any:
    x = real(x).astype(jnp.float32)
    z = lax.complex(x, jnp.cos(x))
    return dice.pick(lambda z: z, jnp.abs, lambda z: (z * jnp.conj(z)).real, jnp.exp)(z)


@jumping
def not_a_number(x: Any, y: Any, dice: Dice) -> Any:
    x = jnp.where(real(x) > 1.2, jnp.nan, real(x))
    dim = dice.dim(x)
    number = jnp.nan_to_num
    functions = (
        number,
        lambda a: number(jnp.nanmean(a, dim)),
        lambda a: jnp.isnan(jnp.max(a, dim)),
        lambda a: number(jnp.sort(a, dim)),
        lambda a: jnp.argmax(a, dim),
        lambda a: number(lax.cummax(a, dim)),
        lambda a: number(jnp.min(a, dim)),
    )
    return dice.pick(*functions)(x)
