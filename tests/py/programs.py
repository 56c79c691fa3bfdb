"""Small JAX programs, one or more of every operator family, with their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True)
class Program:
    """A function and the arguments it is called with.

    Attributes:
        fun: function of arrays.
        args: numpy arrays.
        tolerance: relative (and absolute, for values near one) error of a result.
    """

    fun: Callable[..., Any] = field(repr=False)
    args: tuple[Any, ...] = field(repr=False)
    tolerance: float = 2e-5


def real(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype(dtype)


def whole(high: int, *shape: int, seed: int = 0, dtype: Any = np.int32) -> Any:
    return np.random.default_rng(seed + sum(shape)).integers(0, high, shape).astype(dtype)


def definite(*shape: int) -> Any:
    """Symmetric positive definite matrices."""
    a = real(*shape)
    return a @ np.swapaxes(a, -1, -2) + 4 * np.eye(shape[-1], dtype=np.float32)


PROGRAMS: dict[str, Program] = {}


def registering(
    programs: dict[str, Program], tolerance: float
) -> Callable[..., Callable[[Callable[..., Any]], Any]]:
    """A decorator that takes arguments of a function and keeps it with them under its name."""

    def program(*args: Any, tolerance: float = tolerance) -> Callable[[Callable[..., Any]], Any]:
        def register(fun: Callable[..., Any]) -> Callable[..., Any]:
            programs[fun.__name__] = Program(fun, args, tolerance)
            return fun

        return register

    return program


program = registering(PROGRAMS, 2e-5)


# Elementwise -------------------------------------------------------------------------------------


@program(real(8, 12), real(8, 12, seed=1))
def arithmetic(a: Any, b: Any) -> Any:
    return jnp.where(a > b, a * b - a / (jnp.abs(b) + 1), jnp.maximum(a, b)) + lax.rem(a, b + 2)


@program(real(8, 12))
def transcendental(a: Any) -> Any:
    b = jnp.abs(a) + 0.5
    parts = [jnp.sin(a), jnp.cos(a), jnp.tan(a), jnp.exp(a), jnp.expm1(a), jnp.log(b)]
    parts += [jnp.log1p(b), jnp.sqrt(b), lax.rsqrt(b), jnp.cbrt(a), jnp.tanh(a), lax.logistic(a)]
    return sum(parts) + jnp.power(b, a) + jnp.arctan2(a, b)


@program(real(8, 12))
def special_functions(a: Any) -> Any:
    b = 0.9 * a
    parts = [lax.erf(a), lax.erfc(a), lax.erf_inv(b), lax.asin(b), lax.acos(b), lax.atan(a)]
    parts += [lax.sinh(a), lax.cosh(a), lax.asinh(a), lax.acosh(jnp.abs(a) + 1.5), lax.atanh(b)]
    parts += [lax.lgamma(jnp.abs(a) + 1), lax.digamma(jnp.abs(a) + 1), lax.bessel_i1e(a)]
    return sum(parts)


@program(real(8, 12))
def rounding(a: Any) -> Any:
    b = a * 5
    return jnp.floor(b) + jnp.ceil(b) + jnp.round(b) + jnp.sign(b) + jnp.nextafter(b, b + 1)


@program(whole(100, 8, 12), whole(100, 8, 12, seed=1))
def integers(a: Any, b: Any) -> Any:
    c = (a & b) | (a ^ b) << 1
    return c // (b + 1), c % 7, lax.population_count(c), lax.clz(a), ~b >> 1, jnp.clip(a, 10, 50)


@program(whole(2, 8, 16).astype(bool), whole(2, 8, 16, seed=1).astype(bool))
def booleans(a: Any, b: Any) -> Any:
    return (a & ~b) ^ (a | b), jnp.any(a, 0), jnp.all(b, 1), jnp.sum(a & b)


@program(whole(250, 16, 16, dtype=np.uint8))
def bytes_to_floats(a: Any) -> Any:
    return a.astype(jnp.float32) / 255, (a + a), jnp.max(a, 1), a.astype(jnp.int32).sum(0)


@program(real(16, 24), real(24, 8), tolerance=3e-2)
def bfloat16(a: Any, b: Any) -> Any:
    a, b = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    return (jax.nn.relu(a @ b) + 1).astype(jnp.float32), a.sum(0).astype(jnp.float32)


@program(real(8, 16), real(8, 16, seed=1))
def complex_numbers(a: Any, b: Any) -> Any:
    c = lax.complex(a, b)
    d = c * jnp.conj(c) + jnp.exp(c)
    return jnp.real(d), jnp.imag(c @ d.T), jnp.abs(c).sum(0), (c @ c.T).sum(1)


@program(real(8, 16))
def bit_casts(a: Any) -> Any:
    bits = lax.bitcast_convert_type(a, jnp.uint32)
    halves = lax.bitcast_convert_type(bits, jnp.uint16)
    return bits ^ 1, halves, lax.bitcast_convert_type(halves, jnp.float32)


@program(real(8, 16))
def precision_and_finiteness(a: Any) -> Any:
    return lax.reduce_precision(a, 5, 10), jnp.isfinite(a / jnp.where(a > 0, a, 0))


# Shapes ------------------------------------------------------------------------------------------


@program(real(8, 24))
def reshape_merge_and_split(a: Any) -> Any:
    b = a.reshape(8, 4, 6).transpose(0, 2, 1)
    return jnp.tanh(b.reshape(48, 4)), (b * 2).reshape(-1), b.reshape(2, 4, 2, 3, 4).sum(1)


@program(real(6, 10))
def reshape_of_sizes_that_do_not_divide(a: Any) -> Any:
    return jnp.sin(a.reshape(4, 15)), jnp.cos(a.reshape(60)), a.reshape(3, 2, 10) @ a.T


@program(real(16), real(24, 16))
def broadcasts(a: Any, b: Any) -> Any:
    return a + b, jnp.broadcast_to(a[:, None], (16, 8)) * 2, a[None, :, None] * jnp.ones((2, 1, 8))


@program(real(8, 12, 4))
def transposes(a: Any) -> Any:
    return jnp.exp(a.transpose(2, 0, 1)), jnp.swapaxes(a, 0, 1) @ jnp.ones((4, 8))


@program(real(16, 12))
def slices_pads_and_concatenations(a: Any) -> Any:
    b = jnp.concatenate([a[2:10], a[::2] * 2], 0)
    c = lax.pad(b, 0.5, ((1, 3, 1), (0, 0, 0)))
    d = lax.pad(a, 0.0, ((-1, 2, 0), (2, -1, 0)))
    return jnp.tanh(c), d * 2, a[::-1] + 1, jnp.stack([a, a * 3], 1), jnp.roll(a, 3, 0)


@program(real(24, 16), real(16, 24))
def one_of_each(a: Any, b: Any) -> Any:
    """Pairs of rows and columns, as in rotary positions, and thirds; with their gradients."""

    def parts(a: Any) -> Any:
        c = a @ b
        turned = jnp.stack([-c[:, 1::2], c[:, ::2]], -1).reshape(c.shape)
        return turned, c[2::3, 1::4], c[:23:2] - c[1::2]

    gradient = jax.grad(lambda a: sum(jnp.sum(jnp.sin(part)) for part in parts(a)))(a)
    return parts(a), gradient, lax.pad(a, 0.5, ((1, 1, 2), (0, 1, 1)))


@program(real(16, 12), np.int32(3))
def dynamic_slices(a: Any, start: Any) -> Any:
    b = lax.dynamic_slice(a, (start, 0), (8, 12))
    c = lax.dynamic_update_slice(a, b * 2, (start + 1, 0))
    return jnp.exp(b), c, lax.dynamic_index_in_dim(a, start, 1)


@program(real(12, 16), np.int32(3), np.int32(12))
def slices_that_are_moved_inside(a: Any, row: Any, column: Any) -> Any:
    gradient = jax.grad(lambda a: jnp.sum(lax.dynamic_slice(a, (row, column), (4, 8)) ** 2))(a)
    apart = lax.dynamic_slice(jnp.sin(a), (row, column), (4, 8))
    # As many rows as there are: whatever the index says, the first one is the first.
    rows = lax.dynamic_slice(jnp.cos(a), (column, row), (12, 8))
    return gradient, jnp.exp(jnp.stack([apart.T] * 2)), jnp.tanh(rows)


@program(real(8, 16))
def iotas(a: Any) -> Any:
    rows = lax.broadcasted_iota(jnp.int32, (8, 16), 0)
    columns = lax.broadcasted_iota(jnp.int32, (8, 16), 1)
    return jnp.where(rows >= columns, a, -1e9).max(1), a + jnp.arange(16), jnp.eye(16) @ a.T


# Contractions ------------------------------------------------------------------------------------


@program(real(8, 16), real(16, 24), real(24, 8))
def matrix_products(a: Any, b: Any, c: Any) -> Any:
    h = a @ b
    return (jnp.tanh(h) @ c) @ a, h @ c + 1


@program(real(4, 8, 16), real(4, 16, 8))
def batched_products(a: Any, b: Any) -> Any:
    c = jnp.einsum("bij,bjk->bik", a, b)
    return c, jnp.einsum("bij,bkj->ik", a, a), jnp.einsum("bij,bjk->ij", a, b)


@program(real(16, 12), real(12, 24), real(24), real(24, 8), real(16, 8))
def mlp_gradient(x: Any, w1: Any, b1: Any, w2: Any, y: Any) -> Any:
    def loss(w1: Any, b1: Any, w2: Any) -> Any:
        return ((jnp.tanh(x @ w1 + b1) @ w2 - y) ** 2).mean()

    value, gradients = jax.value_and_grad(loss, (0, 1, 2))(w1, b1, w2)
    return value, [p - 0.1 * g for p, g in zip((w1, b1, w2), gradients, strict=True)]


@program(real(4, 8, 16), real(16, 16), real(16, 16, seed=3))
def attention_gradient(x: Any, wq: Any, wo: Any) -> Any:
    def loss(wq: Any, wo: Any) -> Any:
        q = (x @ wq).reshape(4, 8, 2, 8)
        scores = jnp.einsum("bihd,bjhd->bhij", q, q) / 3.0
        scores = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), scores, -1e9)
        out = jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(scores), q).reshape(4, 8, 16)
        return (jax.nn.gelu(out @ wo) ** 2).mean()

    return jax.grad(loss, (0, 1))(wq, wo)


def _convolve(x: Any, k: Any, **more: Any) -> Any:
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NHWC, **more)


NHWC = ("NHWC", "HWIO", "NHWC")


@program(real(8, 6, 6, 4), real(3, 3, 4, 8))
def convolution_gradient(x: Any, k: Any) -> Any:
    def loss(x: Any, k: Any) -> Any:
        return (jax.nn.relu(_convolve(x, k)) ** 2).mean()

    return _convolve(x, k), jax.grad(loss, (0, 1))(x, k)


@program(real(8, 6, 6, 8), real(3, 3, 2, 16))
def grouped_convolution_gradient(x: Any, k: Any) -> Any:
    def loss(x: Any, k: Any) -> Any:
        return (_convolve(x, k, feature_group_count=4) ** 2).mean()

    return jax.grad(loss, (0, 1))(x, k)


@program(real(8, 9, 9, 4), real(3, 3, 4, 8))
def strided_convolution_gradient(x: Any, k: Any) -> Any:
    def loss(x: Any, k: Any) -> Any:
        y = lax.conv_general_dilated(x, k, (2, 2), ((1, 0), (1, 1)), dimension_numbers=NHWC)
        return (y**2).mean()

    return jax.grad(loss, (0, 1))(x, k)


@program(real(16), real(16))
def convolution_that_reaches_over_every_block(a: Any, b: Any) -> Any:
    return jnp.convolve(a, b)


@program(real(2, 2, 2, 2, 2, 2), real(2, 2))
def quantum_gates(state: Any, gate: Any) -> Any:
    """Every gate is a product with another one of many dimensions, all of them small."""
    for qubit in (5, 2, 0):
        state = jnp.moveaxis(jnp.tensordot(gate, state, ((1,), (qubit,))), 0, qubit)
    return state, (state**2).sum((1, 3, 5))


# Reductions --------------------------------------------------------------------------------------


@program(real(8, 16, 4))
def monoids(a: Any) -> Any:
    return a.sum((0, 2)), a.max(1), a.min(0), (a + 1).prod(2), a.mean(), a.var(0)


@program(real(8, 16))
def arguments_of_extrema(a: Any) -> Any:
    return jnp.argmax(a, 1), jnp.argmin(a, 0), jnp.argmax(a)


@program(np.round(real(16, 16) * 3))
def arguments_of_tied_extrema(a: Any) -> Any:
    return jnp.argmax(a, 0), jnp.argmin(a, 1)


@program(real(8, 24))
def softmax_and_logsumexp(a: Any) -> Any:
    return jax.nn.softmax(a, 0), jax.nn.logsumexp(a, 1), jax.nn.log_softmax(a)


@program(real(8, 16))
def cumulative(a: Any) -> Any:
    return jnp.cumsum(a, 0), jnp.cumsum(a, 1), lax.cummax(a, 1), jnp.cumprod(a + 1, 0)


@program(real(8, 8, 8, 4))
def max_pool_gradient(x: Any) -> Any:
    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")

    return pool(x), jax.grad(lambda x: (pool(x) ** 2).sum())(x)


@program(real(8, 8, 8, 4))
def average_pool_gradient(x: Any) -> Any:
    def pool(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") / 9

    return pool(x), jax.grad(lambda x: (pool(x) ** 2).sum())(x)


# Indexing ----------------------------------------------------------------------------------------


@program(real(32, 8), whole(32, 4, 6))
def embedding_gradient(table: Any, ids: Any) -> Any:
    return table[ids], jax.grad(lambda t: (jnp.tanh(t[ids]) ** 2).sum())(table)


@program(real(8, 16), whole(16, 8))
def cross_entropy_gradient(logits: Any, labels: Any) -> Any:
    def loss(logits: Any) -> Any:
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
        return -picked.mean()

    return jax.value_and_grad(loss)(logits)


@program(real(8, 16), whole(16, 8, 4))
def take_along_axis(a: Any, indices: Any) -> Any:
    def pick(a: Any) -> Any:
        return jnp.take_along_axis(a, indices, 1)

    return pick(a), jax.grad(lambda a: (pick(a) ** 2).sum())(a)


@program(real(32, 8), np.arange(24, dtype=np.int32)[::-1].copy(), real(24, 8))
def scatters(a: Any, ids: Any, updates: Any) -> Any:
    twice = ids // 2
    return (
        a.at[ids].set(updates),
        a.at[twice].add(updates),
        a.at[twice].max(updates),
        a.at[twice].min(updates),
        a.at[twice].multiply(updates),
    )


@program(real(8, 16), np.int32(2))
def scatter_of_slices(a: Any, i: Any) -> Any:
    return a.at[2:6, 3].set(1.0), a.at[i].add(2.0), a.at[:, i].multiply(3.0)


@program(real(16, 24), whole(16, 20), whole(24, 20, seed=1))
def gather_of_points(a: Any, rows: Any, columns: Any) -> Any:
    return a[rows, columns], jax.grad(lambda a: (a[rows, columns] ** 2).sum())(a)


# Whole dimensions --------------------------------------------------------------------------------


@program(real(8, 16))
def sorts(a: Any) -> Any:
    return jnp.sort(a, 1), jnp.argsort(a, 0), lax.sort((a, a * 2), num_keys=1)[1]


@program(real(8, 24))
def top_k(a: Any) -> Any:
    return lax.top_k(a, 4)


@program(real(8, 16))
def fourier(a: Any) -> Any:
    return jnp.abs(jnp.fft.fft(a)), jnp.fft.irfft(jnp.fft.rfft(a))


@program(definite(8, 4, 4), real(8, 4, 6), tolerance=1e-3)
def triangular_systems(a: Any, b: Any) -> Any:
    lower = jnp.linalg.cholesky(a)
    return lower, lax.linalg.triangular_solve(lower, b, left_side=True, lower=True)


@program(definite(8, 4, 4), tolerance=1e-3)
def factorizations(a: Any) -> Any:
    return jnp.linalg.eigvalsh(a), lax.linalg.lu(a)[0], jnp.abs(jnp.linalg.qr(a)[1])


# Random numbers ----------------------------------------------------------------------------------


@program(np.array([1, 2], np.uint32), real(16, 24))
def threefry_dropout(key: Any, a: Any) -> Any:
    keep = jax.random.bernoulli(jax.random.wrap_key_data(key), 0.8, a.shape)
    return jnp.where(keep, a / 0.8, 0), jax.random.split(jax.random.wrap_key_data(key)).shape[0] + a


@program(np.array([1, 2, 3, 4], np.uint32))
def rng_bit_generator(key: Any) -> Any:
    return lax.rng_bit_generator(key, (16, 8))


# Control flow ------------------------------------------------------------------------------------


@program(real(8, 16), real(16, 16))
def fori_loop(a: Any, w: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, c: jnp.tanh(c @ w) + i, a)


@program(real(8, 16))
def loop_without_trip_count(a: Any) -> Any:
    return lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 1.5 + 1, jnp.abs(a))


@program(real(8, 16), real(4, 16, 16))
def scan_gradient(x: Any, ws: Any) -> Any:
    def loss(ws: Any) -> Any:
        def body(h: Any, w: Any) -> Any:
            h = jnp.tanh(h @ w)
            return h, h.sum(0)

        h, sums = lax.scan(body, x, ws)
        return (h**2).mean() + sums.mean()

    return jax.value_and_grad(loss)(ws)


@program(real(6, 8, 16), real(16, 16))
def scan_that_stacks(xs: Any, w: Any) -> Any:
    def body(h: Any, x: Any) -> Any:
        h = jax.nn.sigmoid(h @ w + x)
        return h, h * 2

    return lax.scan(body, jnp.zeros((8, 16)), xs)


@program(real(8, 16), real(16, 24), np.int32(1))
def branches(a: Any, w: Any, index: Any) -> Any:
    return lax.switch(index, [lambda a: a @ w, lambda a: jnp.sin(a) @ w + 1, lambda a: -a @ w], a)


@program(real(8, 16), np.bool_(True))
def condition_gradient(a: Any, flag: Any) -> Any:
    def loss(a: Any) -> Any:
        return lax.cond(flag, lambda a: (a**2).sum(0), lambda a: a.sum(0) * 3, a).mean()

    return jax.grad(loss)(a)


@program(real(6, 16, 8), real(8, 24))
def sum_of_gradients(xs: Any, w: Any) -> Any:
    total = jnp.zeros_like(w)
    for x in xs:
        total = total + jax.grad(lambda w, x=x: jnp.tanh(x @ w).sum())(w)
    return w - 0.1 * total, jnp.abs(total).max()


@program(real(6, 16, 8), real(8, 24))
def loop_that_adds_up_gradients(xs: Any, w: Any) -> Any:
    def body(total: Any, x: Any) -> Any:
        return total + jax.grad(lambda w: jnp.tanh(x @ w).sum())(w), None

    total, _ = lax.scan(body, jnp.zeros_like(w), xs)
    return w - 0.1 * total, jnp.abs(total).max()


@program(real(4, 3, 16, 8), real(8, 24))
def nested_loops_that_add_up(xs: Any, w: Any) -> Any:
    def inner(total: Any, x: Any) -> Any:
        return total + x.T @ jnp.tanh(x @ w), None

    def outer(total: Any, part: Any) -> Any:
        return total + lax.scan(inner, jnp.zeros_like(w), part)[0], None

    return lax.scan(outer, jnp.zeros_like(w), xs)[0]


@program(real(6, 16, 8), real(16, 24), real(8, 24))
def loops_whose_sums_are_not_sums(xs: Any, y: Any, w: Any) -> Any:
    """One is read as it grows, one begins elsewhere, one takes whole values, one is doubled."""

    def body(sums: Any, x: Any) -> Any:
        read, begun, whole, doubled = sums
        product = x.T @ y
        return (
            read + product * jnp.tanh(read),
            begun + product,
            whole + jnp.tanh(product),
            2 * doubled + product,
        ), read.sum()

    zero = jnp.zeros_like(w)
    return lax.scan(body, (zero, w, zero, zero), xs)


@program(real(6, 16, 24), real(24, 24), real(48), tolerance=1e-4)
def recurrence_gradient(xs: Any, w: Any, bias: Any) -> Any:
    def loss(w: Any, bias: Any) -> Any:
        first, second = jnp.split(bias, 2)

        def cell(h: Any, x: Any) -> Any:
            h = jnp.tanh(x + h @ w + first) * jnp.exp(second)
            return h, h.sum()

        return lax.scan(cell, jnp.zeros((16, 24)), xs)[1].mean()

    return jax.value_and_grad(loss, argnums=(0, 1))(w, bias)


@program(
    whole(100, 6, 16, 8),
    whole(100, 6, 16, 24),
    real(6, 16, 8, dtype=np.float16),
    tolerance=2e-3,
)
def loop_that_adds_up_integers(xs: Any, ys: Any, hs: Any) -> Any:
    def body(i: Any, sums: Any) -> Any:
        return sums[0] + xs[i].T @ ys[i], sums[1] + hs[i].T @ hs[i]

    zeros = jnp.zeros((8, 24), np.int32), jnp.zeros((8, 8), np.float16)
    total, halves = lax.fori_loop(0, 6, body, zeros)
    return total, halves.astype(np.float32) * 0.001


@program(real(8, 16), real(16, 16))
def nested_loops(a: Any, w: Any) -> Any:
    def inner(_: Any, c: Any) -> Any:
        return jnp.tanh(c @ w)

    return lax.fori_loop(0, 3, lambda _, c: lax.fori_loop(0, 2, inner, c) + a, a)


# Whole steps -------------------------------------------------------------------------------------


@program(real(8, 16), real(16), real(16), real(16, 24))
def layer_norm_gradient(x: Any, scale: Any, bias: Any, w: Any) -> Any:
    def loss(scale: Any, bias: Any, w: Any) -> Any:
        mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        h = (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias
        return (jax.nn.gelu(h @ w) ** 2).mean()

    return jax.grad(loss, (0, 1, 2))(scale, bias, w)


@program(real(16, 24), real(16, 24, seed=1), real(16, 24, seed=2), real(16, 24, seed=3))
def adam(p: Any, m: Any, v: Any, g: Any) -> Any:
    norm = jnp.sqrt((g**2).sum())
    g = g / jnp.maximum(norm, 1.0)
    m, v = 0.9 * m + 0.1 * g, 0.99 * jnp.abs(v) + 0.01 * g * g
    return p - 0.1 * m / (jnp.sqrt(v) + 1e-3), m, v


@program(real(16, 8), real(8, 4), real(4, 8, 16))
def mixture_of_experts(x: Any, gate: Any, experts: Any) -> Any:
    probabilities = jax.nn.softmax(x @ gate)
    chosen = jax.nn.one_hot(jnp.argmax(probabilities, 1), 4)
    position = (jnp.cumsum(chosen, 0) - 1) * chosen
    slots = jax.nn.one_hot(position.sum(1).astype(jnp.int32), 8) * chosen.max(1, keepdims=True)
    sent = jnp.einsum("te,tc,td->ecd", chosen, slots, x)
    made = jnp.einsum("ecd,edf->ecf", sent, experts)
    return jnp.einsum("te,tc,ecf->tf", chosen, slots, made)
