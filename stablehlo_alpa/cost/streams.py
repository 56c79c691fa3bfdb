"""Shares of the memory bandwidth of what is no product, where a compiler says them."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.fits import fit_rows
from stablehlo_alpa.cost.kinds import FloatArray

HOST_MOVE = "host_move"
"""What moves values to the memory of the host, or back."""

STREAMS = (
    *(("addition", "f32"), ("addition", "bf16"), ("sum", "f32"), ("sum", "bf16")),
    (HOST_MOVE, ""),
)
"""What is no product, and the type of its elements, in the compiler's order."""

SUMS = frozenset({"stablehlo.reduce", "stablehlo.reduce_window"})
"""Operators that write less than they read."""


@dataclass(frozen=True)
class Streams:
    """Shares of a device that is priced by what its compiler says.

    Attributes:
        shares: by operator (``"addition"``, ``"sum"``, `HOST_MOVE`) and type; 1 of all others.
    """

    shares: Mapping[tuple[str, str], float]

    def each(self) -> FloatArray:
        """float64[5] of `STREAMS`."""
        return np.array([self.shares.get(stream, 1.0) for stream in STREAMS])

    def __call__(self, op: str, dtype: str) -> float:
        """That of an operator.

        Args:
            op: its name.
            dtype: of its elements; those of what has no FLOPs count as f32.
        """
        if op == HOST_MOVE:
            return self.shares.get((HOST_MOVE, ""), 1.0)
        kind = "sum" if op in SUMS else "addition"
        width = "bf16" if dtype in ("bf16", "f16") else "f32"
        return self.shares.get((kind, width), 1.0)


@functools.cache
def streams_of(device: DeviceSpec) -> Streams:
    """Those of a device."""
    rows = fit_rows("streams", device)
    shares = {(row["operator"], row["dtype"]): float(row["share"]) for row in rows}
    return Streams(shares | {(HOST_MOVE, ""): host_share(device, 1.0)})


def host_share(device: DeviceSpec, otherwise: float) -> float:
    """The share of what moves values to the host and back, each byte read here and written there.

    Args:
        device: the device.
        otherwise: the share where nothing is known of its bus.
    """
    if not device.host_bandwidth:
        return otherwise
    return 2 * device.host_bandwidth / device.memory_bandwidth
