"""Fits of products on ``benchmarks/measured``: by volumes, by shapes, and by forms."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import fit_tpus
import numpy as np
import numpy.typing as npt
from measurements import (
    FEW_CHANNELS,
    Array,
    Products,
    convolutions,
    device_of,
    product_kernels,
    products,
    read,
)
from scipy.optimize import least_squares

from stablehlo_alpa.calibration.fitting import mean_error
from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.product import ProductForm, Roofline, shaped_product_seconds
from stablehlo_alpa.cost.waves import USUAL_TILES, Kernels, Split, Tiles, Waves

# Kernels of their own for batches have as many constants again.
_KERNELS_GAIN = 0.15

# Those of libraries, and with kernels for few rows beside them, which have to take this much of the
# error away.
_TILES: tuple[Tiles, ...] = (USUAL_TILES, (*USUAL_TILES, (32, 128)))
_TILES_GAIN = 0.1

# Length of sums, and length per tile, from which on they may be split: none, or as libraries do
# (heuristic; the fit chooses). Each splits more sums than the one before it, and has to take this
# much of the error away: few of the fitted products tell one from the other.
_SPLITS = ((np.inf, 0.0), (2048.0, 256.0), (2048.0, 128.0), (2048.0, 64.0))
_SPLITS_GAIN = 0.02

# Where searches begin: share of the bytes' seconds and of the FLOPs' that comes on top of waves,
# and share of the peak rate that these reach.
_STARTS = ((0.3, 0.2, 0.7), (0.3, 0.2, 0.9), (0.3, 0.02, 0.9), (0.01, 0.2, 0.9), (0.01, 0.02, 0.5))

# Logarithmic deviations beyond which a product counts as an outlier, and how much constants that
# the products say nothing of are held where the search begins.
_SPREAD, _TIE = 0.03, 0.003

# Rows, columns and sums that a library pads to take are not what most of a form take.
_LEAST_SIZE = 16


def measured_products() -> list[list[Products]]:
    """Of each device and type: the usual products of its table, where it has one, and kernels."""
    found = [[one, *usual_kernels(one)] for one in products()]
    in_tables = {(parts[0].device, parts[0].dtype) for parts in found}
    alone = [one for one in product_kernels() if (one.device, one.dtype) not in in_tables]
    return found + [usual_kernels(one) for one in alone]


def fit_roofline(one: Products) -> Roofline:
    """What products reach by their volumes."""
    device, fitted = device_of(one.device), one.is_fitted
    rate = one.flops / device.rate(one.dtype)
    moved = one.bytes / device.memory_bandwidth
    grid = itertools.product(
        np.arange(0.5, 7, 0.5) * 1e-6, np.arange(0.5, 1, 0.02), np.arange(0.4, 1.01, 0.1)
    )
    best = min(
        grid,
        key=lambda c: mean_error(
            one.harness_s + c[0] + np.maximum(rate / c[1], moved / c[2])[fitted],
            one.seconds[fitted],
        ),
    )
    return Roofline(*map(float, best))


def rooflines() -> list[list[object]]:
    """Rows of what products of a type reach by their volumes."""
    rows: list[list[object]] = []
    for one, *_ in measured_products():
        device, held, found = device_of(one.device), ~one.is_fitted, fit_roofline(one)
        seconds = one.harness_s + found(one.flops, one.bytes, one.dtype, device)
        error = mean_error(seconds[held], one.seconds[held])
        numbers = [f"{found.efficiency:.2f}", f"{found.memory_efficiency:.2f}", f"{error:.3f}"]
        rows.append([one.device, one.dtype, short(found.launch_s), *numbers])
    # Of the others only what large products reach is known; the rest is as on H100.
    like = next(row for row in rows if row[:2] == ["H100", "bf16"])
    for row in read("best_products"):
        rows.append([row["device"], row["dtype"], like[2], row["efficiency"], like[4], ""])
    for one in fit_tpus.products():
        reached = fit_tpus.fit(one).launch_s, *fit_tpus.shares(one.device)
        rows.append([one.device, one.dtype, *map(short, reached), ""])
    return rows


def waves() -> list[list[object]]:
    """Rows of what products of a type take by their shapes; kernels are fitted along."""
    rows: list[list[object]] = []
    for parts in measured_products():
        found = fit_shapes(parts)
        kinds = {"single": found.single, "batched": found.batched}
        if found.single == found.batched:
            kinds = {"all": found.single}
        points = _Points.of(parts[:1])
        error = points.where(~points.is_fitted).error(found)
        rows += [_waves_row(parts[0], kind, waves, error) for kind, waves in kinds.items()]
    for one in fit_tpus.products():
        waves, held = fit_tpus.fit(one), ~one.is_fitted
        error = mean_error(waves(one.shape[held], one.bytes[held]), one.seconds[held])
        # Products of f32 run in one pass of bf16.
        rows += [_waves_row(replace(one, dtype=t), "all", waves, error) for t in ("bf16", "f32")]
    return rows


def usual_kernels(like: Products) -> list[Products]:
    """Products in rows that were measured as kernels, on the same device and of the same type."""
    return [
        one.of(one.form == ProductForm.USUAL)
        for one in product_kernels()
        if (one.device, one.dtype) == (like.device, like.dtype)
    ]


def forms() -> list[list[object]]:
    """Rows of how much longer products of other forms take than usual ones of their shapes."""
    rows: list[list[object]] = []
    for one in [*product_kernels(), *convolutions()]:
        priced = shaped_product_seconds(one.computed, one.bytes, one.dtype, device_of(one.device))
        for form in sorted(set(one.form.tolist()) - {ProductForm.USUAL}):
            own = one.form == form
            fitted = own & one.is_fitted & (one.shape[:, 1:].min(axis=1) >= _LEAST_SIZE)
            if form in FEW_CHANNELS:
                # Of two points at most, one of them bound by its launches, the longer counts more.
                ratio = float(one.seconds[fitted].sum() / priced[fitted].sum())
            else:
                # The least mean error would be low: what is priced too long weighs more in it.
                ratio = float(np.median(one.seconds[fitted] / priced[fitted]))
            held = own & ~one.is_fitted
            error = (
                f"{mean_error(ratio * priced[held], one.seconds[held]):.3f}" if held.any() else ""
            )
            rows.append([one.device, one.dtype, ProductForm(form).name, f"{ratio:.3f}", error])
    return rows


@dataclass(frozen=True, eq=False)
class _Points:
    """Products that are fitted together.

    Attributes:
        device, dtype: of all of them.
        shape: float64[T, 4] batch, m, n, k.
        bytes: float64[T] read and written.
        floor_s: float64[T] seconds of these alone, which no product is below.
        added_s: float64[T] seconds that whoever measured adds.
        seconds: float64[T].
        is_fitted: bool[T].
    """

    device: DeviceSpec
    dtype: str
    shape: Array
    bytes: Array
    floor_s: Array
    added_s: Array
    seconds: Array
    is_fitted: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, parts: list[Products]) -> _Points:
        device, reached = device_of(parts[0].device), fit_roofline(parts[0])
        return cls(
            device,
            parts[0].dtype,
            np.concatenate([part.shape for part in parts]),
            np.concatenate([part.bytes for part in parts]),
            np.concatenate([reached.floor_s(part.bytes, device) for part in parts]),
            np.concatenate([np.full(len(part.shape), part.harness_s) for part in parts]),
            np.concatenate([part.seconds for part in parts]),
            np.concatenate([part.is_fitted for part in parts]),
        )

    def where(self, rows: npt.NDArray[np.bool_]) -> _Points:
        """Some of them, bool[T]."""
        return replace(
            self,
            shape=self.shape[rows],
            bytes=self.bytes[rows],
            floor_s=self.floor_s[rows],
            added_s=self.added_s[rows],
            seconds=self.seconds[rows],
            is_fitted=self.is_fitted[rows],
        )

    def ratios(self, kernels: Kernels | Waves) -> Array:
        """float64[T] predicted seconds for the measured ones."""
        own = np.maximum(kernels(self.shape, self.bytes), self.floor_s)
        found: Array = (self.added_s + own) / self.seconds
        return found

    def error(self, kernels: Kernels | Waves) -> float:
        """Mean relative error."""
        return float(np.abs(self.ratios(kernels) - 1).mean())


def fit_shapes(parts: list[Products]) -> Kernels:
    """The waves of a type, with kernels of their own for batches where that is worth it."""
    points = _Points.of(parts)
    fitted = points.where(points.is_fitted)
    is_batch = fitted.shape[:, 0] > 1
    whole = fit_waves(fitted)
    alone = Kernels(whole, whole)
    if is_batch.all() or not is_batch.any():
        return alone
    apart = Kernels(fit_waves(fitted.where(~is_batch)), fit_waves(fitted.where(is_batch)))
    gain = 1 - fitted.error(apart) / fitted.error(alone)
    return apart if gain >= _KERNELS_GAIN else alone


def fit_waves(points: _Points) -> Waves:
    """The waves of some products, by the tiles and the rule of splitting sums that fit best."""
    best, least = None, np.inf
    for tiles in _TILES:
        found, error = _with_tiles(points, tiles)
        if error < (1 - _TILES_GAIN) * least:
            best, least = found, error
    assert best is not None
    return best


def _with_tiles(points: _Points, tiles: Tiles) -> tuple[Waves, float]:
    best, least = None, np.inf
    for depth, ratio in _SPLITS:
        waves, error = min(
            (_searched(points, tiles, depth, ratio, start) for start in _STARTS),
            key=lambda found: found[1],
        )
        if error < (1 - _SPLITS_GAIN) * least:
            best, least = waves, error
    assert best is not None
    return best, least


def _searched(
    points: _Points, tiles: Tiles, depth: float, ratio: float, start: tuple[float, float, float]
) -> tuple[Waves, float]:
    """What a search finds from a start, and its mean relative error."""
    device, (moved, counted, reached) = points.device, start
    peak = device.rate(points.dtype)
    area = np.array([rows * width * device.units for rows, width in tiles])
    begin = np.log(
        [
            3e-6,
            moved / device.memory_bandwidth,
            counted / peak,
            4e-13,
            5e-7,
            *2 * area / (reached * peak),
        ]
    )

    def waves(logs: Array) -> Waves:
        launch, byte, flop, element, adding, *depths = np.exp(logs).tolist()
        split = Split(depth, ratio, adding) if np.isfinite(depth) else Split()
        return Waves(device.units, tiles, tuple(depths), launch, byte, flop, element, split)

    def deviations(logs: Array) -> Array:
        return np.concatenate([np.log(points.ratios(waves(logs))), _TIE * (logs - begin)])

    found = waves(least_squares(deviations, begin, loss="soft_l1", f_scale=_SPREAD, max_nfev=100).x)
    return found, points.error(found)


def _waves_row(one: Products, kind: str, waves: Waves, error: float) -> list[object]:
    split = waves.split
    return [
        one.device,
        one.dtype,
        kind,
        waves.units,
        "+".join(f"{rows}x{width}" for rows, width in waves.tiles),
        "+".join(map(short, waves.depth_s)),
        *map(short, (waves.launch_s, waves.byte_s, waves.flop_s, waves.element_s)),
        *map(short, (split.depth, split.ratio, split.seconds)),
        f"{error:.3f}",
    ]


def short(number: float) -> str:
    """As tables have numbers."""
    return f"{number:.4g}"
