"""Seconds of products: of matrices, and convolutions."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.fits import fit_rows
from stablehlo_alpa.cost.kinds import FloatArray

PRODUCTS = frozenset({"stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"})
"""Operators that matrix units compute."""


@dataclass(frozen=True)
class Roofline:
    """What products of a type reach where only their volumes are known.

    Attributes:
        launch_s: seconds of the smallest.
        efficiency: share of the peak rate.
        memory_efficiency: share of the memory bandwidth.
    """

    launch_s: float = 0.0
    efficiency: float = 1.0
    memory_efficiency: float = 1.0


@dataclass(frozen=True)
class Waves:
    """What products of a type take where their shapes are known.

    Tiles of the result are spread over the U units of a device, in ``ceil(tiles / U)`` waves of
    which the last may be nearly empty::

        launch + padded_flops * p + flops * f + bytes * b + k * d + padded_elements * e

    with the FLOPs and elements of whole waves, and the length k of the sums.

    Attributes:
        units: multiprocessors.
        tiles: rows and columns of a tile; the best of them counts.
        terms: launch, p, f, b, d, e in seconds.
    """

    units: int
    tiles: tuple[tuple[int, int], ...]
    terms: tuple[float, ...]

    def columns(self, shape: FloatArray, num_bytes: FloatArray) -> FloatArray:
        """float64[T, 6]: what `terms` are multiplied with.

        Args:
            shape: float64[T, 4] batch, m, n, k.
            num_bytes: float64[T] bytes read and written.
        """
        batch, m, n, k = shape.T
        padded = np.min(
            [
                np.ceil(batch * np.ceil(m / rows) * np.ceil(n / width) / self.units)
                * (rows * width * self.units)
                for rows, width in self.tiles
            ],
            axis=0,
        )
        flops = 2 * shape.prod(axis=1)
        return np.stack([np.ones(len(k)), 2 * padded * k, flops, num_bytes, k, padded], axis=1)

    def __call__(self, shape: FloatArray, num_bytes: FloatArray) -> FloatArray:
        """float64[T] seconds; arguments as in `columns`."""
        return self.columns(shape, num_bytes) @ np.array(self.terms)


@functools.cache
def rooflines_of(device: DeviceSpec) -> Mapping[str, Roofline]:
    """By the types that were measured."""
    return {
        row["dtype"]: Roofline(
            float(row["launch_s"]), float(row["efficiency"]), float(row["memory_efficiency"])
        )
        for row in fit_rows("products", device)
    }


@functools.cache
def waves_of(device: DeviceSpec) -> Mapping[str, Waves]:
    """By the types that were measured."""
    found = {}
    for row in fit_rows("waves", device):
        tiles = [tuple(map(int, tile.split("x"))) for tile in row["tiles"].split("+")]
        terms = tuple(float(row[f"{name}_s"]) for name in TERMS)
        found[row["dtype"]] = Waves(
            int(row["units"]), tuple((rows, width) for rows, width in tiles), terms
        )
    return found


TERMS = ("launch", "padded_flop", "flop", "byte", "depth", "padded_element")
"""What the terms of `Waves` are called in its table."""


def product_seconds(
    flops: FloatArray, num_bytes: FloatArray, dtype: str, device: DeviceSpec
) -> FloatArray:
    """Seconds of products whose volumes are known.

    ``launch + max(FLOPs / (efficiency * rate), bytes / (memory efficiency * bandwidth))``; peak
    figures where the device was not measured, or not in this type.

    Args:
        flops: float64[T].
        num_bytes: float64[T] read and written.
        dtype: of the operands.
        device: what computes.
    """
    reached = roofline_of(dtype, device)
    return reached.launch_s + np.maximum(
        flops / (reached.efficiency * device.rate(dtype)),
        num_bytes / (reached.memory_efficiency * device.memory_bandwidth),
    )


def roofline_of(dtype: str, device: DeviceSpec) -> Roofline:
    """What products of a type reach on a device; types that were not measured are as the first."""
    own = rooflines_of(device)
    return own.get(_family(dtype)) or next(iter(own.values()), Roofline())


def _family(dtype: str) -> str:
    """The measured type that is computed alike."""
    spelled = dtype.lower()
    return "f8" if spelled.startswith("f8") else {"f16": "bf16"}.get(spelled, spelled)


def shaped_product_seconds(
    shape: FloatArray, num_bytes: FloatArray, dtype: str, device: DeviceSpec
) -> FloatArray:
    """Seconds of products whose shapes are known.

    Args:
        shape: float64[T, 4] batch, m, n, k on one device.
        num_bytes: float64[T] read and written.
        dtype: of the operands.
        device: what computes.
    """
    waves = waves_of(device).get(_family(dtype))
    if waves is None:
        return product_seconds(2 * shape.prod(axis=1), num_bytes, dtype, device)
    return waves(shape, num_bytes)
