"""Seconds of operators by what they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.fits import is_measured
from stablehlo_alpa.cost.kinds import FloatArray
from stablehlo_alpa.cost.product import PRODUCTS, product_seconds, roofline_of

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


def operator_seconds(
    ops: Sequence[str],
    dtypes: Sequence[str],
    counts: npt.NDArray[np.int64],
    flops: FloatArray,
    num_bytes: FloatArray,
    device: DeviceSpec,
) -> FloatArray:
    """Seconds of the strategies of N operators.

    Products by `cost.product`; of everything else
    ``max(FLOPs / rate, bytes / (share * memory bandwidth))``. A device that was not measured takes
    its figures at their word: all shares are one.

    Args:
        ops: N names of operators.
        dtypes: N element types.
        counts: int64[N] strategies of each.
        flops: float64[S] of each strategy.
        num_bytes: float64[S] likewise.
        device: what computes.

    Returns:
        float64[S].
    """
    known = SHARES if is_measured(device) else {}
    shares = np.array([known.get(op, 1.0) for op in ops])
    rates = np.array([device.rate(dtype) for dtype in dtypes])
    seconds: FloatArray = np.maximum(
        flops / np.repeat(rates, counts),
        num_bytes / (np.repeat(shares, counts) * device.memory_bandwidth),
    )
    names = np.array(
        [dtype if op in PRODUCTS else "" for op, dtype in zip(ops, dtypes, strict=True)]
    )
    for dtype in set(names.tolist()) - {""}:
        rows = np.repeat(names == dtype, counts)
        seconds[rows] = product_seconds(flops[rows], num_bytes[rows], dtype, device)
    return seconds


def work_seconds(
    dtypes: Sequence[str], flops: FloatArray, num_bytes: FloatArray, device: DeviceSpec
) -> FloatArray:
    """Seconds of N operators of which only the volumes are known: at the efficiency of products.

    What has FLOPs and is no product reads more than it computes, so that it does not matter.

    Args:
        dtypes: element types, empty of what has no FLOPs.
        flops: float64[N].
        num_bytes: float64[N].
        device: what computes.
    """
    rates = np.array([roofline_of(one, device).efficiency * device.rate(one) for one in dtypes])
    return np.maximum(flops / rates, num_bytes / device.memory_bandwidth)
