"""What the backend says of compiled programs, per program and per mesh."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

import jax

from alpa_runtime.errors import InputError
from alpa_runtime.plan import Plan, Run
from alpa_runtime.simulate import simulate


@dataclasses.dataclass(frozen=True)
class MemoryStats:
    """Bytes per device, named as in jax's own account (``jax.stages.Compiled``).

    Attributes:
        argument_size_in_bytes: of what is taken.
        output_size_in_bytes: of what is made.
        alias_size_in_bytes: of what is made in the place of what is taken.
        temp_size_in_bytes: of everything else at the peak.
        generated_code_size_in_bytes: of the programs.
        peak_memory_in_bytes: the most at any point.
    """

    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    generated_code_size_in_bytes: int
    peak_memory_in_bytes: int

    @classmethod
    def of(cls, compiled: jax.stages.Compiled) -> MemoryStats:
        """Asks the backend."""
        stats: Any = compiled.memory_analysis()
        names = [field.name for field in dataclasses.fields(cls)]
        found = cls(**{name: int(getattr(stats, name, 0)) for name in names})
        host = _host_bytes(stats)
        peak = max(0, found.peak_memory_in_bytes - host)
        return dataclasses.replace(found, peak_memory_in_bytes=peak)


def _host_bytes(stats: Any) -> int:
    """What lies in the memory of the host, which XLA counts in the peak and in nothing else."""

    def size(name: str) -> int:
        return int(getattr(stats, f"host_{name}_size_in_bytes", 0))

    return size("argument") + size("output") - size("alias") + size("temp")


@dataclasses.dataclass(frozen=True)
class ProgramReport:
    """What the backend says of a program.

    Attributes:
        text: the optimised program.
        memory: its account of memory.
        cost: its estimates by name, e.g. ``"flops"``.
        options: what it was compiled with beside the backend's defaults.
    """

    text: str
    memory: MemoryStats
    cost: Mapping[str, float]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, compiled: jax.stages.Compiled) -> ProgramReport:
        """Asks the backend."""
        cost: Any = compiled.cost_analysis()
        return cls(compiled.as_text() or "", MemoryStats.of(compiled), dict(cost or {}))


Reports: TypeAlias = Mapping[tuple[int, int], ProgramReport]
"""By mesh and program."""

Memories: TypeAlias = Mapping[tuple[int, int], MemoryStats]
"""Likewise."""


class Inspected:
    """What executables say of their programs, wherever these were compiled.

    Attributes:
        plan: what is run.
    """

    plan: Plan

    def _reports(self) -> Reports:
        """What the backend says of all programs of the plan."""
        raise NotImplementedError

    def _memories(self) -> Memories:
        """What it says of their memory alone."""
        return {place: report.memory for place, report in self._reports().items()}

    def as_text(self, program: int | str | None = None) -> str:
        """See `Executable`."""
        return _text_of(self.plan, self._reports(), program)

    def memory_analysis(self) -> tuple[MemoryStats, ...]:
        """See `Executable`."""
        return _memory_of(self.plan, self._memories())

    def cost_analysis(self) -> tuple[Mapping[str, float], ...]:
        """See `Executable`."""
        return _cost_of(self.plan, self._reports())


def _text_of(plan: Plan, reports: Reports, program: int | str | None) -> str:
    """Texts of one or of all programs of a plan; see ``Executable.as_text``."""
    chosen = range(len(plan.programs)) if program is None else [_number(plan, program)]
    texts = {number: report.text for (_, number), report in reports.items()}
    if len(chosen) == 1:
        return texts.get(chosen[0], "")
    return "\n".join(
        f"// program {number}: {plan.programs[number].name}\n{texts[number]}"
        for number in chosen
        if number in texts
    )


def _number(plan: Plan, program: int | str) -> int:
    names = [own.name for own in plan.programs]
    if isinstance(program, str) and program in names:
        return names.index(program)
    if isinstance(program, int) and 0 <= program < len(names):
        return program
    raise InputError(
        f"program is {program!r}, {plan.name} has {len(names)} by number and by name: {names}"
    )


def _memory_of(plan: Plan, memories: Memories) -> tuple[MemoryStats, ...]:
    """What each mesh of a plan needs; see ``Executable.memory_analysis``."""
    if plan.sole_program is not None:
        return (memories[0, 0],)
    inside = [0.0] * len(plan.programs)
    for (_, number), memory in memories.items():
        inside[number] = max(inside[number], float(memory.temp_size_in_bytes))
    peaks = simulate(plan, [1.0] * len(plan.programs), program_bytes=inside).peak_bytes
    return tuple(_mesh_memory(plan, mesh, memories, peak) for mesh, peak in enumerate(peaks))


def _mesh_memory(plan: Plan, mesh: int, memories: Memories, peak: float) -> MemoryStats:
    sizes = plan.sizes(mesh)

    def size(buffers: set[int]) -> int:
        return sum(plan.value(mesh, buffer).held_bytes(sizes) for buffer in buffers)

    taken, donated = set(), set()
    for value in plan.inputs:
        own = {b for place in value.placements if place.mesh == mesh for b in place.buffers}
        taken |= own
        donated |= own if value.is_donated else set()
    made = {out.buffer for out in plan.outputs if out.mesh == mesh}
    outputs = size(made)
    # Beside buffers that come out as they went in, what is donated makes room for what is made.
    aliased = min(size(donated), outputs)
    arguments = size(taken)
    code = sum(
        memory.generated_code_size_in_bytes
        for (own_mesh, _), memory in memories.items()
        if own_mesh == mesh
    )
    rest = max(0, int(peak) - arguments - outputs + aliased)
    return MemoryStats(arguments, outputs, aliased, rest, code, int(peak))


def _cost_of(plan: Plan, reports: Reports) -> tuple[Mapping[str, float], ...]:
    """What a step costs each mesh of a plan; see ``Executable.cost_analysis``."""
    found = []
    for mesh, instructions in enumerate(plan.instructions):
        counts = Counter(one.program for one in instructions if isinstance(one, Run))
        total: Counter[str] = Counter()
        for number, count in counts.items():
            for name, amount in reports[mesh, number].cost.items():
                total[name] += count * amount  # type: ignore[assignment]
        found.append(dict(total))
    return tuple(found)
