"""Seconds of products: of matrices, and convolutions."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.fits import fit_rows
from stablehlo_alpa.cost.kinds import FloatArray
from stablehlo_alpa.cost.waves import USUAL_TILES, padded_elements, waves_of

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

    def __call__(
        self, flops: FloatArray, num_bytes: FloatArray, dtype: str, device: DeviceSpec
    ) -> FloatArray:
        """float64[T] seconds; see `product_seconds`."""
        computed = flops / (self.efficiency * device.rate(dtype))
        return self.launch_s + np.maximum(computed, self.floor_s(num_bytes, device))

    def floor_s(self, num_bytes: FloatArray, device: DeviceSpec) -> FloatArray:
        """float64[T] seconds that products take for their bytes alone."""
        return num_bytes / (self.memory_efficiency * device.memory_bandwidth)


@functools.cache
def rooflines_of(device: DeviceSpec) -> Mapping[str, Roofline]:
    """By the types that were measured."""
    return {
        row["dtype"]: Roofline(
            float(row["launch_s"]), float(row["efficiency"]), float(row["memory_efficiency"])
        )
        for row in fit_rows("products", device)
    }


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
    return roofline_of(dtype, device)(flops, num_bytes, dtype, device)


def roofline_of(dtype: str, device: DeviceSpec) -> Roofline:
    """What products of a type reach on a device; types that were not measured are as the first."""
    own = rooflines_of(device)
    measured = _measured(dtype, device, own)
    return own[measured] if measured else next(iter(own.values()), Roofline())


def _measured(dtype: str, device: DeviceSpec, known: Collection[str]) -> str | None:
    """The measured type that is computed alike: itself, or one of the same rate."""
    own = "f8" if dtype.lower().startswith("f8") else dtype
    if own in known:
        return own
    rate = device.rate(dtype)
    return next((one for one in known if device.rate(one) == rate), None)


class ProductForm(IntEnum):
    """What decides, beside its shape, how fast the kernels of a product are."""

    USUAL = 0
    SUMS_IN_FRONT = 1
    """Sums run over the slower dimension of the matrices of both operands, as in the gradient of a
    parameter: units that take their operands along the sums have to transpose them."""
    CONVOLUTION = 2
    """Of single positions, of groups, or of windows with holes."""
    KERNEL_GRADIENT = 3
    """The gradient of its kernel: a convolution over the positions of its input."""
    WINDOWED = 4
    """Windows of neighbours that move by one, which libraries compute with fewer multiplications
    (Lavin and Gray, arXiv 1509.09308)."""
    WINDOWED_KERNEL_GRADIENT = 5
    STRIDED = 6
    """Windows that leave positions out, or, in gradients, meet zeros."""
    STRIDED_KERNEL_GRADIENT = 7
    FEW_CHANNELS = 8
    """A convolution whose input has fewer than eight channels, as the colours of an image."""
    FEW_CHANNELS_KERNEL_GRADIENT = 9


@functools.cache
def ratios_of(device: DeviceSpec) -> Mapping[str, FloatArray]:
    """By type, float64[10] seconds of products of each `ProductForm` for those of a usual one."""
    found: dict[str, FloatArray] = {}
    for row in fit_rows("forms", device):
        ratios = found.setdefault(row["dtype"], np.ones(len(ProductForm)))
        ratios[ProductForm[row["form"]]] = float(row["ratio"])
    return found


def padded_sums(
    shape: FloatArray, padding: FloatArray, dtype: str, device: DeviceSpec
) -> FloatArray:
    """Shapes of products as kernels of GPUs compute them: matrix units take channels in eights.

    Types without units of their own are computed as they are; XLA for TPU lays such channels out
    along other dimensions.

    Args:
        shape: float64[T, 4] batch, m, n, k on one device.
        padding: float64[T] how many times as long sums over channels are so.
        dtype: of the operands.
        device: what computes.
    """
    has_units = device.platform in ("cuda", "rocm") and device.rate(dtype) > device.flops["vector"]
    if not has_units or (padding == 1).all():
        return shape
    return np.column_stack([shape[:, :3], shape[:, 3] * padding])


def shaped_product_seconds(
    shape: FloatArray,
    num_bytes: FloatArray,
    dtype: str,
    device: DeviceSpec,
    form: npt.NDArray[np.int64] | None = None,
) -> FloatArray:
    """Seconds of products whose shapes are known.

    By what was fitted; where a device was not measured by shapes, by its best rate in whole waves
    of tiles (on H100 and B200, which were: 7 and 8 % off in bf16, fitted 3.5 and 3 %).
    Not less than what their bytes take: the shapes that were measured are those of products of
    matrices, bound by the units for the most part, and those of an attention are bound by memory.

    Args:
        shape: float64[T, 4] batch, m, n, k on one device.
        num_bytes: float64[T] read and written.
        dtype: of the operands.
        device: what computes.
        form: int64[T] `ProductForm` of each; usual ones without it.
    """
    known = waves_of(device)
    measured = _measured(dtype, device, known)
    moved = roofline_of(dtype, device).floor_s(num_bytes, device)
    if measured:
        seconds = known[measured](shape, num_bytes)
        ratios = None if form is None else ratios_of(device).get(measured)
        return np.maximum(seconds if ratios is None else ratios[form] * seconds, moved)
    flops = 2 * shape.prod(axis=1)
    if device.units:
        flops = 2 * padded_elements(shape, USUAL_TILES, device.units) * shape[:, 3]
    return product_seconds(flops, num_bytes, dtype, device)
