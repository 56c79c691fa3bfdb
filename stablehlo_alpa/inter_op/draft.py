"""A plan that is being written: instructions, buffers and programs so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from alpa_runtime import SpmdProgram, ValueSpec
from alpa_runtime.plan import Instruction, Run

from stablehlo_alpa.inter_op.lifetimes import with_frees
from stablehlo_alpa.planning.stage import CostedProgram, Slot, as_held

ONCE = -1
"""In place of the number of a micro-batch: there once per step."""

SHARED = -1
"""In place of the number of a stage: all stages of the mesh have it."""

LANDING = -2
"""In place of the number of a stage: what arrives for a slot, before it is put together."""

Key: TypeAlias = tuple[int, Slot, int]
"""A buffer of a mesh: stage, slot and micro-batch."""


@dataclass
class MeshDraft:
    """Instructions of a mesh so far, and its buffers.

    Attributes:
        instructions: in order.
        values: per buffer what it holds.
        filled: buffers that an instruction fills already.
    """

    instructions: list[Instruction] = field(default_factory=list)
    values: list[ValueSpec] = field(default_factory=list)
    filled: set[int] = field(default_factory=set)
    _numbers: dict[tuple[Key, ValueSpec], int] = field(default_factory=dict)

    def buffer(self, key: Key, value: ValueSpec) -> int:
        """The number of a buffer, new when it was not asked for before."""
        value = as_held(value)
        number = self._numbers.setdefault((key, value), len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


class PlanDraft:
    """The meshes of a plan, and the programs that they share.

    Attributes:
        meshes: by number.
        programs: by number, with what they cost.
    """

    def __init__(self, num_meshes: int) -> None:
        """Nothing is written yet."""
        self.meshes = [MeshDraft() for _ in range(num_meshes)]
        self.programs: list[CostedProgram] = []
        self._numbers: dict[object, int] = {}

    def has_program(self, key: object) -> bool:
        """Whether a program was asked for."""
        return key in self._numbers

    def add_program(self, key: object, make: Callable[[], CostedProgram]) -> int:
        """The number of a program, new when it was not asked for before."""
        if key not in self._numbers:
            self._numbers[key] = len(self.programs)
            self.programs.append(make())
        return self._numbers[key]

    def run(
        self,
        mesh: int,
        program: SpmdProgram,
        outputs: tuple[int, ...],
        label: str,
        key: object | None = None,
    ) -> None:
        """Runs a program that takes nothing and costs nothing."""
        number = self.add_program(key or program.name, lambda: CostedProgram(program))
        self.meshes[mesh].instructions.append(Run(number, (), outputs, label))

    def convert(
        self, mesh: int, program: CostedProgram, source: int, target: int, label: str
    ) -> None:
        """Runs a program that makes one buffer of another."""
        number = self.add_program(program.program.name, lambda: program)
        self.meshes[mesh].instructions.append(Run(number, (source,), (target,), label))

    def free(self, kept: dict[int, set[int]]) -> None:
        """Frees every buffer behind its last use.

        Args:
            kept: by mesh, the buffers that are results of the step.
        """
        programs = [costed.program for costed in self.programs]
        for number, mesh in enumerate(self.meshes):
            mesh.instructions = with_frees(mesh.instructions, programs, kept.get(number, set()))
