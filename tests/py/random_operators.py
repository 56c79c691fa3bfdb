"""Operators of every family, what they leave open drawn anew, and programs made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from programs import Program

MOST_ELEMENTS, MOST_DIMS = 6000, 5


class Dice:
    """Draws what an operator leaves open.

    Attributes:
        rng: decides while the program is traced.
        numbers: int32[8], which only the run knows; some lie outside of every dimension.
    """

    def __init__(self, rng: np.random.Generator, numbers: Any) -> None:
        self.rng = rng
        self.numbers = numbers

    def pick(self, *options: Any) -> Any:
        """One of the arguments."""
        return options[int(self.rng.integers(len(options)))]

    def coin(self) -> bool:
        """Yes or no."""
        return bool(self.rng.integers(2))

    def between(self, low: int, high: int) -> int:
        """A number of low .. high."""
        return int(self.rng.integers(low, high + 1))

    def dim(self, x: Any) -> int:
        """Any dimension of a value."""
        return self.between(0, x.ndim - 1)

    def dims(self, x: Any) -> tuple[int, ...]:
        """At least one dimension."""
        count = self.between(1, x.ndim)
        return tuple(int(i) for i in self.rng.permutation(x.ndim)[:count])

    def index(self) -> Any:
        """A number that only the run knows."""
        return self.numbers[self.between(0, 7)]

    def places(self, size: int) -> Any:
        """Indices of a dimension, a few beside it; constants, or known to the run alone."""
        count = self.pick(size, 8, 5, 1)
        if self.coin():
            return jnp.resize(self.numbers, (count,))
        return jnp.asarray(self.rng.integers(-size - 3, size + 4, count).astype(np.int32))


Operator = Callable[[Any, Any, Dice], Any]
OPERATORS: dict[str, Operator] = {}
JUMPS: set[str] = set()
"""Operators of which two results differ by far where arguments differ by rounding."""


def operator(fun: Operator) -> Operator:
    """Registers a function of a value of one dimension or more, and of another value."""
    OPERATORS[fun.__name__] = fun
    return fun


def jumping(fun: Operator) -> Operator:
    JUMPS.add(fun.__name__)
    return operator(fun)


def real(x: Any) -> Any:
    """The same as floating-point numbers."""
    if jnp.iscomplexobj(x):
        return x.real
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.float32) / 4


def bounded(x: Any) -> Any:
    """No number is large: errors would be."""
    if jnp.iscomplexobj(x):
        return lax.complex(bounded(x.real), bounded(x.imag))
    return jnp.clip(x, -9, 9) if jnp.issubdtype(x.dtype, jnp.floating) else x


def fitted(y: Any, shape: Sequence[int], dtype: Any) -> Any:
    """As many elements of a value as a shape has."""
    if jnp.iscomplexobj(y) and not jnp.issubdtype(dtype, jnp.complexfloating):
        y = y.real
    return jnp.resize(y, tuple(shape)).astype(dtype)


def part(x: Any, dim: int, size: int) -> Any:
    return lax.slice_in_dim(x, 0, size, axis=dim)


# Elementwise -------------------------------------------------------------------------------------


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


# Shapes ------------------------------------------------------------------------------------------


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


# Slices and gathers ------------------------------------------------------------------------------


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


# Ordered -----------------------------------------------------------------------------------------


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


# Running totals, reductions, windows -------------------------------------------------------------


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


# Products ----------------------------------------------------------------------------------------


@operator
def product(x: Any, y: Any, dice: Dice) -> Any:
    """Over the first dimensions of one size, or of a value with itself."""
    x, y = real(x), real(y).astype(real(x).dtype)
    pairs = [(i, j) for i, n in enumerate(x.shape) for j, m in enumerate(y.shape) if n == m]
    for i, j in pairs:
        if x.size // x.shape[i] * (y.size // y.shape[j]) <= MOST_ELEMENTS:
            return bounded(jnp.tensordot(x, y, (i, j)) / x.shape[i])
    dims = [*range(x.ndim - 1)]
    return bounded(jnp.tensordot(x, x, (dims, dims)) / x.size)


@operator
def batched_product(x: Any, y: Any, dice: Dice) -> Any:
    x = transpose(jnp.atleast_2d(real(x)), y, dice)
    if x.ndim == 2:
        return jnp.einsum("ab,ab->a", x, jnp.sin(x))
    return bounded(jnp.einsum("abc...,adc...->abd", x, x) / x.shape[2])


@jumping
def integer_product(x: Any, y: Any, dice: Dice) -> Any:
    x = jnp.atleast_2d(bounded(real(x))).astype(jnp.int8)
    return lax.dot_general(x, x, (((0,), (0,)), ((), ())), preferred_element_type=jnp.int32)


@operator
def ragged_product(x: Any, y: Any, dice: Dice) -> Any:
    x = jnp.atleast_2d(real(x)).astype(jnp.float32)
    x = x.reshape(x.shape[0], -1)[:, :16]
    weights = fitted(real(y), (3, x.shape[1], 8), x.dtype)
    ends = jnp.sort(dice.numbers[:2] % (x.shape[0] + 1))
    sizes = jnp.diff(ends, prepend=0, append=jnp.full_like(ends[:1], x.shape[0]))
    return bounded(lax.ragged_dot(x, weights, sizes.astype(jnp.int32)) / x.shape[1])


@operator
def convolution(x: Any, y: Any, dice: Dice) -> Any:
    """Along the first dimension: features are what else there is, in groups or not."""
    rows = jnp.tanh(real(x)).astype(jnp.float32).reshape(1, x.shape[0], -1)[..., :12]
    features = rows.shape[2]
    groups = dice.pick(1, features, *[k for k in (2, 3) if features % k == 0])
    width, outputs = dice.pick(1, 2, 3), groups * dice.between(1, 2)
    kernel = fitted(jnp.cos(real(y)), (width, features // groups, outputs), rows.dtype)
    return lax.conv_general_dilated(
        rows,
        kernel,
        (dice.between(1, 3),),
        [(dice.between(0, 4), dice.between(2, 4))],
        (dice.pick(1, 1, 2),),
        (dice.pick(1, 1, 2),),
        ("NHC", "HIO", "NHC"),
        groups,
    )[0]


@operator
def convolution_of_two_dims(x: Any, y: Any, dice: Dice) -> Any:
    images = jnp.tanh(real(x)).astype(jnp.float32)
    images = jnp.atleast_2d(images).reshape(1, *jnp.atleast_2d(images).shape[:2], -1)[..., :4]
    kernel = fitted(jnp.cos(real(y)), (3, 2, images.shape[3], 2), images.dtype)
    strides = (dice.between(1, 2), dice.between(1, 2))
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(images, kernel, strides, "SAME", dimension_numbers=layout)[0]


@operator
def fourier(x: Any, y: Any, dice: Dice) -> Any:
    x = real(x).astype(jnp.float32)
    return bounded(dice.pick(jnp.fft.rfft, jnp.fft.fft)(x, axis=dice.dim(x)) / x.shape[0])


@operator
def inverse_fourier(x: Any, y: Any, dice: Dice) -> Any:
    z = lax.complex(real(x).astype(jnp.float32), jnp.cos(real(x)).astype(jnp.float32))
    return dice.pick(jnp.fft.irfft, jnp.fft.ifft)(z, axis=dice.dim(x))


# Loops and branches ------------------------------------------------------------------------------


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


# Programs ----------------------------------------------------------------------------------------

ROUNDED = ("bfloat16", "float16")
DTYPES = (*["float32"] * 8, *ROUNDED, "float64", "complex64", "int32", "int8", "uint8", "bool")
FORMS = ("forward", "forward", "gradient", "gradient", "gradient", "batched", "looped")


@dataclass(frozen=True)
class Recipe:
    """What a random program is made of.

    Attributes:
        names: operators, in order; each takes two of the values that there are, mostly late ones.
        seed: decides what operators leave open, and the arguments.
        shape: of the first argument.
        dtype: of both arguments.
        form: ``"forward"``, ``"gradient"`` to both arguments, ``"batched"`` (as `jax.vmap` makes it
            of the first argument) or ``"looped"`` (the same by `jax.lax.map`).
    """

    names: tuple[str, ...]
    seed: int
    shape: tuple[int, int] = (16, 8)
    dtype: str = "float32"
    form: str = "forward"


def drawn(seed: int) -> Recipe:
    """The recipe of a seed."""
    dice = Dice(np.random.default_rng(seed), None)
    dtype = dice.pick(*DTYPES)
    names = [name for name in OPERATORS if dtype not in ROUNDED or name not in JUMPS]
    form = dice.pick(*FORMS)
    if form == "gradient" and not dtype.startswith("float"):
        form = "forward"
    return Recipe(
        names=tuple(dice.pick(*names) for _ in range(dice.between(3, 9))),
        seed=seed,
        shape=(dice.pick(16, 24, 48, 12, 13, 30), dice.pick(8, 16, 6, 3, 24, 7)),
        dtype=dtype,
        form=form,
    )


def make(recipe: Recipe) -> Program:
    """The program of a recipe: the last values that it has, and a sum of all."""

    def values(x: Any, y: Any, numbers: Any) -> list[Any]:
        found = [x, y]
        for place, name in enumerate(recipe.names):
            dice = Dice(np.random.default_rng((recipe.seed, place)), numbers)
            late = found[-dice.between(1, min(3, len(found)))]
            any_one = found[dice.between(0, len(found) - 1)]
            if late.size < MOST_ELEMENTS:
                try:
                    value = OPERATORS[name](jnp.atleast_1d(late), any_one, dice)
                except (TypeError, ValueError, NotImplementedError):
                    continue  # No such operator of this type or of so few elements.
                if 0 < value.size <= MOST_ELEMENTS and value.ndim <= MOST_DIMS:
                    found.append(value)
        return [*found[-3:], sum(jnp.sum(real(one).astype(jnp.float32)) / 99 for one in found)]

    is_rounded = recipe.dtype in ROUNDED or "converted" in recipe.names
    tolerance = 6e-2 if is_rounded else 5e-4
    return Program(_transformed(values, recipe.form), _arguments(recipe), tolerance)


def _arguments(recipe: Recipe) -> tuple[Any, ...]:
    rng = np.random.default_rng(recipe.seed)
    rows, columns = recipe.shape
    batch = (4,) if recipe.form in ("batched", "looped") else ()
    arrays: list[Any] = [
        rng.uniform(-1, 1, shape) for shape in ((*batch, rows, columns), (columns, 8))
    ]
    if recipe.dtype == "bool":
        arrays = [array > 0 for array in arrays]
    elif recipe.dtype.startswith("complex"):
        arrays = [array + 1j * array[::-1] for array in arrays]
    elif not recipe.dtype.startswith(("float", "bfloat")):
        arrays = [np.abs(9 * array) for array in arrays]
    typed = [array.astype(jnp.dtype(recipe.dtype)) for array in arrays]
    return (*typed, rng.integers(-9, 30, 8).astype(np.int32))


def _transformed(values: Callable[..., list[Any]], form: str) -> Callable[..., Any]:
    if form == "batched":
        return jax.vmap(values, (0, None, None))
    if form == "looped":
        return lambda x, y, numbers: lax.map(lambda one: values(one, y, numbers), x)
    if form == "forward":
        return values

    def loss(x: Any, y: Any, numbers: Any) -> tuple[Any, Any]:
        found = values(x, y, numbers)
        weighted = [jnp.sum(jnp.sin(jnp.arange(one.size)) * real(one).ravel()) for one in found]
        return sum(one.astype(x.dtype) for one in weighted) / 9, found

    return jax.value_and_grad(loss, (0, 1), has_aux=True)
