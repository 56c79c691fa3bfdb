"""The tables of ``benchmarks/measured`` as series of points."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import PRESETS, DeviceSpec
from stablehlo_alpa.cost.product import ProductForm, padded_sums

Array = npt.NDArray[np.float64]
Row = dict[str, str]

FOLDER = Path(__file__).resolve().parent / "measured"

LEAST_BYTES = 64 * 2**10
"""Smaller collectives are latency and noise; they are not judged."""

LATENCY_BYTES = 16 * 2**10
"""From here on they are fitted: what they show of the latency."""


def read(name: str) -> list[Row]:
    """The rows of a table."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def device_of(measured: str) -> DeviceSpec:
    """The preset of a measured device."""
    return next(one for one in PRESETS.values() if one.measured_as == measured)


@dataclass(frozen=True, eq=False)
class Series:
    """Collectives of one kind over groups of one size.

    Attributes:
        device, kind: as in the table.
        group_size: devices of a group.
        payload: float64[T] bytes per device, rising.
        seconds: float64[T].
        is_fitted: bool[T], every second point that is judged, and all that are smaller.
    """

    device: str
    kind: str
    group_size: int
    payload: Array
    seconds: Array
    is_fitted: npt.NDArray[np.bool_]


def collectives() -> list[Series]:
    """All series; patterns of permutes among as many devices are one."""
    patterns = _grouped(read("collectives"), "device", "kind", "group_size", "groups", "pattern")
    found: dict[tuple[Any, ...], list[tuple[Array, Array, npt.NDArray[np.bool_]]]] = {}
    for (device, kind, size, *_), rows in patterns.items():
        points = sorted((int(r["tensor_bytes"]), float(r["microseconds"])) for r in rows)
        payload, micros = np.array([p for p in points if p[0] >= LATENCY_BYTES], np.float64).T
        is_small = payload < LEAST_BYTES
        is_fitted = is_small | ((np.arange(len(payload)) - is_small.sum()) % 2 == 0)
        found.setdefault((device, kind, int(size)), []).append((payload, micros * 1e-6, is_fitted))
    return [
        Series(
            device,
            kind,
            size,
            np.concatenate([payload for payload, _, _ in parts]),
            np.concatenate([seconds for _, seconds, _ in parts]),
            np.concatenate([is_fitted for _, _, is_fitted in parts]),
        )
        for (device, kind, size), parts in found.items()
    ]


@dataclass(frozen=True, eq=False)
class Products:
    """Matrix products of one device and type.

    Attributes:
        device, dtype: of the operands, as StableHLO spells it.
        shape: float64[T, 4] batch, m, n, k.
        itemsizes: bytes of an element of the operands, and of the result.
        seconds: float64[T].
        is_fitted: bool[T], every second point.
        form: int64[T] `ProductForm` of each.
        harness_s: seconds that whoever measured adds to each.
        windows: float64[T] how often a convolution reads each element of its input; 1 of others.
        padding: float64[T] as of `cost.operators.Products`; 1 of others.
    """

    device: str
    dtype: str
    shape: Array
    itemsizes: tuple[int, int]
    seconds: Array
    is_fitted: npt.NDArray[np.bool_]
    form: npt.NDArray[np.int64]
    harness_s: float = 0.0
    windows: Array | float = 1.0
    padding: Array | float = 1.0

    def of(self, rows: npt.NDArray[np.bool_]) -> Products:
        """Some of them, bool[T]."""

        def some(values: Array | float) -> Array | float:
            return values[rows] if isinstance(values, np.ndarray) else values

        return replace(
            self,
            shape=self.shape[rows],
            seconds=self.seconds[rows],
            is_fitted=self.is_fitted[rows],
            form=self.form[rows],
            windows=some(self.windows),
            padding=some(self.padding),
        )

    @property
    def computed(self) -> Array:
        """float64[T, 4] shapes as kernels compute them."""
        padding = np.broadcast_to(self.padding, len(self.shape))
        return padded_sums(self.shape, padding, self.dtype, device_of(self.device))

    @property
    def flops(self) -> Array:
        """float64[T]."""
        return 2 * self.shape.prod(axis=1)

    @property
    def bytes(self) -> Array:
        """float64[T] read and written once."""
        batch, m, n, k = self.shape.T
        operand, result = self.itemsizes
        return batch * (operand * (m * k / self.windows + k * n) + result * m * n)


# By the kinds of `operators.csv`: what StableHLO calls the operator that decides, and bytes that
# its fusions read and write per byte of the operand.
_OPERATORS = {
    "add": ("stablehlo.add", 3),
    "scale": ("stablehlo.add", 2),
    "gelu": ("stablehlo.multiply", 2),
    "broadcast add": ("stablehlo.add", 2),
    "concatenate": ("stablehlo.concatenate", 4),
    "transpose": ("stablehlo.transpose", 2),
    "sum rows": ("stablehlo.reduce", 1),
    "sum columns": ("stablehlo.reduce", 1),
    "softmax": ("stablehlo.multiply", 2),
    "adam": ("stablehlo.add", 7),
    "gather": ("stablehlo.gather", 2),
    "scatter add": ("stablehlo.scatter", 2),
    "sort": ("stablehlo.sort", 2),
    "sort long": ("stablehlo.sort", 2),
    "top_k 8": ("chlo.top_k", 1),
    "rbg bits": ("stablehlo.rng_bit_generator", 1),
    "threefry bits": ("stablehlo.compare", 0.25),
}


@dataclass(frozen=True, eq=False)
class Operators:
    """An operator of a type in several sizes.

    Attributes:
        device, kind, dtype: as in the table.
        op: as StableHLO spells it.
        bytes: float64[T] read and written.
        seconds: float64[T].
    """

    device: str
    kind: str
    dtype: str
    op: str
    bytes: Array
    seconds: Array


