"""Seconds of operators by what they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.fits import is_measured
from stablehlo_alpa.cost.kinds import FloatArray
from stablehlo_alpa.cost.product import PRODUCTS, product_seconds, shaped_product_seconds

# Share of the memory bandwidth that operators with an access of their own reach.
# Sort: 29.4e9 keys of 32 bits a second on an A100 of 1555 GB/s (Adinets, Merrill, "Onesweep",
# 2022), 0.15 of what reading and writing the keys once would reach. Gather, scatter: a part of each
# memory sector is used (heuristic). Random bits: a counter-based generator (Salmon et al.,
# "Parallel random numbers: as easy as 1, 2, 3", SC'11) computes some ten integer operations for a
# byte, about as long as the byte takes to be written (heuristic).
SHARES: Mapping[str, float] = MappingProxyType(
    {
        "stablehlo.sort": 0.15,
        "chlo.top_k": 0.15,
        "stablehlo.gather": 0.5,
        "stablehlo.dynamic_gather": 0.5,
        "stablehlo.scatter": 0.5,
        "stablehlo.select_and_scatter": 0.5,
        "stablehlo.rng": 0.5,
        "stablehlo.rng_bit_generator": 0.5,
    }
)

STREAMED = 0.9
"""Share of the memory bandwidth that fusions reach which read and write tensors from end to end:
what large products of bf16 on H100 that are bound by it do (`cost/fits/products.csv`)."""


@dataclass(frozen=True, eq=False)
class Products:
    """The products among T operators, or strategies of them.

    Attributes:
        rows: int64[R] which they are.
        shape: float64[R, 4] batch, m, n, k on one device.
        runs: float64[R] how often each runs.
        bytes: float64[R] read and written by the product itself in all its runs; the rest of a
            strategy's bytes are those of operators that follow it.
    """

    rows: npt.NDArray[np.int64]
    shape: FloatArray
    runs: FloatArray
    bytes: FloatArray


def operator_seconds(
    ops: Sequence[str],
    dtypes: Sequence[str],
    counts: npt.NDArray[np.int64],
    flops: FloatArray,
    num_bytes: FloatArray,
    device: DeviceSpec,
    products: Products | None = None,
) -> FloatArray:
    """Seconds of the strategies of N operators.

    Products by `cost.product`, and behind them what follows; of everything else
    ``max(FLOPs / rate, bytes / (share * memory bandwidth))``. A device that was not measured takes
    its figures at their word: all shares are one.

    Args:
        ops: N names of operators.
        dtypes: N element types, empty of what has no FLOPs.
        counts: int64[N] strategies of each.
        flops: float64[S] of each strategy.
        num_bytes: float64[S] likewise.
        device: what computes.
        products: shapes of the products among the strategies; None where they are not known:
            products are priced by their volumes then.

    Returns:
        float64[S].
    """
    streamed = STREAMED if is_measured(device) else 1.0
    known = SHARES if is_measured(device) else {}
    shares = np.array([known.get(op, streamed) for op in ops])
    rates = np.array([device.rate(dtype) for dtype in dtypes])
    seconds: FloatArray = np.maximum(
        flops / np.repeat(rates, counts),
        num_bytes / (np.repeat(shares, counts) * device.memory_bandwidth),
    )
    kinds = np.array(dtypes)
    if products is not None:
        kinds = np.repeat(kinds, counts)[products.rows]
        behind = num_bytes[products.rows] - products.bytes
        for dtype in set(kinds.tolist()):
            own = kinds == dtype
            runs = products.runs[own]
            each = shaped_product_seconds(
                products.shape[own], products.bytes[own] / runs, dtype, device
            )
            follow = behind[own] / (streamed * device.memory_bandwidth)
            seconds[products.rows[own]] = runs * each + follow
        return seconds
    kinds[[op not in PRODUCTS for op in ops]] = ""
    for dtype in set(kinds.tolist()) - {""}:
        rows = np.repeat(kinds == dtype, counts)
        seconds[rows] = product_seconds(flops[rows], num_bytes[rows], dtype, device)
    return seconds
