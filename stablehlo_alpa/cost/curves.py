"""Seconds of a collective by its size: what measurements are fitted by."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost.fits import fit_rows
from stablehlo_alpa.cost.kinds import CollectiveKind, FloatArray


@dataclass(frozen=True)
class Curve:
    """Seconds of a collective of x bytes per device.

    ``min(latency + per_byte x + per_root sqrt(x), max(plateau, plateau_per_byte x))``: libraries
    use more channels and other protocols the larger a message is; the root stands for that. Where
    it falls short (permutes), the time does not grow at all until the next size with more channels:
    the plateau.

    Attributes:
        latency_s: seconds of the smallest.
        per_byte_s: seconds per byte of the largest.
        per_root_s: seconds per square root of bytes.
        plateau_s, plateau_per_byte_s: infinite where there is no plateau.
    """

    latency_s: float
    per_byte_s: float
    per_root_s: float = 0.0
    plateau_s: float = np.inf
    plateau_per_byte_s: float = 0.0

    def __call__(self, payload: FloatArray) -> FloatArray:
        """Seconds of payloads."""
        grown = self.latency_s + self.per_byte_s * payload + self.per_root_s * np.sqrt(payload)
        return np.minimum(grown, np.maximum(self.plateau_s, self.plateau_per_byte_s * payload))

    def scaled(self, share: float) -> Curve:
        """The curve of a collective that sends ``share`` times as much, with the same latency."""
        return Curve(
            self.latency_s,
            self.per_byte_s * share,
            self.per_root_s * share,
            self.plateau_s,
            self.plateau_per_byte_s * share,
        )


Place = tuple[CollectiveKind, str]
"""Kind, and ``"neighbours"`` or ``"strided"``."""


@functools.cache
def curves_of(device: DeviceSpec) -> Mapping[Place, Mapping[int, Curve]]:
    """By kind and place the curve of each group size that was measured."""
    found: dict[Place, dict[int, Curve]] = {}
    for row in fit_rows("collectives", device):
        curve = Curve(
            float(row["latency_s"]),
            float(row["per_byte_s"]),
            float(row.get("per_root_s", Curve.per_root_s)),
            float(row.get("plateau_s", Curve.plateau_s)),
            float(row.get("plateau_per_byte_s", Curve.plateau_per_byte_s)),
        )
        place = (CollectiveKind[row["kind"].upper()], row.get("place", "neighbours"))
        found.setdefault(place, {})[int(row["group_size"])] = curve
    return found
