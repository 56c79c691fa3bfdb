"""Seconds of operators by what they do."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.fits import is_measured
from stablehlo_alpa.cost.kinds import FloatArray
from stablehlo_alpa.cost.product import (
    PRODUCTS,
    padded_sums,
    product_seconds,
    shaped_product_seconds,
)
from stablehlo_alpa.cost.streams import HOST_MOVE, STREAMS, host_share, streams_of

STREAMED = 0.9
"""Share of the memory bandwidth of what reads and writes tensors from end to end."""

KERNEL_S = 1.2e-6
"""Seconds of the smallest kernel."""

# Shares of operators with an access of their own. All were measured on one H100, by the kernels
# that XLA makes of them (benchmarks/measured/operators.csv; benchmarks/prices.py says how far they
# are off), and are taken for other devices as well, of which nothing is known; random bits are
# those of the generator of the device. Scatters that add up in 16 bits compare and swap.
SHARES: Mapping[str, float] = MappingProxyType(
    {
        "stablehlo.sort": 0.05,
        "chlo.top_k": 0.03,
        "stablehlo.scatter": 0.8,
        "stablehlo.rng": 0.3,
        "stablehlo.rng_bit_generator": 0.3,
        # What is stored of comparisons are masks that are told from random bits (Threefry, one byte
        # for each of its words).
        "stablehlo.compare": 0.1,
    }
)
NARROW_SCATTER = 0.09


@dataclass(frozen=True, eq=False)
class Products:
    """The products among T operators, or strategies of them.

    Attributes:
        rows: int64[R] which they are.
        shape: float64[R, 4] batch, m, n, k on one device.
        runs: float64[R] how often each runs.
        bytes: float64[R] read and written by the product itself in all its runs; the rest of a
            strategy's bytes are those of operators that follow it.
        form: int64[R] `ProductForm` of each.
        padding: float64[R] how many times as much a kernel multiplies that takes the channels of a
            convolution in eights; 1 but of convolutions of few channels.
    """

    rows: npt.NDArray[np.int64]
    shape: FloatArray
    runs: FloatArray
    bytes: FloatArray
    form: npt.NDArray[np.int64]
    padding: FloatArray


def operator_seconds(
    ops: Sequence[str],
    dtypes: Sequence[str],
    counts: npt.NDArray[np.int64],
    flops: FloatArray,
    num_bytes: FloatArray,
    device: DeviceSpec,
    products: Products | None = None,
    kernels: FloatArray | None = None,
    streams: FloatArray | None = None,
) -> FloatArray:
    """Seconds of the strategies of N operators.

    Products by `cost.product`, and behind them what follows; of everything else
    ``kernels * KERNEL_S + max(FLOPs / rate, bytes / (share * memory bandwidth))``. A device that
    was not measured takes its figures at their word: all shares are one, kernels cost nothing. On a
    TPU there are two shares, of sums and of everything else, and kernels cost nothing.

    Args:
        ops: N names of operators.
        dtypes: N element types, empty of what has no FLOPs.
        counts: int64[N] strategies of each.
        flops: float64[S] of each strategy.
        num_bytes: float64[S] likewise.
        device: what computes.
        products: shapes of the products among the strategies; None where they are not known:
            products are priced by their volumes then.
        kernels: float64[N] launched for each, those of products included; None where that is not
            known.
        streams: float64[S, 5] of ``num_bytes`` those of each of `streams.STREAMS`; but for a TPU,
            those of what follows the operator. None where all that is no product moves as its
            operator does.

    Returns:
        float64[S].
    """
    known = is_measured(device)
    share = functools.partial(_share, device) if known else streams_of(device)
    shares = np.array([share(op, dtype) for op, dtype in zip(ops, dtypes, strict=True)])
    rates = np.array([device.rate(dtype) for dtype in dtypes])
    bandwidth = np.repeat(shares, counts) * device.memory_bandwidth
    apart_s = _apart_seconds(streams, bandwidth, device)
    seconds: FloatArray = np.maximum(
        flops / np.repeat(rates, counts), num_bytes / bandwidth + apart_s
    )
    launched: FloatArray = np.zeros(len(flops))
    if kernels is not None and known:
        launched = np.repeat(kernels, counts)
    seconds += KERNEL_S * launched
    kinds = np.array(list(dtypes), np.str_)
    if products is not None:
        products = _with_sums(products)
        rows = products.rows
        streamed = STREAMED * device.memory_bandwidth if known else bandwidth[rows]
        follow = (num_bytes[rows] - products.bytes) / streamed + apart_s[rows]
        behind = KERNEL_S * np.maximum(launched[rows] - products.runs, 0)
        own = _shaped_seconds(products, np.repeat(kinds, counts)[rows], device)
        seconds[rows] = own + follow + behind
        return seconds
    kinds[[op not in PRODUCTS for op in ops]] = ""
    for dtype in set(kinds.tolist()) - {""}:
        rows = np.repeat(kinds == dtype, counts)
        seconds[rows] = product_seconds(flops[rows], num_bytes[rows], dtype, device)
    return seconds


def _apart_seconds(
    streams: FloatArray | None, bandwidth: FloatArray, device: DeviceSpec
) -> FloatArray:
    """float64[S] seconds that what is told apart takes more than with its operator.

    Args:
        streams: float64[S, 5] bytes of each of `streams.STREAMS`.
        bandwidth: float64[S] bytes per second at the share of the operator.
        device: what computes.
    """
    if streams is None:
        return np.zeros(len(bandwidth))
    if is_measured(device):
        shares = np.array([_share(device, op, dtype) for op, dtype in STREAMS])
    else:
        shares = streams_of(device).each()
    own = streams @ (1 / (shares * device.memory_bandwidth))
    return np.asarray(own - streams.sum(axis=1) / bandwidth)


def _with_sums(products: Products) -> Products:
    """Without what multiplies nothing: a scatter, which adds."""
    chosen = products.shape[:, 3] >= 1
    return Products(
        products.rows[chosen],
        products.shape[chosen],
        products.runs[chosen],
        products.bytes[chosen],
        products.form[chosen],
        products.padding[chosen],
    )


def _shaped_seconds(
    products: Products, dtypes: npt.NDArray[np.str_], device: DeviceSpec
) -> FloatArray:
    """float64[R] seconds of products of types ``dtypes`` (str[R]) in all their runs."""
    seconds = np.zeros(len(products.rows))
    for dtype in set(dtypes.tolist()):
        own = dtypes == dtype
        runs = products.runs[own]
        seconds[own] = runs * shaped_product_seconds(
            padded_sums(products.shape[own], products.padding[own], dtype, device),
            products.bytes[own] / runs,
            dtype,
            device,
            products.form[own],
        )
    return seconds


def _share(device: DeviceSpec, op: str, dtype: str) -> float:
    if op == HOST_MOVE:
        return host_share(device, STREAMED)
    if op == "stablehlo.scatter" and dtype in ("bf16", "f16"):
        return NARROW_SCATTER
    return SHARES.get(op, STREAMED)
