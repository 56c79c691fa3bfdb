"""Bytes per device that the buffers of a mesh take, instruction by instruction."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from alpa_runtime.plan import Free, Plan, Recv, Run


@dataclasses.dataclass(frozen=True)
class Peak:
    """What a mesh holds where it holds the most.

    Attributes:
        buffers: numbers of the buffers that are live, ascending.
        inside_bytes: what the program that runs then needs beside its inputs and outputs. Bytes per
            device.
        program: number of that program; None where none runs.
    """

    buffers: tuple[int, ...]
    inside_bytes: float
    program: int | None = None


class BufferMemory:
    """Bytes per device of the buffers of a mesh.

    Attributes:
        peak: the most so far, what programs need inside included.
    """

    def __init__(self, plan: Plan, mesh: int) -> None:
        """The inputs of the step are there.

        Args:
            plan: what is run.
            mesh: number of the mesh.
        """
        sizes = dict(plan.meshes[mesh].axes)
        self._plan = plan
        self._bytes = [plan.values[value].held_bytes(sizes) for value in plan.buffers[mesh]]
        # In the order in which they were filled.
        self._live: dict[int, None] = {}
        self._now = 0.0
        self.peak = 0.0
        for value in plan.inputs:
            for placement in value.placements:
                if placement.mesh == mesh:
                    for buffer in placement.buffers:
                        self.fill(buffer)

    @property
    def live(self) -> tuple[int, ...]:
        """Numbers of the buffers that hold something, ascending."""
        return tuple(sorted(self._live))

    def fill(self, buffer: int) -> None:
        """A buffer gets a value."""
        if buffer not in self._live:
            self._live[buffer] = None
            self._now += self._bytes[buffer]
            self.peak = max(self.peak, self._now)

    def free(self, buffers: Sequence[int]) -> None:
        """Buffers hold nothing any more."""
        for buffer in buffers:
            if buffer in self._live:
                del self._live[buffer]
                self._now -= self._bytes[buffer]

    def run(self, run: Run, inside: float) -> None:
        """A program runs.

        Args:
            run: the instruction.
            inside: bytes per device that it needs beside its inputs and outputs.
        """
        # A donated input and the output in its place are one buffer.
        self.free([run.inputs[place] for place in self._plan.programs[run.program].donated])
        for buffer in run.outputs:
            self.fill(buffer)
        self.peak = max(self.peak, self._now + inside)


def peak_of(plan: Plan, mesh: int, program_bytes: Sequence[float]) -> Peak:
    """What a mesh holds where it holds the most, the first time that it does.

    Args:
        plan: what is run.
        mesh: number of the mesh.
        program_bytes: per program bytes per device that it needs inside.
    """
    memory = BufferMemory(plan, mesh)
    found, most = Peak(memory.live, 0.0), memory.peak
    position = -1
    for number, one in enumerate(plan.instructions[mesh]):
        _step(memory, one, program_bytes)
        if memory.peak > most:
            most, position = memory.peak, number
    if position < 0:
        return found
    # What is live is copied once: the run is repeated up to there.
    memory = BufferMemory(plan, mesh)
    for one in plan.instructions[mesh][: position + 1]:
        _step(memory, one, program_bytes)
    last = plan.instructions[mesh][position]
    if not isinstance(last, Run):
        return Peak(memory.live, 0.0)
    return Peak(memory.live, program_bytes[last.program], last.program)


def _step(memory: BufferMemory, instruction: object, program_bytes: Sequence[float]) -> None:
    match instruction:
        case Run(program, _, _, _) as run:
            memory.run(run, program_bytes[program])
        case Recv(buffer, _, _, _):
            memory.fill(buffer)
        case Free(buffers):
            memory.free(buffers)
