"""What a module computes, sends and keeps, as volumes without seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stablehlo_alpa import _core
from stablehlo_alpa.compiler.module import Source, core_of


@dataclass(frozen=True, eq=False)
class Traffic:
    """The collectives of a planned module.

    Attributes:
        kind: int[C] ``CollectiveKind``.
        axes: int[C] mask of mesh axes, bit i is axis i.
        bytes: float64[C] payload of one run, per device.
        count: float64[C] runs per run of the module.
        beside: int[C] the `cost.kinds.Beside` of each.
    """

    kind: npt.NDArray[np.int64]
    axes: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.float64]
    count: npt.NDArray[np.float64]
    beside: npt.NDArray[np.int64]

    @classmethod
    def of(cls, planned: Source) -> Traffic:
        """That of a module with shardings and reshards."""
        found = _core.communication(core_of(planned))
        return cls(found["kind"], found["axes"], found["bytes"], found["count"], found["beside"])


@dataclass(frozen=True)
class Live:
    """What a per-device module keeps where it needs the most.

    Attributes:
        peak_bytes: per device.
        tensors: names and bytes per device of what is live there, the largest first.
    """

    peak_bytes: float
    tensors: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, local: Source, donated: Sequence[int] = (), platform: str = "") -> Live:
        """That of a per-device module.

        Args:
            local: the module.
            donated: arguments whose bytes results may take.
            platform: what jax calls that which runs it. For ``"tpu"`` the rules of XLA for TPU
                say what is stored, for all others those of XLA for GPU.
        """
        found = _core.memory(core_of(local), list(donated), platform)
        sizes = np.asarray(found["bytes"], np.float64).tolist()
        return cls(float(found["peak_bytes"]), tuple(zip(found["name"], sizes, strict=True)))


@dataclass(frozen=True, eq=False)
class Work:
    """What the operators of a module do, all their runs together.

    Attributes:
        ops: N names.
        runs: float64[N] how often each runs.
        shape: float64[N, 4] batch, m, n, k of a product; zeros of other operators.
        form: int64[N] `ProductForm` of a product.
        padding: float64[N] of a product, as of `cost.operators.Products`.
        flops: float64[N] per operator.
        bytes: float64[N] read and written.
        narrow_bytes: float64[N] of these, those of elements of at most 16 bits; 0 of products.
        kernels: float64[N] kernels that are launched for it.
        dtypes: of its elements, as `tensor_types` has them; empty of what has no FLOPs.
        is_split: bool[N] of a planned module, whether the strategy of each splits some loop; every
            device does all of what is not split.
    """

    ops: tuple[str, ...]
    runs: npt.NDArray[np.float64]
    shape: npt.NDArray[np.float64]
    form: npt.NDArray[np.int64]
    padding: npt.NDArray[np.float64]
    flops: npt.NDArray[np.float64]
    bytes: npt.NDArray[np.float64]
    narrow_bytes: npt.NDArray[np.float64]
    kernels: npt.NDArray[np.float64]
    dtypes: tuple[str, ...]
    is_split: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, module: Source, platform: str = "") -> Work:
        """That of a module, as it is planned or for one device, on a platform as of `Live.of`."""
        found = _core.work(core_of(module), platform)
        return cls(
            tuple(found["op"]),
            found["runs"],
            found["shape"].reshape(-1, 4),
            found["form"].astype(np.int64),
            found["padding"],
            found["flops"],
            found["bytes"],
            found["narrow_bytes"],
            found["kernels"],
            tuple(found["dtype"]),
            found["is_split"].astype(np.bool_),
        )


@dataclass(frozen=True, eq=False)
class FoundRings:
    """The R collectives of a planned module that can be done in blocks beside products.

    In the order of ``alpa-choose-product-rings``. There are P pairs of a collective and a product.

    Attributes:
        kind, axes, bytes, count, beside: [R] as of `Traffic`.
        added_bytes, added_kernels: float64[R] per run, for slices, sums and updates.
        names: R names of the first product of each.
        product: int64[P] equal where it is one operator.
        ring: int64[P] the collective.
        shape, block_shape: float64[P, 4] batch, m, n, k on one device, whole and of one block.
        product_bytes, block_bytes: float64[P] read and written likewise.
        dtypes: P element types of the operands.
    """

    kind: npt.NDArray[np.int64]
    axes: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.float64]
    count: npt.NDArray[np.float64]
    beside: npt.NDArray[np.int64]
    added_bytes: npt.NDArray[np.float64]
    added_kernels: npt.NDArray[np.float64]
    names: tuple[str, ...]
    product: npt.NDArray[np.int64]
    ring: npt.NDArray[np.int64]
    shape: npt.NDArray[np.float64]
    block_shape: npt.NDArray[np.float64]
    product_bytes: npt.NDArray[np.float64]
    block_bytes: npt.NDArray[np.float64]
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, planned: Source) -> FoundRings:
        """Those of a module with shardings and reshards."""
        found = _core.product_rings(core_of(planned))
        return cls(
            found["kind"],
            found["axes"],
            found["bytes"],
            found["count"],
            found["beside"],
            found["added_bytes"],
            found["added_kernels"],
            tuple(found["name"]),
            found["product"],
            found["product_ring"],
            found["shape"].reshape(-1, 4),
            found["block_shape"].reshape(-1, 4),
            found["product_bytes"],
            found["block_bytes"],
            tuple(found["dtype"]),
        )
