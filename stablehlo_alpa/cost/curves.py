"""Seconds of a collective by its size: what measurements are fitted by."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.fits import fit_rows
from stablehlo_alpa.cost.kinds import CollectiveKind, FloatArray

MESSAGE_KINDS = frozenset({CollectiveKind.ALL_TO_ALL, CollectiveKind.COLLECTIVE_PERMUTE})
"""Kinds that libraries send as messages from one device to another, not around rings."""

SHORT_MESSAGE_BYTES = 512 * 2**10
"""Largest message that NCCL sends by its protocol for low latency, which carries a flag beside each
four bytes: `NCCL_P2P_LL_THRESHOLD`, 16 KiB, over 32 channels (NVIDIA/nccl, `src/enqueue.cc`)."""


def short_payload(kind: CollectiveKind, size: int) -> float:
    """Payload in bytes up to which the messages of a collective over `size` devices are short."""
    if kind not in MESSAGE_KINDS:
        return 0.0
    return SHORT_MESSAGE_BYTES * (size if kind is CollectiveKind.ALL_TO_ALL else 1)


@dataclass(frozen=True)
class Curve:
    """Seconds of a collective of x bytes per device.

    ``latency + short_per_byte x`` while messages are short, and beyond that
    ``min(latency + per_byte x + per_root sqrt(x), max(plateau, plateau_per_byte x))``: libraries
    use more channels and other protocols the larger a message is; the root stands for that. The
    steps around a ring take their time however little is sent: nothing is below ``least``, which
    the latency alone does not say where the root begins lower. Where messages go from device to
    device it is known what they do. Short ones go by a protocol that is slower by the byte, so
    that a larger one can be faster. Where a channel's share of a message would be larger than a
    channel carries, channels are doubled with the size until the link is full: the time does not
    grow, the plateau.

    Attributes:
        latency_s: seconds of the smallest.
        per_byte_s: seconds per byte of the largest.
        per_root_s: seconds per square root of bytes.
        plateau_s, plateau_per_byte_s: infinite where there is no plateau.
        short_bytes: payload up to which messages are short, none by default.
        short_per_byte_s: seconds per byte of these.
        least_s: seconds that none is below; zero where the latency says it.
    """

    latency_s: float
    per_byte_s: float
    per_root_s: float = 0.0
    plateau_s: float = np.inf
    plateau_per_byte_s: float = 0.0
    short_bytes: float = 0.0
    short_per_byte_s: float = 0.0
    least_s: float = 0.0

    def __call__(self, payload: FloatArray) -> FloatArray:
        """Seconds of payloads."""
        grown = self.latency_s + self.per_byte_s * payload + self.per_root_s * np.sqrt(payload)
        long = np.minimum(grown, np.maximum(self.plateau_s, self.plateau_per_byte_s * payload))
        short = self.latency_s + self.short_per_byte_s * payload
        return np.maximum(np.where(payload <= self.short_bytes, short, long), self.least_s)

    def scaled(self, share: float, short_bytes: float = 0.0) -> Curve:
        """The curve of a collective that sends ``share`` times as much, with the same latency.

        Args:
            share: of what is sent.
            short_bytes: payload up to which its messages are short.
        """
        return Curve(
            self.latency_s,
            self.per_byte_s * share,
            self.per_root_s * share,
            self.plateau_s,
            self.plateau_per_byte_s * share,
            short_bytes if self.short_bytes else 0.0,
            self.short_per_byte_s * share,
            self.least_s,
        )


Place = tuple[CollectiveKind, str]
"""Kind, and ``"neighbours"`` or ``"strided"``."""


@functools.cache
def curves_of(device: DeviceSpec) -> Mapping[Place, Mapping[int, Curve]]:
    """By kind and place the curve of each group size that was measured."""
    found: dict[Place, dict[int, Curve]] = {}
    for row in fit_rows("collectives", device):
        kind, size = CollectiveKind[row["kind"].upper()], int(row["group_size"])
        short_per_byte_s = row.get("short_per_byte_s", "")
        curve = Curve(
            float(row["latency_s"]),
            float(row["per_byte_s"]),
            float(row.get("per_root_s", Curve.per_root_s)),
            float(row.get("plateau_s", Curve.plateau_s)),
            float(row.get("plateau_per_byte_s", Curve.plateau_per_byte_s)),
            short_payload(kind, size) if short_per_byte_s else Curve.short_bytes,
            float(short_per_byte_s or Curve.short_per_byte_s),
            float(row.get("least_s", Curve.least_s)),
        )
        place = (kind, row.get("place", "neighbours"))
        found.setdefault(place, {})[size] = curve
    return found
