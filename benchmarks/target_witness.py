"""XLA's compiler for devices that are not there, as the benchmarks that ask it know it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import report

from stablehlo_alpa.cluster import DeviceSpec, preset_for

PRESETS = {"h100": "h100-80gb", "tpu-v5p": "tpu-v5p"}
CACHE = report.ROOT / "build" / "accelerators" / "reports"
"""Keeps what was compiled, for all of them."""


@dataclass(frozen=True)
class TargetWitness:
    """XLA's compiler for a kind of device.

    Attributes:
        target: its name.
        cache: folder that keeps what it compiled.
        say: is told what is compiled.
    """

    target: str
    cache: Path
    say: Callable[[str], None]

    @property
    def device(self) -> DeviceSpec:
        """What the planner knows of it."""
        return preset_for(PRESETS[self.target])
