"""What XLA's compilers for TPU say of single products and fusions, as constants of prices.

No TPU was measured: these are the estimates that the compilers schedule by. Products take the
cycles of their kernels (``estimated_cycles`` in the optimised program, which says nothing of
operands that are copied in beside the kernel before)::

    launch + tiles * (k d + A e)

with tiles of 8 x 128 numbers, A of them, d at the peak rate, and e for what a number of the result
takes. So do fusions: the share of the bandwidth of what reads and writes, and of what sums up. A
product whose shape is not known takes the shares of the data sheet that ``optimal_seconds`` counts
with.
"""

import math

import numpy as np
import numpy.typing as npt
from measurements import Array, Products, Row, read
from scipy.optimize import least_squares

from stablehlo_alpa.cluster import preset_for
from stablehlo_alpa.cost.product import ProductForm
from stablehlo_alpa.cost.waves import Waves

TILE = (8, 128)
"""Numbers of 32 bits of a register."""

# FLOPs of a cycle: 8 units of 128 x 128, 4 such, 4 of 256 x 256.
_CYCLE_FLOPS = {"tpu-v5p": 2 * 8 * 128**2, "tpu-v5e": 2 * 4 * 128**2, "tpu-v6e": 2 * 4 * 256**2}

# Logarithmic deviations beyond which a product counts as an outlier.
_SPREAD = 0.1


def products() -> list[Products]:
    """The products of each kind of TPU."""
    found = []
    for device, flops in _CYCLE_FLOPS.items():
        rows = [row for row in read("tpu_products") if row["device"] == device]
        shape = np.array([[int(row[k]) for k in ("batch", "m", "n", "k")] for row in rows], float)
        clock = preset_for(device).rate("bf16") / flops
        seconds = np.array([int(row["cycles"]) for row in rows]) / clock
        is_fitted = np.arange(len(rows)) % 2 == 0
        form = np.full(len(rows), ProductForm.USUAL)
        found.append(Products(device, "bf16", shape, (2, 2), seconds, is_fitted, form))
    return found


def fit(one: Products) -> Waves:
    """The constants of a kind of TPU, on the products that are fitted."""
    depth_s = 2 * math.prod(TILE) / preset_for(one.device).rate(one.dtype)
    shape, seconds = one.shape[one.is_fitted], one.seconds[one.is_fitted]

    def waves(logs: Array) -> Waves:
        launch_s, element_s = np.exp(logs).tolist()
        return Waves(1, (TILE,), (depth_s,), launch_s, 0.0, 0.0, element_s)

    def deviations(logs: Array) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = np.log(waves(logs)(shape, np.zeros(len(shape))) / seconds)
        return found

    begin = np.log([1e-6, 2e-12])
    return waves(least_squares(deviations, begin, loss="soft_l1", f_scale=_SPREAD).x)


def streams() -> list[list[object]]:
    """Rows of shares of the memory bandwidth: device, operator, type, share."""
    rows: list[list[object]] = []
    for row in read("tpu_streams"):
        device, flops = preset_for(row["device"]), _CYCLE_FLOPS[row["device"]]
        seconds = int(row["cycles"]) * flops / device.rate("bf16")
        num_tensors = 2 if row["operator"] == "addition" else 1
        size = {"f32": 4, "bf16": 2}[row["dtype"]] * num_tensors * int(row["elements"])
        share = size / seconds / device.memory_bandwidth
        rows.append([device.name, row["operator"], row["dtype"], f"{share:.3f}"])
    return rows


def shares(device: str) -> tuple[float, float]:
    """Of the peak rate and of the memory bandwidth that XLA counts with, at most all."""
    product, addition = (_rate(device, operator) for operator in ("product", "addition"))
    preset = preset_for(device)
    return min(product / preset.rate("bf16"), 1.0), min(addition / preset.memory_bandwidth, 1.0)


def _rate(device: str, operator: str) -> float:
    """FLOPs or bytes per second."""
    row: Row = next(
        row for row in read("tpu_rates") if (row["device"], row["operator"]) == (device, operator)
    )
    return float(row["flops"] or row["bytes"]) / float(row["optimal_us"]) * 1e6
