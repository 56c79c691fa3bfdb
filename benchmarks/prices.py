"""Errors of the shipped prices of collectives and products, on points that were not fitted."""

from dataclasses import replace

import fit_tpus
import numpy as np
import report
from fit_prices import fit_series
from fit_products import fit_shapes, measured_products
from measurements import (
    LEAST_BYTES,
    Products,
    Series,
    collectives,
    convolutions,
    device_of,
    operators,
    product_kernels,
)

from stablehlo_alpa.calibration.fitting import mean_error
from stablehlo_alpa.cluster import ClusterSpec, Group, preset_for
from stablehlo_alpa.cost import (
    CollectiveKind,
    group_seconds,
    operator_seconds,
    product_seconds,
    shaped_product_seconds,
)
from stablehlo_alpa.cost.product import ProductForm
from stablehlo_alpa.cost.waves import waves_of

COLLECTIVES_BAR = 0.10
PRODUCTS_BAR = 0.07

# Doublings of a size over which deviations of products are alike, and the variance of their noise
# in that of what is alike: those that do best on H100 in f32 on either half.
_REACH, _NOISE = 2.5, 0.45


def collective_error(one: Series) -> float:
    """Mean error of the points of a series that were not fitted."""
    cluster = ClusterSpec(device_of(one.device), 1, max(one.group_size, 8))
    held = ~one.is_fitted
    group = Group(one.group_size, per_domain=one.group_size)
    kind = CollectiveKind[one.kind.upper()]
    return mean_error(group_seconds(kind, group, one.payload[held], cluster), one.seconds[held])


def scatter(one: Series) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """By how much points stand off the line through their neighbours in size, corners included.

    Of three points that scatter alike the middle one stands off by sqrt(1.5) times as much as it
    scatters: what is left is what a price misses that is smooth in the size, and known exactly.
    """
    sizes, logs = one.payload, np.log(one.seconds)
    steps = sizes[1:] / sizes[:-1]
    is_judged = np.isclose(steps[1:], steps[:-1], rtol=0.05) & (sizes[:-2] >= LEAST_BYTES)
    off = np.abs(logs[1:-1] - (logs[:-2] + logs[2:]) / 2)
    found: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = off[is_judged] / np.sqrt(1.5)
    return found


Judged = tuple[Series, float, int]
"""A series, its mean error, and on how many points."""


def mean(chosen: list[Judged]) -> float:
    """Over all points."""
    return sum(e * n for _, e, n in chosen) / sum(n for _, _, n in chosen)


def exchanged() -> list[Judged]:
    """The other half of the points fitted, and judged by the half that prices are fitted on."""
    found = []
    swapped = [
        replace(one, is_fitted=~one.is_fitted | (one.payload < LEAST_BYTES))
        for one in collectives()
    ]
    for series, curves in fit_series(swapped):
        for size, one in series.items():
            held = ~one.is_fitted
            error = mean_error(curves[size](one.payload[held]), one.seconds[held])
            found.append((one, error, int(held.sum())))
    return found


def collective_rows() -> list[report.Row]:
    """Mean errors by device and by group size, and over all."""
    series = collectives()
    errors = [(one, collective_error(one), int((~one.is_fitted).sum())) for one in series]
    others = exchanged()
    rows = [report.limited("collectives, all", mean(errors), "", bar=COLLECTIVES_BAR)]
    for device in dict.fromkeys(one.device for one in series):
        own = [entry for entry in errors if entry[0].device == device]
        rows.append(report.limited(f"collectives, {device}", mean(own), "", bar=COLLECTIVES_BAR))
        other = [entry for entry in others if entry[0].device == device]
        rows.append(report.measured(f"halves exchanged, collectives, {device}", mean(other), ""))
        for size in sorted({entry[0].group_size for entry in own}):
            of_size = [entry for entry in own if entry[0].group_size == size]
            name = f"collectives, {device}, groups of {size}"
            rows.append(report.limited(name, mean(of_size), "", bar=COLLECTIVES_BAR))
            other = [o for o in others if (o[0].device, o[0].group_size) == (device, size)]
            rows.append(report.measured(f"halves exchanged, {name}", mean(other), ""))
            off = np.concatenate([scatter(one) for one, _, _ in of_size])
            rows.append(report.measured(f"scatter of {name}", float(off.mean()), ""))
    return rows


def product_rows(parts: list[Products], quick: bool) -> list[report.Row]:
    """Errors of prices by shape, by volumes, and of the data sheet, on the first of the parts.

    Args:
        parts: as `measured_products` has them.
        quick: nothing is fitted anew.
    """
    one, *_ = parts
    device, held = device_of(one.device), ~one.is_fitted
    shape, flops, moved = one.shape[held], one.flops[held], one.bytes[held]
    seconds = one.seconds[held]
    shaped = one.harness_s + shaped_product_seconds(shape, moved, one.dtype, device)
    by_volume = one.harness_s + product_seconds(flops, moved, one.dtype, device)
    sheet = flops / device.rate(one.dtype)
    name = f"products, {one.device}, {one.dtype}"
    wide, tall = transposed_pairs(one)
    difference = float(np.abs(np.log(wide / tall)).mean()) if wide.size else 0.0
    return [
        report.limited(f"{name}, by shape", mean_error(shaped, seconds), "", bar=PRODUCTS_BAR),
        report.measured(f"{name}, by volume", mean_error(by_volume, seconds), ""),
        report.measured(f"{name}, by the peak rate", mean_error(sheet, seconds), ""),
        report.measured(f"{name}, transposed results", difference, ""),
        report.measured(f"{name}, with any smooth correction", corrected_error(one), ""),
        *([] if quick else [exchanged_row(name, parts)]),
    ]


