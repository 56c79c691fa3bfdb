"""What a step calls the arguments and results of a module that is a part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from stablehlo_alpa.frontend import TracedProgram, TracedValue
from stablehlo_alpa.planning.prescription import Dimension

Companions: TypeAlias = tuple[frozenset[Dimension], ...]
"""Per dimension of a value the dimensions of inputs of the step that it goes together with."""


@dataclass(frozen=True)
class Boundary:
    """What the step calls the arguments and results of a graph's module.

    Attributes:
        inputs, outputs: per argument or result its flat number in the step and its value; None for
            what the step does not know, such as an activation between two stages.
        companions: of such arguments, by position, per dimension the dimensions of inputs of the
            step that it goes together with.
    """

    inputs: tuple[tuple[int, TracedValue] | None, ...]
    outputs: tuple[tuple[int, TracedValue] | None, ...] = ()
    companions: Mapping[int, Companions] = field(default_factory=dict)

    @classmethod
    def of(cls, program: TracedProgram) -> Boundary:
        """That of the whole step."""
        return cls(tuple(enumerate(program.inputs)), tuple(enumerate(program.outputs)))