def operators() -> list[Operators]:
    """The operators of which one rate says what there is to say."""
    found = []
    for (device, kind, dtype), rows in _grouped(
        read("operators"), "device", "kind", "dtype"
    ).items():
        if kind not in _OPERATORS:
            continue
        op, share = _OPERATORS[kind]
        size = share * _ITEMSIZES[dtype]
        moved = size * np.array([float(row["elements"]) for row in rows])
        micros = np.array([float(row["microseconds"]) for row in rows])
        found.append(Operators(device, kind, dtype, op, moved, micros * 1e-6))
    return found


_ITEMSIZES = {"f32": 4, "bf16": 2, "f16": 2}

HARNESS_S = 2.54e-6
"""What XLA's table of products adds to each: fitted together with the times of kernels that a
profiler saw on the same device (H100, bf16; `fit_prices.py` prints it)."""


def product_kernels() -> list[Products]:
    """Products as kernels, without what launching them takes."""
    found = []
    for (device, dtype), rows in _grouped(read("product_kernels"), "device", "dtype").items():
        shape = np.array([[int(row[k]) for k in ("batch", "m", "n", "k")] for row in rows], float)
        micros = np.array([float(row["microseconds"]) for row in rows])
        size = _ITEMSIZES[dtype]
        is_fitted = np.arange(len(rows)) % 2 == 0
        is_front = np.array([row["layout"] == "tn" for row in rows])
        form = np.where(is_front, ProductForm.SUMS_IN_FRONT, ProductForm.USUAL)
        found.append(Products(device, dtype, shape, (size, size), micros * 1e-6, is_fitted, form))
    return found


def convolutions() -> list[Products]:
    """Convolutions, as the products that they are computed as."""
    found = []
    for (device, dtype), rows in _grouped(read("convolutions"), "device", "dtype").items():
        size = _ITEMSIZES[dtype]
        form = np.array([_convolution_form(row) for row in rows])
        shape = np.array([_convolution_shape(row) for row in rows])
        seconds = 1e-6 * np.array([float(row["microseconds"]) for row in rows])
        # Gradients of inputs of few channels are of no form of their own: those are judged only.
        is_usual = np.array(
            [int(row["inputs"]) >= CHANNELS or row["kind"] != "input gradient" for row in rows]
        )
        is_fitted = np.zeros(len(rows), bool)
        for one in set(form.tolist()):
            is_fitted[np.flatnonzero((form == one) & is_usual)[::2]] = True
        own = Products(device, dtype, shape, (size, size), seconds, is_fitted, form)
        windows = np.array([float(row["kernel"]) ** 2 for row in rows])
        padding = np.where(
            np.isin(form, FEW_CHANNELS), [CHANNELS / int(row["inputs"]) for row in rows], 1.0
        )
        found.append(replace(own, windows=windows, padding=padding))
    return found


CHANNELS = 8
"""Of fewer a convolution is of few; see ``cpp/analysis/ProductShape.h``."""

FEW_CHANNELS = (ProductForm.FEW_CHANNELS, ProductForm.FEW_CHANNELS_KERNEL_GRADIENT)


def _convolution_form(row: Row) -> ProductForm:
    """What it is to prices; see ``cpp/analysis/ProductShape.h``."""
    is_gradient = row["kind"] == "kernel gradient"
    if int(row["inputs"]) < CHANNELS and row["kind"] != "input gradient":
        return FEW_CHANNELS[is_gradient]
    if int(row["stride"]) > 1:
        return ProductForm.STRIDED_KERNEL_GRADIENT if is_gradient else ProductForm.STRIDED
    if int(row["kernel"]) > 1:
        return ProductForm.WINDOWED_KERNEL_GRADIENT if is_gradient else ProductForm.WINDOWED
    return ProductForm.KERNEL_GRADIENT if is_gradient else ProductForm.CONVOLUTION


def _convolution_shape(row: Row) -> tuple[float, ...]:
    """1, m, n, k; see ``cpp/analysis/ProductShape.h``."""
    names = ("batch", "size", "inputs", "outputs", "kernel", "stride")
    batch, size, inputs, outputs, kernel, stride = (float(row[name]) for name in names)
    positions, window = batch * (size // stride) ** 2, kernel**2
    if row["kind"] == "kernel gradient":
        return 1, inputs * window, outputs, positions
    if row["kind"] == "input gradient":
        return 1, batch * size**2, inputs, outputs * window / stride**2
    return 1, positions, outputs, inputs * window


def products() -> list[Products]:
    """XLA's table of products; mixtures of types of eight bits are one type, f8."""
    rows = read("products")
    for row in rows:
        operands, row["result"] = row["dtypes"].split("->")
        left = operands.split("x")[0]
        row["dtype"] = "f8" if left.startswith("f8") else left
    return [
        _products(device, dtype, chosen)
        for (device, dtype), chosen in _grouped(rows, "device", "dtype").items()
    ]


def _products(device: str, dtype: str, rows: list[Row]) -> Products:
    shape = np.array([[int(row[k]) for k in ("batch", "m", "n", "k")] for row in rows], np.float64)
    rate = np.array([float(row["tflops"]) for row in rows]) * 1e12
    itemsize = {"f32": 4, "bf16": 2, "f8": 1}
    return Products(
        device,
        dtype,
        shape,
        (itemsize[dtype], itemsize[rows[0]["result"]]),
        2 * shape.prod(axis=1) / rate,
        np.arange(len(rows)) % 2 == 0,
        np.full(len(rows), ProductForm.USUAL),
        HARNESS_S,
    )


def _grouped(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found