def exchanged_row(name: str, parts: list[Products]) -> report.Row:
    """The error of prices by shape that are fitted on the other half of the points."""
    one, *_ = others = [replace(part, is_fitted=~part.is_fitted) for part in parts]
    held = ~one.is_fitted
    found = one.harness_s + fit_shapes(others)(one.shape[held], one.bytes[held])
    error = mean_error(found, one.seconds[held])
    return report.measured(f"{name}, halves exchanged", error, "")


def corrected_error(one: Products) -> float:
    """Of prices by shape with a correction that is smooth in the logarithm of each size.

    The deviations of what is fitted are spread to their neighbours (Gaussian process, the same for
    m by n and n by m): no law of the sizes that does not jump between them does better by much.
    """
    device, fitted = device_of(one.device), one.is_fitted
    priced = one.harness_s + shaped_product_seconds(one.shape, one.bytes, one.dtype, device)
    size, off = np.log2(one.shape), np.log(one.seconds / priced)
    near = sum(
        np.exp(-((size[:, None] - other[None]) ** 2).sum(axis=2) / 2 / _REACH**2)
        for other in (size, size[:, [0, 2, 1, 3]])
    )
    inner = near[np.ix_(fitted, fitted)] + _NOISE * np.eye(int(fitted.sum()))
    correction = near[:, fitted] @ np.linalg.solve(inner, off[fitted])
    return mean_error((priced * np.exp(correction))[~fitted], one.seconds[~fitted])


def transposed_pairs(one: Products) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of m by n and of n by m: a price that is the same for both misses half between."""
    seconds = dict(zip(map(tuple, one.shape.tolist()), one.seconds.tolist(), strict=True))
    pairs = [
        (seconds[b, m, n, k], seconds[b, n, m, k])
        for b, m, n, k in seconds
        if m < n and (b, n, m, k) in seconds
    ]
    wide, tall = np.array(pairs).reshape(-1, 2).T
    return wide, tall


def kernel_rows(one: Products) -> list[report.Row]:
    """Errors by form on what was measured as kernels, of models' and of odd shapes."""
    rows = []
    for form in sorted(set(one.form.tolist())):
        own = one.of((one.form == form) & ~one.is_fitted)
        if not own.seconds.size:
            continue
        shaped = shaped_product_seconds(
            own.computed, own.bytes, own.dtype, device_of(own.device), own.form
        )
        name = ProductForm(form).name.lower().replace("_", " ")
        error = mean_error(shaped, own.seconds)
        rows.append(report.measured(f"kernels, {own.device}, {own.dtype}, {name}", error, ""))
    return rows


def tpu_rows(one: Products) -> list[report.Row]:
    """Errors on products of a TPU, against the cycles that XLA's compiler for it counts."""
    device, held = preset_for(one.device), ~one.is_fitted
    seconds = waves_of(device)[one.dtype](one.shape[held], one.bytes[held])
    peak = one.flops[held] / device.rate(one.dtype)
    name = f"products, {one.device}, {one.dtype}, by XLA's estimates"
    return [
        report.measured(f"{name}, by shape", mean_error(seconds, one.seconds[held]), ""),
        report.measured(f"{name}, by the peak rate", mean_error(peak, one.seconds[held]), ""),
    ]


def operator_rows() -> list[report.Row]:
    """Errors on operators by kind, from a MiB on; one rate of each is all that is fitted."""
    rows = []
    for one in operators():
        large = one.bytes >= 2**20
        seconds = operator_seconds(
            [one.op],
            [one.dtype],
            np.array([int(large.sum())]),
            np.zeros(int(large.sum())),
            one.bytes[large],
            device_of(one.device),
            kernels=np.ones(1),
        )
        error = mean_error(seconds, one.seconds[large])
        rows.append(report.measured(f"{one.kind}, {one.device}, {one.dtype}", error, ""))
    return rows


def measure(quick: bool) -> list[report.Row]:
    """All rows; quick, without those of products that are fitted on the other half."""
    return [
        *collective_rows(),
        *(row for parts in measured_products() for row in product_rows(parts, quick)),
        *(row for one in [*product_kernels(), *convolutions()] for row in kernel_rows(one)),
        *(row for one in fit_tpus.products() for row in tpu_rows(one)),
        *operator_rows(),
    ]


if __name__ == "__main__":
    report.main("Mean errors of prices on measurements that were not fitted", measure)
