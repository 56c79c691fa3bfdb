"""Constants that were fitted on measurements: the device's own, or those of the package."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping, Sequence
from importlib import resources

from stablehlo_alpa.cluster import DeviceSpec

Row = Mapping[str, str]


def fit_rows(table: str, device: DeviceSpec) -> Sequence[Row]:
    """The rows of a table that a device is priced by, none if it was not measured.

    TPUs, which nobody measured, have rows of their own name: what their compilers say of products.

    Args:
        table: ``"collectives"``, ``"network"``, ``"products"``, ``"waves"``, ``"forms"`` or
            ``"streams"``.
        device: what was measured, or is as what was.
    """
    if device.fits:
        return [dict(one.entries) for one in device.fits if one.table == table]
    name = device.measured_as or device.name
    return [row for row in _packaged(table) if row["device"] == name]


def is_measured(device: DeviceSpec) -> bool:
    """Whether anything of it was measured."""
    return bool(device.fits or device.measured_as)


@functools.cache
def _packaged(table: str) -> Sequence[Row]:
    """Written by ``benchmarks/fit_prices.py``."""
    path = resources.files("stablehlo_alpa.cost") / "fits" / f"{table}.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))
