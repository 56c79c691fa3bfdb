"""Programs on integers of 4 to 16 bits, which wrap, in every family of operators."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from programs import program, whole


def full(dtype: Any, *shape: int, seed: int = 0) -> Any:
    """Any number of an integer type."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


I8, U8, I16 = np.int8, np.uint8, np.int16


@program(full(I8, 16, 24), full(I8, 24, 8, seed=1), full(U8, 16, 24, seed=2))
def products_of_bytes(a: Any, b: Any, c: Any) -> Any:
    """In their own type, which wraps, and in wider ones."""
    return (
        a @ b,
        lax.dot(a, b, preferred_element_type=jnp.int32),
        lax.dot(a, b, preferred_element_type=jnp.int16),
        lax.dot(a, b, preferred_element_type=jnp.float32),
        lax.dot_general(c, c, (((0,), (0,)), ((), ())), preferred_element_type=jnp.uint32),
        lax.dot_general(c, c, (((1,), (1,)), ((), ()))),
    )


@program(full(I16, 4, 16, 8), full(I16, 4, 8, 16, seed=1))
def batched_products_of_short_numbers(a: Any, b: Any) -> Any:
    wide = lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))), preferred_element_type=jnp.int32)
    return wide, jnp.einsum("bij,bji->i", a, b), jnp.einsum("bij,bjk->ik", a, b)


@program(full(I8, 16, 16), full(I8, 16, 8, seed=1))
def quantised_layer(x: Any, w: Any) -> Any:
    """Products of bytes in four bytes, scaled, rounded and made bytes again."""
    sums = lax.dot(x, w, preferred_element_type=jnp.int32)
    scaled = jnp.round(sums.astype(jnp.float32) * 2**-7)
    narrow = jnp.clip(scaled, -128, 127).astype(jnp.int8)
    return narrow, lax.dot(narrow, w.T, preferred_element_type=jnp.int32), sums.astype(jnp.int8)


@program(full(I8, 16, 16), whole(15, 16, 16, seed=1, dtype=U8))
def products_of_nibbles(a: Any, b: Any) -> Any:
    """In bytes: jaxlib 0.10.2 compiles none of 4 bits on CPU devices."""
    small, none = a.astype(ml_dtypes.int4), b.astype(ml_dtypes.uint4)
    return (
        lax.dot(small.astype(I8), small.astype(I8), preferred_element_type=jnp.int32),
        none.astype(U8) @ none.T.astype(U8),
        small[3:9].T.astype(I8),
        (small + small).astype(I8),
        (none * none).astype(U8),
    )


@program(full(I16, 8, 6, 6, 4), full(I16, 3, 3, 4, 8, seed=1))
def convolutions_of_short_numbers(x: Any, k: Any) -> Any:
    dims = ("NHWC", "HWIO", "NHWC")
    wide = lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=dims, preferred_element_type=jnp.int32
    )
    return wide, lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=dims)


@program(full(I8, 8, 16, 16), full(U8, 8, 16, 16, seed=1), full(I16, 8, 16, 16, seed=2))
def windows_of_narrow_numbers(a: Any, b: Any, c: Any) -> Any:
    def sums(x: Any, strides: tuple[int, ...]) -> Any:
        return lax.reduce_window(x, x.dtype.type(0), lax.add, (1, 4, 2), strides, "SAME")

    least = np.iinfo(I8).min
    return (
        sums(a, (1, 1, 1)),
        sums(b, (1, 4, 2)),
        sums(c, (1, 2, 2)),
        lax.reduce_window(a, I8(least), lax.max, (2, 2, 2), (2, 2, 2), "VALID"),
        lax.reduce_window(b, U8(255), lax.min, (1, 3, 3), (1, 1, 1), "SAME"),
        lax.reduce_window(c, I16(1), lax.mul, (1, 2, 2), (1, 2, 2), "VALID"),
    )


@program(full(I8, 16, 8), full(U8, 16, 8, seed=1), full(I16, 16, 8, seed=2), whole(16, 24))
def rows_of_narrow_numbers(a: Any, b: Any, c: Any, i: Any) -> Any:
    """Looked up, added up where indices meet, and set."""
    return (
        a[i],
        b[:, i % 8],
        jnp.take_along_axis(c, i[:16, None] % 8, 1),
        a.at[i].add(a[(i + 1) % 16]),
        b.at[i].multiply(b[(i + 1) % 16]),
        c.at[:, i % 8].min(c[:, (i + 1) % 8]),
        a.at[i, i % 8].max(I8(3)),
        b.at[jnp.arange(16), i[:16] % 8].set(U8(7)),
    )


@program(full(I8, 16, 8), full(U8, 16, 8, seed=1), full(I16, 16, 8, seed=2))
def monoids_of_narrow_numbers(a: Any, b: Any, c: Any) -> Any:
    """Reductions in their own type, running totals, order."""
    own = [
        lax.reduce(x, x.dtype.type(start), fun, dims)
        for x in (a, b, c)
        for start, fun in ((0, lax.add), (1, lax.mul), (0, lax.bitwise_xor))
        for dims in ((0,), (1,), (0, 1))
    ]
    total = [fun(x, 0) for x in (a, b, c) for fun in (lax.cumsum, lax.cumprod, lax.cummax)]
    order = [fun(x) for x in (a, b, c) for fun in (jnp.sort, jnp.argmax)]
    return own, total, order, lax.top_k(b, 3), a.sum(0, dtype=I8), b.mean(0)


@program(full(I8, 16, 8), full(I8, 16, 8, seed=1), full(U8, 16, 8, seed=2))
def arithmetic_of_narrow_numbers(a: Any, b: Any, c: Any) -> Any:
    """Division, remainders and shifts at the ends of their ranges."""
    return (
        lax.div(a, b),
        lax.rem(a, b),
        a // jnp.where(b == 0, I8(1), b),
        lax.shift_left(a, b),
        lax.shift_right_arithmetic(a, b),
        lax.shift_right_logical(c, c % 9),
        jnp.abs(a),
        -c,
        c.astype(I8),
        a.astype(jnp.uint32),
        lax.population_count(c),
        lax.bitcast_convert_type(c, I8),
    )
