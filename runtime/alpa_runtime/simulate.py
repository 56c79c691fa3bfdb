"""A discrete-event run of a plan: when programs would run, what memory they take."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from alpa_runtime.buffer_memory import BufferMemory
from alpa_runtime.held import Held, KindMemory
from alpa_runtime.order import issue_order
from alpa_runtime.plan import Free, Plan, Recv, Run, Send
from alpa_runtime.program import numpy_dtype
from alpa_runtime.resharding import Resharding
from alpa_runtime.tracing import Event

Loads: TypeAlias = Mapping[tuple[int, int], int]
"""Bytes that a device (by its position in a mesh) sends to a device of another mesh."""

TransferTime: TypeAlias = Callable[[int, int, Loads], float]
"""Seconds of a transfer from a mesh to another."""


@dataclasses.dataclass(frozen=True)
class Simulation:
    """What a plan would do.

    Attributes:
        events: the runs of all meshes, in order of their start.
        peak_bytes: per mesh the most that buffers take per device, what programs need inside
            included.
        held: per mesh what it holds while each of its events runs, in order; empty where kinds of
            buffers were not given.
    """

    events: tuple[Event, ...]
    peak_bytes: tuple[float, ...]
    held: tuple[tuple[Held, ...], ...] = ()

    @property
    def step_s(self) -> float:
        """Seconds of a step."""
        return max((event.end_s for event in self.events), default=0.0)

    def busy_s(self, mesh: int) -> float:
        """Seconds in which a mesh runs something."""
        return sum(event.end_s - event.start_s for event in self.events if event.mesh == mesh)

    def bubble(self, mesh: int) -> float:
        """Part of the step in which a mesh waits."""
        return 1.0 - self.busy_s(mesh) / self.step_s if self.step_s else 0.0


def simulate(
    plan: Plan,
    program_s: Sequence[float],
    transfer_s: TransferTime = lambda source, target, loads: 0.0,
    program_bytes: Sequence[float] | None = None,
    kinds: Sequence[Sequence[int]] | None = None,
) -> Simulation:
    """Runs the instruction lists of a plan on a clock.

    A mesh runs its list in order. A send costs its mesh nothing; what one mesh sends to another
    goes one after the other, each in the transfer's time, and a receive waits for it.

    Args:
        plan: what is run.
        program_s: seconds of each program.
        transfer_s: seconds of a transfer; none by default.
        program_bytes: bytes per device that each program needs beside its inputs and outputs.
        kinds: per mesh and buffer a number from 0 on, by which `Simulation.held` is split.

    Raises:
        ProgramError: meshes wait for each other.
    """
    clock = [0.0] * len(plan.meshes)
    arrivals: dict[int, float] = {}
    # When what a mesh has sent to another is there.
    links: dict[tuple[int, int], float] = {}
    events: list[Event] = []
    seconds: dict[tuple[int, int, int, str], float] = {}
    split = _split_memory(plan, kinds)
    memory: Sequence[BufferMemory] = split or [
        BufferMemory(plan, mesh) for mesh in range(len(plan.meshes))
    ]
    for mesh, position in issue_order(plan.instructions):
        match plan.instructions[mesh][position]:
            case Run(program, _, _, label) as run:
                start = clock[mesh]
                clock[mesh] = start + program_s[program]
                events.append(Event(mesh, label, start, clock[mesh]))
                inside = program_bytes[program] if program_bytes else 0.0
                memory[mesh].run(run, inside)
                if split:
                    split[mesh].note(start, clock[mesh], inside)
            case Send(buffer, target, transfer, resharding):
                case = (mesh, target, resharding, plan.value(mesh, buffer).dtype)
                if case not in seconds:
                    loads = loads_of(plan.reshardings[resharding], case[3])
                    seconds[case] = transfer_s(mesh, target, loads)
                begin = max(clock[mesh], links.get((mesh, target), 0.0))
                arrivals[transfer] = links[mesh, target] = begin + seconds[case]
            case Recv(buffer, _, transfer, _):
                clock[mesh] = max(clock[mesh], arrivals[transfer])
                before = memory[mesh].peak
                memory[mesh].fill(buffer)
                if split and memory[mesh].peak > before:
                    split[mesh].note(clock[mesh], clock[mesh], 0.0)
            case Free(buffers):
                memory[mesh].free(buffers)
    events.sort(key=lambda event: (event.start_s, event.mesh))
    held = tuple(tuple(own.held) for own in split)
    return Simulation(tuple(events), tuple(own.peak for own in memory), held)


def _split_memory(plan: Plan, kinds: Sequence[Sequence[int]] | None) -> list[KindMemory]:
    if kinds is None:
        return []
    count = 1 + max((kind for own in kinds for kind in own), default=0)
    return [KindMemory(plan, mesh, own, count) for mesh, own in enumerate(kinds)]


def loads_of(resharding: Resharding, dtype: str) -> Loads:
    """Bytes that the devices of two meshes exchange in a resharding of elements of a type."""
    width = numpy_dtype(dtype).itemsize
    loads: dict[tuple[int, int], int] = {}
    for piece in resharding.pieces:
        pair = (piece.source, piece.target)
        loads[pair] = loads.get(pair, 0) + width * piece.size
    return loads
