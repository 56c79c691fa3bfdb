"""Running totals, reductions and windows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from random_operators.dice import Dice
from random_operators.registry import bounded, jumping, operator, real


@operator
def running(x: Any, y: Any, dice: Dice) -> Any:
    def product(a: Any, dim: int, reverse: bool) -> Any:
        return lax.cumprod(1 + a / 16, dim, reverse)

    x = jnp.tanh(real(x))
    function = dice.pick(lax.cumsum, lax.cummax, lax.cummin, lax.cumlogsumexp, product)
    return bounded(function(x, dice.dim(x), reverse=dice.coin()))


@operator
def running_exactly(x: Any, y: Any, dice: Dice) -> Any:
    """Of whatever type."""
    x = x.astype(jnp.int32) if x.dtype == bool else x
    return bounded(lax.cumsum(x, dice.dim(x), reverse=dice.coin()))


@operator
def associative_scan(x: Any, y: Any, dice: Dice) -> Any:
    def affine(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] * b[0] + b[1]

    x = jnp.tanh(real(x))
    return lax.associative_scan(affine, (x, x / 2), axis=dice.dim(x), reverse=dice.coin())[1]


@operator
def reduction(x: Any, y: Any, dice: Dice) -> Any:
    def product(a: Any, dims: Any, keepdims: bool) -> Any:
        return jnp.prod(1 + jnp.tanh(a) / 16, dims, keepdims=keepdims)

    dims = dice.dims(x)
    functions = (jnp.sum, jnp.mean, jnp.max, jnp.min, jax.nn.logsumexp, product)
    return bounded(dice.pick(*functions)(real(x), dims, keepdims=dice.coin()))


@operator
def exact_reduction(x: Any, y: Any, dice: Dice) -> Any:
    """Of whatever type."""
    functions: list[Any]
    if jnp.issubdtype(x.dtype, jnp.integer):
        functions = [lax.reduce_and, lax.reduce_or, lax.reduce_xor, lax.reduce_sum, lax.reduce_max]
    elif x.dtype == bool:
        functions = [lax.reduce_and, lax.reduce_or, lax.reduce_xor]
    else:
        functions = [lambda x, dims: bounded(jnp.sum(x, dims))]
    return dice.pick(*functions)(x, dice.dims(x))


@jumping
def reduction_of_pairs(x: Any, y: Any, dice: Dice) -> Any:
    """The greatest by magnitude, with its sign and place."""

    def greater(a: Any, b: Any) -> Any:
        is_first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] <= b[1]))
        return tuple(jnp.where(is_first, i, j) for i, j in zip(a, b, strict=True))

    dim = dice.dim(x)
    x = lax.stop_gradient(jnp.round(real(x) * 4).astype(jnp.float32))
    places = lax.broadcasted_iota(jnp.int32, x.shape, dim)
    start = (np.float32(-1), np.int32(1 << 30), np.float32(0))
    found = lax.reduce((jnp.abs(x), places, x), start, greater, (dim,))
    return found[dice.pick(1, 2)]


@operator
def softmax(x: Any, y: Any, dice: Dice) -> Any:
    return dice.pick(jax.nn.softmax, jax.nn.log_softmax)(real(x), dice.dim(x))


@operator
def normalized(x: Any, y: Any, dice: Dice) -> Any:
    dims, x = dice.dims(x), real(x)
    return (x - x.mean(dims, keepdims=True)) * lax.rsqrt(x.var(dims, keepdims=True) + 0.1)


@operator
def window(x: Any, y: Any, dice: Dice) -> Any:
    sizes = tuple(dice.between(1, 3) if n >= 6 else 1 for n in x.shape)
    strides = tuple(dice.between(1, 2) for _ in sizes)
    start, function = dice.pick((0.0, lax.add), (-np.inf, lax.max), (np.inf, lax.min))
    padding = dice.pick("VALID", "SAME", tuple((dice.between(0, 1), 1) for _ in sizes))
    x = real(x).astype(jnp.float32)
    if dice.coin():
        return lax.reduce_window(x, start, function, sizes, strides, padding)
    # JAX has no gradient of windows with holes in them.
    x, holes = lax.stop_gradient(x), tuple(dice.between(1, 2) for _ in sizes)
    return lax.reduce_window(x, start, function, sizes, strides, padding, None, holes)
