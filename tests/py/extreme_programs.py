"""Programs on values where machine arithmetic is not that of real numbers."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from programs import program, real, whole

# 16 summands in 8 blocks that cancel but for the last two; times a row of ones.
CANCELLING = np.repeat(np.array([8.0, -8.0, 7.0, -7.0, 6.0, -6.0, 1.0, 1.0], np.float32), 2)
CANCELLING = CANCELLING[:, None] * np.ones((1, 16), np.float32)


def _with(values: Any, places: int, *special: float) -> Any:
    """Some elements replaced."""
    flat = np.array(values).reshape(-1)
    chosen = np.random.default_rng(7).permutation(flat.size)[:places]
    flat[chosen] = np.resize(np.array(special, flat.dtype), places)
    return flat.reshape(np.shape(values))


@program(whole(2**30, 8, 16), whole(2**7, 8, 16, dtype=np.uint8))
def bitwise_reductions(a: Any, b: Any) -> Any:
    return (
        lax.reduce(a, np.int32(0), lax.bitwise_or, (1,)),
        lax.reduce(a, np.int32(-1), lax.bitwise_and, (0,)),
        lax.reduce(b, np.uint8(0), lax.bitwise_or, (0,)),
    )


@program(_with(real(16, 16), 9, np.nan, np.inf, -np.inf, -0.0))
def extrema_of_not_a_number(a: Any) -> Any:
    half, brain = a.astype(np.float16), a.astype(ml_dtypes.bfloat16)
    small = half.max(0), brain.min(1).astype(np.float32)
    return a.max(1), a.min(0), *small, jnp.abs(a).max(), a.min()


@program(4 * real(16, 16))
def extrema_of_small_floats(a: Any) -> Any:
    small, smaller = a.astype(ml_dtypes.float8_e4m3fn), a.astype(ml_dtypes.float8_e5m2)
    return small.max(1).astype(np.float32), smaller.min(0).astype(np.float32)


@program(whole(7, 16, 16, dtype=np.int8))
def extrema_of_nibbles(a: Any) -> Any:
    return a.astype(ml_dtypes.int4).max(1).astype(np.int32)


# Each product below has one use: what is used twice is added up before.


@program(np.ones((16, 16), np.float32), 1e4 * CANCELLING)
def shares_that_cancel(a: Any, b: Any) -> Any:
    """Each share is too large for the narrower type; their sum is not."""
    return (a @ b).astype(np.float16), ((a + 1) @ b / 4).astype(np.float16)


@program(np.ones((16, 16), np.float32), 3e36 * CANCELLING, np.float32(16))
def shares_that_overflow(a: Any, b: Any, c: Any) -> Any:
    """Each share is too large for the factor; their sum is not."""
    return (a @ b) * c, (a @ -b) / (1 / c), 16 * ((a + 1) @ b / 2), (-a @ b) @ (c / 16 + 0 * a)


@program(real(16, 16), real(16, 16, seed=1), np.float32(np.inf), np.float32(0))
def factors_that_are_not_finite(a: Any, b: Any, infinity: Any, zero: Any) -> Any:
    shifted = a + 1, b - 1
    return (
        (a @ b) * infinity,
        (b @ a) / zero,
        jnp.where(infinity > 1, shifted[0] @ b, infinity),
        (shifted[1] @ a) * (zero * infinity),
    )


@program(whole(100, 16, 16, dtype=np.int8), whole(100, 16, 16, seed=1, dtype=np.int8))
def bytes_that_wrap(a: Any, b: Any) -> Any:
    products = lax.dot(a, b)
    wide = lax.dot(a, b, preferred_element_type=np.int32)
    return products, products.astype(np.int32).sum(1), wide, products.sum(0), products * a


@program(real(16, 32))
def approximate_top_k(a: Any) -> Any:
    values, indices = lax.approx_max_k(a, 4)
    return values, indices, lax.approx_min_k(a, 3, reduction_dimension=0)[0]
