"""Seconds of products that are computed beside the collectives before or behind them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh, Overlap
from stablehlo_alpa.cost.collective import added_seconds, collective_seconds
from stablehlo_alpa.cost.fits import is_measured
from stablehlo_alpa.cost.kinds import CollectiveKind, FloatArray
from stablehlo_alpa.cost.operators import KERNEL_S, STREAMED
from stablehlo_alpa.cost.product import shaped_product_seconds
from stablehlo_alpa.cost.streams import streams_of


@dataclass(frozen=True, eq=False)
class RingVolumes:
    """What R collectives, and the P products at them, would do block by block.

    Attributes:
        kind, axes: int64[R] of the collectives, each over one axis.
        bytes: float64[R] payload of the collective, per device.
        beside: int64[R] `Beside` of each.
        blocks: int64[R] n, devices of a group.
        added_bytes: float64[R] read and written to slice operands, to add up and to put results
            together.
        added_kernels: float64[R] launched for that.
        ring: int64[P] that the product is at.
        shape, block_shape: float64[P, 4] batch, m, n, k of the product and of that of a block.
        product_bytes, block_bytes: float64[P] read and written by each.
        dtype: str[P] of the operands.
    """

    kind: npt.NDArray[np.int64]
    axes: npt.NDArray[np.int64]
    bytes: FloatArray
    beside: npt.NDArray[np.int64]
    blocks: npt.NDArray[np.int64]
    added_bytes: FloatArray
    added_kernels: FloatArray
    ring: npt.NDArray[np.int64]
    shape: FloatArray
    block_shape: FloatArray
    product_bytes: FloatArray
    block_bytes: FloatArray
    dtype: npt.NDArray[np.str_]


@dataclass(frozen=True, eq=False)
class RingSeconds:
    """What each of R collectives takes with the products at it, one after the other or in blocks.

    Attributes:
        product_s, collective_s: float64[R] one after the other.
        blocks_s: float64[R] of the products in blocks, and of what that adds.
        exposed_s: float64[R] that the permutes add to it.
    """

    product_s: FloatArray
    collective_s: FloatArray
    blocks_s: FloatArray
    exposed_s: FloatArray

    @property
    def saved_s(self) -> FloatArray:
        """float64[R] what is saved in blocks; below zero where that takes longer."""
        return self.product_s + self.collective_s - self.blocks_s - self.exposed_s


def ring_seconds(
    found: RingVolumes, mesh: LogicalMesh, device: DeviceSpec, overlap: Overlap
) -> RingSeconds:
    r"""Prices collectives and products in both forms.

    In n blocks, the products of a block take c and a permute of it p seconds. Of the permute
    ``o = min(s p, c)`` runs beside the products, with the share s of `Overlap.products`, and slows
    them down by σ::

        n c + (n - 1) (p - o / σ) + slices, sums and updates

    References:
        Wang et al., "Overlap Communication with Dependent Computation via Decomposition in Large
        Deep Learning Models", ASPLOS 2023.

    Args:
        found: their volumes.
        mesh: the mesh.
        device: one of its devices.
        overlap: gives s and σ.
    """
    n = found.blocks.astype(np.float64)
    product = _product_seconds(found, found.shape, found.product_bytes, device)
    block = _product_seconds(found, found.block_shape, found.block_bytes, device)
    permute = np.full(len(n), int(CollectiveKind.COLLECTIVE_PERMUTE))
    permute_s = collective_seconds(permute, found.axes, found.bytes / n, mesh, device)
    hidden_s = np.minimum(overlap.products * permute_s, block)
    known = is_measured(device)
    streamed = STREAMED if known else streams_of(device)("stablehlo.add", "")
    added_s = found.added_bytes / (streamed * device.memory_bandwidth)
    if known:
        added_s += KERNEL_S * found.added_kernels
    collective_s = added_seconds(found.kind, found.axes, found.bytes, found.beside, mesh, device)
    exposed_s = (n - 1) * (permute_s - hidden_s / overlap.slowdown)
    return RingSeconds(product, collective_s, n * block + added_s, exposed_s)


def _product_seconds(
    found: RingVolumes, shape: FloatArray, num_bytes: FloatArray, device: DeviceSpec
) -> FloatArray:
    """float64[R] seconds of all products at each collective."""
    seconds = np.zeros(len(found.kind))
    for dtype in set(found.dtype.tolist()):
        own = found.dtype == dtype
        each = shaped_product_seconds(shape[own], num_bytes[own], dtype, device)
        np.add.at(seconds, found.ring[own], each)
    return seconds
