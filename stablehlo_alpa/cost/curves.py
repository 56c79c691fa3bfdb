"""Seconds of a collective by its size: what measurements are fitted by."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

import numpy as np

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


Place = tuple[str, CollectiveKind, str]
"""Device, kind, and ``"neighbours"`` or ``"strided"``."""


@functools.cache
def fitted_curves() -> Mapping[Place, Mapping[int, Curve]]:
    """By device, kind and place the curve of each measured group size.

    The table is written by ``benchmarks/fit_prices.py``.
    """
    found: dict[Place, dict[int, Curve]] = {}
    for row in read_fits("collectives"):
        place = (row["device"], CollectiveKind[row["kind"].upper()], row["place"])
        curve = Curve(
            float(row["latency_s"]),
            float(row["per_byte_s"]),
            float(row["per_root_s"]),
            float(row["plateau_s"]),
            float(row["plateau_per_byte_s"]),
        )
        found.setdefault(place, {})[int(row["group_size"])] = curve
    return found


def read_fits(name: str) -> list[dict[str, str]]:
    """The rows of a table of fitted constants."""
    path = resources.files("stablehlo_alpa.cost") / "fits" / f"{name}.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
