"""What one device computes: products, and what reads and writes memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from stablehlo_alpa.calibration.fitting import least_deviation
from stablehlo_alpa.calibration.timing import Stepped, Timing, time_iteration, time_step
from stablehlo_alpa.cost.kinds import FloatArray

# Rows, columns and depth of products: those with one short side, and squares, of which the largest
# are for devices that take no time for the one before.
SHAPES = (
    (32, 1024, 1024),
    (1024, 32, 1024),
    (1024, 1024, 32),
    (256, 2048, 256),
    (64, 64, 64),
    (128, 128, 128),
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
)
_ENOUGH_S = 2e-3
STREAM_BYTES = 64 * 2**20
"""The least that is streamed."""


def time_products(
    dtype: Any, device: jax.Device, note: Callable[[tuple[int, int, int], Timing], float]
) -> FloatArray:
    """float64[T] seconds of the first T of `SHAPES`, of which ``note`` is told."""
    found: list[float] = []
    for shape in SHAPES:
        if found and found[-1] > _ENOUGH_S:
            break
        found.append(note(shape, time_product(shape, dtype, device)))
    return np.array(found)


def time_product(shape: tuple[int, int, int], dtype: Any, device: jax.Device) -> Timing:
    """Seconds of a product ``[m, k] @ [k, n]``: half of what there and back take.

    Numbers are random: on equal ones a device draws less power, and runs faster than it can.
    """
    m, n, k = shape
    generator = np.random.default_rng(0)
    # Of this variance, what goes there and back many times keeps its size.
    scale = (n * k) ** -0.25
    left, there, back = (
        jax.device_put(generator.standard_normal(of, np.float32) * by, device).astype(dtype)
        for of, by in (((m, k), 1.0), ((k, n), scale), ((n, k), scale))
    )
    timing = time_step(_there_and_back, left, there, back)
    return Timing(timing.seconds / 2, timing.spread)


def _there_and_back(steps: int) -> Stepped:
    def stepped(count: jax.Array, left: jax.Array, there: jax.Array, back: jax.Array) -> jax.Array:
        def iteration(_: Any, carried: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            left, total = carried
            product = left
            for _ in range(steps):
                product = (product @ there) @ back
            # What comes next needs one number of what came before, which cannot be foreseen.
            first = lax.dynamic_slice(product, (0, 0), (1, 1))
            return lax.dynamic_update_slice(left, first * 0, (0, 0)), total + first

        start = (left, jnp.zeros((1, 1), left.dtype))
        return lax.fori_loop(0, count, iteration, start)[1]

    return stepped


def time_stream(num_bytes: int, device: jax.Device) -> Timing:
    """Seconds to read and to write so many bytes."""
    values = jax.device_put(np.ones(num_bytes // 4, np.float32), device)

    def stepped(count: jax.Array, values: jax.Array) -> jax.Array:
        return lax.fori_loop(0, count, lambda _, x: x * 0.9999 + 0.1, values)

    return time_iteration(stepped, values)


def stream_bandwidth(
    device: jax.Device, most_bytes: float, note: Callable[[int, Timing], float]
) -> float:
    """Bytes per second that a device reads and writes, beyond its caches.

    Args:
        device: which.
        most_bytes: that are streamed.
        note: is told of bytes streamed, and gives the seconds.
    """
    size = STREAM_BYTES
    while (seconds := note(size, time_stream(size, device))) < _ENOUGH_S:
        if 4 * size > most_bytes:
            break
        size *= 4
    return 2 * size / seconds


def fit_products(seconds: FloatArray) -> tuple[float, float]:
    """Launch seconds and FLOP/s of least mean relative error.

    Args:
        seconds: float64[T] of the first T of `SHAPES`.
    """
    flops = 2 * np.array(SHAPES[: len(seconds)], np.float64).prod(axis=1)
    launch, per_flop = least_deviation(np.stack([np.ones(len(flops)), flops], axis=1), seconds)
    if per_flop <= 0:
        per_flop = float((seconds / flops).min())
    return float(launch), float(1 / per_flop)
