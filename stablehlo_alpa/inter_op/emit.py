"""From planned stages and a schedule to the instructions of every mesh."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from alpa_runtime import SpmdProgram, ValueSpec
from alpa_runtime.plan import (
    Free,
    Instruction,
    PipelinePlan,
    Placement,
    PlanInput,
    PlanMesh,
    PlanOutput,
    Recv,
    Run,
    Send,
)

from stablehlo_alpa.errors import CompileError
from stablehlo_alpa.inter_op.schedules import Schedule, TaskKind
from stablehlo_alpa.inter_op.stage import (
    BACKWARD,
    FORWARD,
    WEIGHT,
    PhaseProgram,
    PlannedStage,
    Slot,
)
from stablehlo_alpa.inter_op.zeros import zeros_program

_PHASES = {TaskKind.FORWARD: FORWARD, TaskKind.BACKWARD: BACKWARD, TaskKind.WEIGHT: WEIGHT}

# A buffer of a mesh: stage (-1 where all stages of the mesh share it), slot and micro-batch (-1
# for what is there once per step).
_Key: TypeAlias = tuple[int, Slot, int]


@dataclass(frozen=True)
class StepInterface:
    """Flat inputs and outputs of a step.

    Attributes:
        name: of the function.
        inputs: what the caller passes, batches whole.
        outputs: names of the results.
        batch: inputs that are cut into micro-batches.
        donated: inputs whose buffers the step may overwrite, and the outputs that are their next
            values.
    """

    name: str
    inputs: tuple[ValueSpec, ...]
    outputs: tuple[str, ...]
    batch: frozenset[int]
    donated: Mapping[int, int]


@dataclass
class _MeshState:
    """Instructions of a mesh so far, and its buffers."""

    instructions: list[Instruction] = field(default_factory=list)
    numbers: dict[tuple[_Key, ValueSpec], int] = field(default_factory=dict)
    values: list[ValueSpec] = field(default_factory=list)
    received: set[int] = field(default_factory=set)

    def buffer(self, key: _Key, value: ValueSpec) -> int:
        """The number of a buffer, new when it was not asked for before."""
        value = dataclasses.replace(value, name="", is_weak=False)
        if (key, value) not in self.numbers:
            self.numbers[key, value] = len(self.values)
            self.values.append(value)
        return self.numbers[key, value]


def emit(stages: Sequence[PlannedStage], schedule: Schedule, step: StepInterface) -> PipelinePlan:
    """Writes the plan of a step.

    Args:
        stages: all stages, in order.
        schedule: of as many stages.
        step: the flat interface.
    """
    return _Emitter(stages, schedule, step).run()


class _Emitter:
    def __init__(
        self, stages: Sequence[PlannedStage], schedule: Schedule, step: StepInterface
    ) -> None:
        self._stages, self._schedule, self._step = stages, schedule, step
        self._meshes = [_MeshState() for _ in schedule.meshes]
        self._programs: list[SpmdProgram] = []
        self._numbers: dict[tuple[int, str], int] = {}
        self._transfers: dict[tuple[int, int, int], int] = {}
        self._placements: dict[int, dict[int, dict[int, int]]] = {}
        # What makes each transfer, and which stages need it.
        self._makers: dict[int, tuple[int, PhaseProgram]] = {}
        self._needs: dict[int, list[int]] = {}
        self._outputs: dict[int, tuple[int, int]] = {}
        self._index_transfers()

    def run(self) -> PipelinePlan:
        for number in range(len(self._stages)):
            self._run_zeros(number)
        for tasks in self._schedule.meshes:
            for task in tasks:
                phase = self._stages[task.stage].phase(_PHASES[task.kind])
                if phase:
                    self._run_phase(task.stage, phase, task.micro_batch)
        once = max((self._last_apply(stage) for stage in self._stages), default=-1)
        for index in range(once + 1):
            for number, stage in enumerate(self._stages):
                if phase := stage.phase(f"apply_{index}"):
                    self._run_phase(number, phase, -1)
        for mesh, state in enumerate(self._meshes):
            state.instructions = self._with_frees(mesh, state)
        return self._finish()

    @staticmethod
    def _last_apply(stage: PlannedStage) -> int:
        return max((int(p.name.rsplit("_", 1)[1]) for p in stage.phases if p.runs_once), default=-1)

    def _index_transfers(self) -> None:
        for number, stage in enumerate(self._stages):
            for phase in stage.phases:
                for slot in phase.outputs:
                    if slot.kind == "transfer":
                        self._makers[slot.number] = (number, phase)
                for slot in phase.inputs:
                    if slot.kind == "transfer":
                        needing = self._needs.setdefault(slot.number, [])
                        if number not in needing:
                            needing.append(number)

    # Programs

    def _program(self, stage: int, phase: PhaseProgram) -> int:
        """The number of a phase's program, with what it donates filled in."""
        key = (stage, phase.name)
        if key not in self._numbers:
            self._numbers[key] = len(self._programs)
            donated = tuple(
                index
                for index, slot in enumerate(phase.inputs)
                if self._is_donated(stage, phase, slot)
            )
            self._programs.append(
                dataclasses.replace(
                    phase.program, donated=donated, name=f"stage_{stage}_{phase.name}"
                )
            )
        return self._numbers[key]

    def _is_donated(self, stage: int, phase: PhaseProgram, slot: Slot) -> bool:
        if slot.kind == "accumulator":
            return not phase.runs_once
        if slot.kind != "input" or slot.number not in self._step.donated or not phase.runs_once:
            return False
        # The next value takes the place.
        if Slot("output", self._step.donated[slot.number]) not in phase.outputs:
            return False
        # Only in the last program of the mesh that uses the input.
        mesh = self._schedule.mesh_of(stage)
        users = [
            (other, p.name)
            for other, planned in enumerate(self._stages)
            if self._schedule.mesh_of(other) == mesh
            for p in planned.phases
            if slot in p.inputs
        ]
        return {number for number, _ in users} == {stage} and users[-1][1] == phase.name

    def _run_zeros(self, stage: int) -> None:
        """Sums over the micro-batches start from zero."""
        planned = self._stages[stage]
        slots: dict[Slot, ValueSpec] = {}
        for phase in planned.phases:
            for slot, value in zip(phase.outputs, phase.program.outputs, strict=True):
                if slot.kind == "accumulator":
                    slots[slot] = value
        if not slots:
            return
        program = zeros_program(
            tuple(slots.values()), tuple(planned.mesh.axes), f"stage_{stage}_zeros"
        )
        state = self._meshes[self._schedule.mesh_of(stage)]
        outputs = tuple(state.buffer((stage, slot, -1), value) for slot, value in slots.items())
        self._programs.append(program)
        state.instructions.append(Run(len(self._programs) - 1, (), outputs, f"stage {stage} zeros"))

    # Instructions

    def _run_phase(self, stage: int, phase: PhaseProgram, micro_batch: int) -> None:
        mesh = self._schedule.mesh_of(stage)
        state = self._meshes[mesh]
        inputs = tuple(
            self._input(stage, slot, value, micro_batch)
            for slot, value in zip(phase.inputs, phase.program.inputs, strict=True)
        )
        outputs = []
        for slot, value in zip(phase.outputs, phase.program.outputs, strict=True):
            at = -1 if slot.kind in ("accumulator", "output") or phase.runs_once else micro_batch
            outputs.append(state.buffer((stage, slot, at), value))
            if slot.kind == "output":
                self._outputs[slot.number] = (mesh, outputs[-1])
        label = f"stage {stage} {phase.name}"
        if not phase.runs_once:
            label += f" {micro_batch}"
        state.instructions.append(Run(self._program(stage, phase), inputs, tuple(outputs), label))
        for slot, buffer in zip(phase.outputs, outputs, strict=True):
            if slot.kind == "transfer":
                for target in self._needs.get(slot.number, ()):
                    number = self._transfer(slot.number, micro_batch, target)
                    state.instructions.append(Send(buffer, self._schedule.mesh_of(target), number))

    def _transfer(self, number: int, micro_batch: int, target: int) -> int:
        key = (number, micro_batch, target)
        return self._transfers.setdefault(key, len(self._transfers))

    def _input(self, stage: int, slot: Slot, value: ValueSpec, micro_batch: int) -> int:
        mesh = self._schedule.mesh_of(stage)
        state = self._meshes[mesh]
        match slot.kind:
            case "input":
                is_batch = slot.number in self._step.batch
                if is_batch and micro_batch < 0 and self._schedule.num_micro_batches > 1:
                    raise CompileError(
                        f"{self._step.inputs[slot.number].name} is cut into micro-batches and used "
                        "once per step"
                    )
                at = max(micro_batch, 0) if is_batch else -1
                buffer = state.buffer((-1, slot, at), value)
                places = self._placements.setdefault(slot.number, {}).setdefault(mesh, {})
                places.setdefault(buffer, at)
                return buffer
            case "transfer":
                maker, made_by = self._makers[slot.number]
                at = -1 if made_by.runs_once else max(micro_batch, 0)
                buffer = state.buffer((stage, slot, at), value)
                number = self._transfer(slot.number, at, stage)
                if number not in state.received:
                    state.received.add(number)
                    source = self._schedule.mesh_of(maker)
                    state.instructions.append(Recv(buffer, source, number))
                return buffer
            case "local":
                is_once = any(
                    slot in phase.outputs and phase.runs_once
                    for phase in self._stages[stage].phases
                )
                return state.buffer((stage, slot, -1 if is_once else max(micro_batch, 0)), value)
        return state.buffer((stage, slot, -1), value)

    def _with_frees(self, mesh: int, state: _MeshState) -> list[Instruction]:
        """Frees every buffer behind its last use."""
        kept = {buffer for at, buffer in self._outputs.values() if at == mesh}
        last: dict[int, int] = {}
        dead: set[int] = set()
        for position, instruction in enumerate(state.instructions):
            match instruction:
                case Run(program, inputs, outputs):
                    last.update(dict.fromkeys((*inputs, *outputs), position))
                    donated = {inputs[i] for i in self._programs[program].donated}
                    dead = (dead | donated) - set(outputs)
                case Send(buffer, _, _) | Recv(buffer, _, _):
                    last[buffer] = position
        ending: dict[int, list[int]] = {}
        for buffer, position in last.items():
            if buffer not in kept and buffer not in dead:
                ending.setdefault(position, []).append(buffer)
        result: list[Instruction] = []
        for position, instruction in enumerate(state.instructions):
            result.append(instruction)
            if position in ending:
                result.append(Free(tuple(sorted(ending[position]))))
        return result

    # The plan

    def _finish(self) -> PipelinePlan:
        values: dict[ValueSpec, int] = {}
        buffers = tuple(
            tuple(values.setdefault(value, len(values)) for value in state.values)
            for state in self._meshes
        )
        owners = {
            slot.number: self._schedule.mesh_of(number)
            for number, stage in reversed(list(enumerate(self._stages)))
            for phase in stage.phases
            if phase.runs_once
            for slot in phase.inputs
            if slot.kind == "input"
        }
        inputs = []
        for index, value in enumerate(self._step.inputs):
            places = self._placements.get(index, {})
            order = sorted(places, key=lambda mesh: (mesh != owners.get(index), mesh))
            inputs.append(
                PlanInput(
                    value,
                    index in self._step.batch,
                    index in self._step.donated,
                    tuple(p for mesh in order for p in self._placed(index, mesh, places[mesh])),
                )
            )
        missing = [name for i, name in enumerate(self._step.outputs) if i not in self._outputs]
        if missing:
            raise CompileError(f"{self._step.name}: no stage makes {', '.join(missing)}")
        firsts = {self._schedule.mesh_of(n): s for n, s in reversed(list(enumerate(self._stages)))}
        return PipelinePlan(
            name=self._step.name,
            num_micro_batches=self._schedule.num_micro_batches,
            schedule=self._schedule.name,
            meshes=tuple(
                PlanMesh(tuple(firsts[mesh].mesh.axes), firsts[mesh].devices)
                for mesh in range(len(self._meshes))
            ),
            programs=tuple(self._programs),
            values=tuple(values),
            buffers=buffers,
            instructions=tuple(tuple(state.instructions) for state in self._meshes),
            inputs=tuple(inputs),
            outputs=tuple(
                PlanOutput(*self._outputs[index], name)
                for index, name in enumerate(self._step.outputs)
            ),
        )

    def _placed(self, index: int, mesh: int, buffers: dict[int, int]) -> list[Placement]:
        """One placement per sharding in which a mesh needs an input."""
        if index not in self._step.batch:
            return [Placement(mesh, (buffer,)) for buffer in buffers]
        groups: dict[ValueSpec, dict[int, int]] = {}
        for buffer, at in buffers.items():
            groups.setdefault(self._meshes[mesh].values[buffer], {})[at] = buffer
        count = self._schedule.num_micro_batches
        return [Placement(mesh, tuple(group[m] for m in range(count))) for group in groups.values()]
