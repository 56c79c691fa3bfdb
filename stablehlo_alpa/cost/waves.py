"""Seconds of products of matrices by their shapes: waves of tiles over the units of a device."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.fits import Row, fit_rows
from stablehlo_alpa.cost.kinds import FloatArray

Tiles = tuple[tuple[int, int], ...]
"""Rows and columns of the tiles that kernels cut results into."""

USUAL_TILES: Tiles = ((128, 256), (128, 128), (64, 128), (64, 64))
"""Those of vendors' kernels."""

PARTS = (2, 4, 8, 16, 32, 64)
"""Into how many parts kernels split long sums (split-k), as vendors' libraries try them."""


@dataclass(frozen=True)
class Split:
    """Which sums are split over units that would have no tile, and what adding the parts up takes.

    Attributes:
        depth: length of the shortest sums that are split; infinite where none are.
        ratio: least length per tile of 128 by 128 that the results have.
        seconds: of adding the parts up.
    """

    depth: float = np.inf
    ratio: float = 0.0
    seconds: float = 0.0

    def applies(self, shape: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """bool[T] for float64[T, 4] batch, m, n, k."""
        batch, m, n, k = shape.T
        tiles = batch * np.ceil(m / 128) * np.ceil(n / 128)
        return (k >= self.depth) & (k >= self.ratio * tiles)


@dataclass(frozen=True)
class Waves:
    """What products of a type take where their shapes are known.

    The tiles of a result are spread over the U units of a device, in ``ceil(tiles / U)`` waves of
    which the last may be nearly empty. A wave of tiles of area A takes ``k d + A U e``, with the
    length k of the sums, and each kind of tile has its own kernel, thus its own d. The fastest
    counts, with sums split in s parts too where that is done::

        launch + bytes * b + flops * f + min over tiles, s of
            ceil(s tiles / U) * (k / s * d + A U e) + (adding up, if s > 1)

    The term in FLOPs stands for what does not go by waves: clocks that fall, and tiles of one wave
    that begin while others of the last still run.

    Attributes:
        units: multiprocessors.
        tiles: rows and columns of each kind of tile.
        depth_s: d of each in seconds.
        launch_s: seconds of the smallest.
        byte_s, flop_s, element_s: b, f, e in seconds.
        split: when sums are split.
    """

    units: int
    tiles: Tiles
    depth_s: tuple[float, ...]
    launch_s: float
    byte_s: float
    flop_s: float
    element_s: float
    split: Split = Split()

    def __call__(self, shape: FloatArray, num_bytes: FloatArray) -> FloatArray:
        """float64[T] seconds.

        Args:
            shape: float64[T, 4] batch, m, n, k.
            num_bytes: float64[T] bytes read and written.
        """
        best = self._computed(shape, (1,))
        split = self.split.applies(shape)
        if split.any():
            parts = self._computed(shape[split], PARTS) + self.split.seconds
            best[split] = np.minimum(best[split], parts)
        flops = 2 * shape.prod(axis=1)
        return self.launch_s + self.byte_s * num_bytes + self.flop_s * flops + best

    def _computed(self, shape: FloatArray, parts: tuple[int, ...]) -> FloatArray:
        """float64[T] seconds of the fastest kind of tile with sums in the best number of parts."""
        best, k = np.full(len(shape), np.inf), shape[:, 3].copy()
        for tile, depth_s in zip(self.tiles, self.depth_s, strict=True):
            full = count_tiles(shape, *tile) / self.units
            end = tile[0] * tile[1] * self.units * self.element_s
            for split in parts:
                seconds = np.ceil(full * split)
                seconds *= k * (depth_s / split) + end
                np.minimum(best, seconds, out=best)
        return best


@dataclass(frozen=True)
class Kernels:
    """Libraries have kernels of their own for batches; they may be as the others.

    Attributes:
        single: for products of two matrices.
        batched: for batches of such products.
    """

    single: Waves
    batched: Waves

    def __call__(self, shape: FloatArray, num_bytes: FloatArray) -> FloatArray:
        """float64[T] seconds; arguments as of `Waves`."""
        if self.single == self.batched:
            return self.single(shape, num_bytes)
        seconds, is_batch = np.empty(len(shape)), shape[:, 0] > 1
        for rows, waves in ((~is_batch, self.single), (is_batch, self.batched)):
            seconds[rows] = waves(shape[rows], num_bytes[rows])
        return seconds


def count_tiles(shape: FloatArray, rows: int, width: int) -> FloatArray:
    """float64[T] tiles of results of float64[T, 4] batch, m, n, k."""
    batch, m, n, _ = shape.T
    return batch * np.ceil(m / rows) * np.ceil(n / width)


def padded_elements(shape: FloatArray, tiles: Tiles, units: int) -> FloatArray:
    """float64[T] elements of the whole waves that results take, with the best of the tiles.

    Args:
        shape: float64[T, 4] batch, m, n, k.
        tiles: rows and columns of each.
        units: multiprocessors.
    """
    waves = [
        np.ceil(count_tiles(shape, rows, width) / units) * (rows * width * units)
        for rows, width in tiles
    ]
    return np.min(waves, axis=0)


@functools.cache
def waves_of(device: DeviceSpec) -> Mapping[str, Kernels]:
    """By the types that were measured."""
    found: dict[str, dict[str, Waves]] = {}
    for row in fit_rows("waves", device):
        found.setdefault(row["dtype"], {})[row["products"]] = _waves(row)
    return {
        dtype: Kernels(own.get("single") or own["all"], own.get("batched") or own["all"])
        for dtype, own in found.items()
    }


def _waves(row: Row) -> Waves:
    tiles = [tuple(map(int, tile.split("x"))) for tile in row["tiles"].split("+")]
    split = Split(float(row["split_depth"]), float(row["split_ratio"]), float(row["split_s"]))
    return Waves(
        int(row["units"]),
        tuple((rows, width) for rows, width in tiles),
        tuple(map(float, row["depth_s"].split("+"))),
        float(row["launch_s"]),
        float(row["byte_s"]),
        float(row["flop_s"]),
        float(row["element_s"]),
        split,
    )
