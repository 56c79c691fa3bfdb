"""What one device computes: products, and what reads and writes memory."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from stablehlo_alpa.calibration.fitting import least_deviation
from stablehlo_alpa.calibration.timing import Timing, time_step
from stablehlo_alpa.cost.kinds import FloatArray

# Rows, columns and depth of products: squares, and those with one short side.
SHAPES = (
    (64, 64, 64),
    (128, 128, 128),
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (32, 1024, 1024),
    (1024, 32, 1024),
    (1024, 1024, 32),
    (256, 2048, 256),
)
_STREAM_BYTES = 64 * 2**20


def time_product(shape: tuple[int, int, int], dtype: Any, device: jax.Device) -> Timing:
    """Seconds of a product ``[m, k] @ [k, n]``."""
    m, n, k = shape
    left, right = (
        jax.device_put(np.full(of, 0.5, np.float32), device).astype(dtype)
        for of in ((m, k), (k, n))
    )

    def stepped(count: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
        def step(_: Any, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            left, total = carried
            product = left @ right
            # What comes next needs one number of what came before, which cannot be foreseen.
            first = lax.dynamic_slice(product, (0, 0), (1, 1))
            return lax.dynamic_update_slice(left, first * 0, (0, 0)), total + first

        start = (left, jnp.zeros((1, 1), left.dtype))
        return lax.fori_loop(0, count, step, start)[1]

    return time_step(stepped, left, right)


def time_stream(device: jax.Device) -> Timing:
    """Seconds to read and to write 64 MiB."""
    values = jax.device_put(np.ones(_STREAM_BYTES // 4, np.float32), device)

    def stepped(count: jax.Array, values: jax.Array) -> jax.Array:
        return lax.fori_loop(0, count, lambda _, x: x * 0.9999 + 0.1, values)

    return time_step(stepped, values)


def stream_bandwidth(seconds: float) -> float:
    """Bytes per second of `time_stream`."""
    return 2 * _STREAM_BYTES / seconds


def product_terms(dtype: Any) -> tuple[FloatArray, FloatArray]:
    """float64[T] FLOPs and bytes of each of `SHAPES`."""
    m, n, k = np.array(SHAPES, np.float64).T
    return 2 * m * n * k, (m * k + k * n + m * n) * jnp.dtype(dtype).itemsize


def fit_products(seconds: FloatArray, dtype: Any) -> tuple[float, float]:
    """Launch seconds and FLOP/s of least mean relative error.

    Args:
        seconds: float64[T] of `SHAPES`.
        dtype: of the products.
    """
    flops, _ = product_terms(dtype)
    launch, per_flop = least_deviation(np.stack([np.ones(len(flops)), flops], axis=1), seconds)
    if per_flop <= 0:
        per_flop = float((seconds / flops).min())
    return float(launch), float(1 / per_flop)
