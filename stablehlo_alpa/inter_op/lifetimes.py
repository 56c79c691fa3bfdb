"""How long the buffers of a plan live: what programs may overwrite, and when the rest is freed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set

from alpa_runtime import SpmdProgram
from alpa_runtime.plan import Free, Instruction, Recv, Run, Send

from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import (
    BACKWARD,
    FORWARD,
    WEIGHT,
    PhaseProgram,
    Slot,
    SlotKind,
    StageBody,
    as_held,
)

_PASSES = (FORWARD, BACKWARD, WEIGHT)


class Lifetimes:
    """Which inputs of a phase end with it, so that its results may take their places.

    Attributes:
        senders: per transfer the stage and the phase that make it.
    """

    def __init__(
        self, stages: Sequence[StageBody], schedule: Schedule, next_values: Mapping[int, int]
    ) -> None:
        """Takes the stages, their schedule, and per donated input of the step its next value."""
        self._schedule, self._next_values = schedule, next_values
        self.senders: dict[int, tuple[int, PhaseProgram]] = {}
        # By stage and slot the phases that make it; by slot the stages and phases that use it.
        self._makers: dict[tuple[int, Slot], list[PhaseProgram]] = defaultdict(list)
        self._users: dict[Slot, list[tuple[int, str]]] = defaultdict(list)
        for number, stage in enumerate(stages):
            for phase in stage.phases:
                for slot in phase.outputs:
                    self._makers[number, slot].append(phase)
                    if slot.kind is SlotKind.TRANSFER:
                        self.senders[slot.number] = (number, phase)
                for slot in dict.fromkeys(phase.inputs):
                    self._users[slot].append((number, phase.name))

    def makers_of(self, stage: int, slot: Slot) -> Sequence[PhaseProgram]:
        """The phases of a stage that make a slot, in order."""
        return self._makers.get((stage, slot), ())

    def donated(self, stage: int, phase: PhaseProgram) -> tuple[int, ...]:
        """Numbers of the inputs that a phase may overwrite."""
        kept = {
            index
            for index, slot in enumerate(phase.inputs)
            if self._is_replaced(stage, phase, slot)
        }
        return tuple(sorted(kept | self._activations(stage, phase)))

    def _is_replaced(self, stage: int, phase: PhaseProgram, slot: Slot) -> bool:
        """Whether a phase makes the next value of a sum or of the step's state."""
        if slot.kind is SlotKind.ACCUMULATOR:
            return not phase.runs_once
        is_state = slot.kind is SlotKind.INPUT and slot.number in self._next_values
        if not is_state or not phase.runs_once:
            return False
        makers = self.makers_of(stage, Slot(SlotKind.OUTPUT, self._next_values[slot.number]))
        if phase.name not in (one.name for one in makers):
            return False
        return self._is_last_user(stage, phase, slot) and not self._is_stashed(stage, slot)

    def _is_stashed(self, stage: int, slot: Slot) -> bool:
        """Whether micro-batches in flight still read what an update of a stage replaces."""
        if not self._schedule.is_asynchronous or not self._schedule.staleness(stage):
            return False
        return any(name in _PASSES for _, name in self._users[slot])

    def _activations(self, stage: int, phase: PhaseProgram) -> set[int]:
        """Activations that end here, as many as there are results to take their places."""
        places = Counter(
            as_held(value)
            for slot, value in zip(phase.outputs, phase.program.outputs, strict=True)
            if slot.kind in (SlotKind.LOCAL, SlotKind.TRANSFER)
        )
        donated, made = set(), frozenset(phase.outputs)
        for index, (slot, value) in enumerate(zip(phase.inputs, phase.program.inputs, strict=True)):
            if slot not in made and self._ends_in(stage, phase, slot):
                held = as_held(value)
                if places[held]:
                    places[held] -= 1
                    donated.add(index)
        return donated

    def _ends_in(self, stage: int, phase: PhaseProgram, slot: Slot) -> bool:
        """Whether a phase is the last of its mesh that uses an activation, not made anew by it."""
        if phase.runs_once:
            return False
        if slot.kind is SlotKind.LOCAL:
            makers = self.makers_of(stage, slot)
            is_passing = bool(makers) and not makers[0].runs_once
        elif slot.kind is SlotKind.TRANSFER:
            maker, made_by = self.senders[slot.number]
            # What a stage of the same mesh has made may still have to be sent to others.
            is_elsewhere = self._schedule.mesh_of(maker) != self._schedule.mesh_of(stage)
            is_passing = is_elsewhere and not made_by.runs_once
        else:
            return False
        return is_passing and self._is_last_user(stage, phase, slot)

    def _is_last_user(self, stage: int, phase: PhaseProgram, slot: Slot) -> bool:
        """Whether no other stage of the mesh, and no later phase of the stage, uses a slot."""
        mesh = self._schedule.mesh_of(stage)
        users = [
            (other, name)
            for other, name in self._users.get(slot, ())
            if self._schedule.mesh_of(other) == mesh
            and (other == stage or slot.kind is not SlotKind.LOCAL)
        ]
        return {number for number, _ in users} == {stage} and users[-1][1] == phase.name


def with_frees(
    instructions: Sequence[Instruction], programs: Sequence[SpmdProgram], kept: Set[int]
) -> list[Instruction]:
    """Frees every buffer of a mesh behind its last use.

    Args:
        instructions: of the mesh.
        programs: of the plan; what they donate needs no freeing.
        kept: buffers that are results of the step.
    """
    last: dict[int, int] = {}
    dead: set[int] = set()
    for position, instruction in enumerate(instructions):
        match instruction:
            case Run(program, inputs, outputs):
                last.update(dict.fromkeys((*inputs, *outputs), position))
                donated = {inputs[i] for i in programs[program].donated}
                dead = (dead | donated) - set(outputs)
            case Send(buffer) | Recv(buffer):
                last[buffer] = position
    ending: dict[int, list[int]] = {}
    for buffer, position in last.items():
        if buffer not in kept and buffer not in dead:
            ending.setdefault(position, []).append(buffer)
    result: list[Instruction] = []
    for position, instruction in enumerate(instructions):
        result.append(instruction)
        if position in ending:
            result.append(Free(tuple(sorted(ending[position]))))
    return result
