"""What the Alpa paper's evaluation printed or showed: ``measured/paper.csv``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from measurements import read

OUT_OF_MEMORY = "out of memory"


@dataclass(frozen=True)
class Published:
    """One figure of the paper.

    Attributes:
        figure: "7", "8", ..., or "table 5".
        family: of models.
        system: what was run, or the part that is told apart.
        devices: V100.
        unit: of ``value`` and ``error``.
        value: as read; None where there is none.
        error: of reading; 0 where the paper prints the number.
        outcome: why there is no value.
    """

    figure: str
    family: str
    system: str
    devices: int
    unit: str
    value: float | None
    error: float
    outcome: str


Key = tuple[str, str, str, int]
"""Figure, family, system, devices."""


def published() -> Mapping[Key, Published]:
    """All of them."""
    found = {}
    for row in read("paper"):
        key = (row["figure"], row["family"], row["system"], int(row["devices"]))
        value = float(row["value"]) if row["value"] else None
        error = float(row["error"] or 0)
        found[key] = Published(*key, row["unit"], value, error, row["outcome"])
    return found
