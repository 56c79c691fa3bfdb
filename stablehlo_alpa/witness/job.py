"""What goes to the process that compiles, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from alpa_runtime import SpmdProgram
from alpa_runtime.analysis import ProgramReport

from stablehlo_alpa.errors import WitnessError

Answer: TypeAlias = ProgramReport | WitnessError
"""What XLA says of a program, or why it says nothing."""


@dataclass(frozen=True)
class Job:
    """Programs to compile.

    Attributes:
        target: name of the device.
        programs: without functions of the host.
    """

    target: str
    programs: tuple[SpmdProgram, ...]
