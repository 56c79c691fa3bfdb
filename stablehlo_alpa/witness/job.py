"""What goes to the process that compiles, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from alpa_runtime import SpmdProgram
from alpa_runtime.analysis import ProgramReport

from stablehlo_alpa.errors import WitnessError

Options: TypeAlias = Mapping[str, Any]
"""Of XLA's compiler, by name; empty for its defaults."""

Answer: TypeAlias = ProgramReport | WitnessError
"""What XLA says of a program, or why it says nothing."""


@dataclass(frozen=True)
class Job:
    """Programs to compile.

    Attributes:
        target: name of the device.
        programs: without functions of the host.
        tried: what each is compiled with, in turn, until the compiler takes it.
    """

    target: str
    programs: tuple[SpmdProgram, ...]
    tried: tuple[Options, ...]
