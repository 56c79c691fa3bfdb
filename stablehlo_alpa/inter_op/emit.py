"""From planned stages and a schedule to the instructions of every mesh."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeAlias

from alpa_runtime import ValueSpec
from alpa_runtime.plan import Plan, PlanMesh, PlanOutput, Run

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.errors import CompileError
from stablehlo_alpa.inter_op.beginnings import numbers_program, zeros_program
from stablehlo_alpa.inter_op.draft import ONCE, SHARED, PlanDraft
from stablehlo_alpa.inter_op.lifetimes import Lifetimes
from stablehlo_alpa.inter_op.routing import Router
from stablehlo_alpa.inter_op.step_inputs import StepInputs, StepInterface
from stablehlo_alpa.inter_op.traffic import Traffic, find_needs
from stablehlo_alpa.planning.lowering import InsideBytes
from stablehlo_alpa.planning.schedules import Schedule, TaskKind
from stablehlo_alpa.planning.stage import (
    APPLY,
    BACKWARD,
    FORWARD,
    NUMBER,
    PREPARE,
    WEIGHT,
    CostedProgram,
    PhaseProgram,
    Slot,
    SlotKind,
    StageBody,
    as_held,
    program_name,
)

# Slots that are the same buffer for every micro-batch.
_STANDING = frozenset((SlotKind.INPUT, SlotKind.ACCUMULATOR, SlotKind.OUTPUT))

_Side: TypeAlias = tuple[tuple[Slot, ValueSpec], ...]

_PHASES = {TaskKind.FORWARD: FORWARD, TaskKind.BACKWARD: BACKWARD, TaskKind.WEIGHT: WEIGHT}


def emit(
    stages: Sequence[StageBody],
    schedule: Schedule,
    step: StepInterface,
    device: DeviceSpec,
    inside_bytes: InsideBytes | None = None,
) -> tuple[Plan, tuple[CostedProgram, ...]]:
    """Writes the plan of a step.

    Args:
        stages: all stages, in order.
        schedule: of as many stages.
        step: the flat interface.
        device: prices what brings values from sharding to sharding.
        inside_bytes: measures what programs need.

    Returns:
        the plan, and what each of its programs costs.

    Raises:
        CompileError: the schedule leaves a phase out, or no stage makes a result.
    """
    return _Emitter(stages, schedule, step, device, inside_bytes or InsideBytes()).run()


class _Emitter:
    """Writes phases in the order of the schedule, and what each needs before it."""

    def __init__(
        self,
        stages: Sequence[StageBody],
        schedule: Schedule,
        step: StepInterface,
        device: DeviceSpec,
        inside_bytes: InsideBytes,
    ) -> None:
        self._stages, self._schedule, self._step = stages, schedule, step
        self._inside_bytes = inside_bytes
        self._lifetimes = Lifetimes(stages, schedule, step.donated)
        # The first stage of each mesh.
        firsts = {schedule.mesh_of(n): s for n, s in reversed(list(enumerate(stages)))}
        self._firsts = [firsts[mesh] for mesh in range(len(schedule.meshes))]
        self._draft = PlanDraft(len(schedule.meshes))
        needs = find_needs(stages, schedule)
        router = Router(device, inside_bytes)
        self._traffic = Traffic(self._draft, [s.mesh for s in self._firsts], needs, router)
        self._step_inputs = StepInputs(step, stages, schedule, self._draft, self._traffic)
        # By number of the output its mesh and buffer.
        self._outputs: dict[int, tuple[int, int]] = {}
        # By stage and name of a phase the buffers that stand through the step, and what all hold.
        self._standing: dict[tuple[int, str], dict[Slot, int]] = {}
        self._held: dict[tuple[int, str], tuple[_Side, _Side]] = {}

    def run(self) -> tuple[Plan, tuple[CostedProgram, ...]]:
        self._step_inputs.send_kept()
        self._number_micro_batches()
        for number, stage in enumerate(self._stages):
            self._run_zeros(number)
            self._run_phase(number, stage.phase(PREPARE), ONCE)
        for tasks in self._schedule.meshes:
            for task in tasks:
                phase = self._stages[task.stage].phase(_PHASES[task.kind])
                self._run_phase(task.stage, phase, task.micro_batch)
        updates = [p.name for stage in self._stages for p in stage.phases if p.is_update]
        for update in sorted(set(updates), key=lambda name: int(name.removeprefix(APPLY))):
            for number, stage in enumerate(self._stages):
                self._run_phase(number, stage.phase(update), ONCE)
        self._check_complete()
        kept: dict[int, set[int]] = {}
        for mesh, buffer in self._outputs.values():
            kept.setdefault(mesh, set()).add(buffer)
        self._draft.free(kept)
        return self._finish(), tuple(self._draft.programs)

    def _check_complete(self) -> None:
        for number, stage in enumerate(self._stages):
            for phase in stage.phases:
                if not self._draft.has_program((number, phase.name)):
                    raise CompileError(
                        f"{self._step.name}: schedule {self._schedule.name} never runs phase "
                        f"{phase.name} of stage {number}"
                    )
        missing = [name for i, name in enumerate(self._step.outputs) if i not in self._outputs]
        if missing:
            raise CompileError(f"{self._step.name}: no stage makes {', '.join(missing)}")

    def _run_zeros(self, stage: int) -> None:
        """What is joined over the micro-batches starts from zero."""
        planned = self._stages[stage]
        slots: dict[Slot, ValueSpec] = {}
        for phase in planned.phases:
            for slot, value in zip(phase.outputs, phase.program.outputs, strict=True):
                if slot.kind is SlotKind.ACCUMULATOR and slot in phase.inputs:
                    slots[slot] = value
        if not slots:
            return
        program = zeros_program(
            tuple(slots.values()), tuple(planned.mesh.axes), f"stage_{stage}_zeros"
        )
        mesh = self._schedule.mesh_of(stage)
        state = self._draft.meshes[mesh]
        outputs = tuple(state.buffer((stage, slot, ONCE), value) for slot, value in slots.items())
        self._draft.run(mesh, program, outputs, f"stage {stage} zeros")

    def _number_micro_batches(self) -> None:
        """Meshes on which something depends on it have the number of each micro-batch."""
        count = self._schedule.num_micro_batches
        for stage, planned in enumerate(self._stages):
            if NUMBER not in (slot for phase in planned.phases for slot in phase.inputs):
                continue
            program = numbers_program(count, tuple(planned.mesh.axes))
            mesh = self._schedule.mesh_of(stage)
            state = self._draft.meshes[mesh]
            outputs = tuple(
                state.buffer((SHARED, NUMBER, at), value)
                for at, value in enumerate(program.outputs)
            )
            if state.filled.isdisjoint(outputs):
                state.filled.update(outputs)
                # Meshes of one shape share it.
                self._draft.run(mesh, program, outputs, "micro-batches", key=program)

    def _run_phase(self, stage: int, phase: PhaseProgram | None, micro_batch: int) -> None:
        """Writes a phase, if the stage has it."""
        if phase is None:
            return
        mesh = self._schedule.mesh_of(stage)
        state = self._draft.meshes[mesh]
        taken, made = self._sides(stage, phase)
        inputs = self._inputs_of(stage, phase, taken, micro_batch)
        outputs = []
        for slot, value in made:
            is_joined = slot.kind in (SlotKind.ACCUMULATOR, SlotKind.OUTPUT)
            at = ONCE if is_joined or phase.runs_once else micro_batch
            outputs.append(state.buffer((stage, slot, at), value))
            if slot.kind is SlotKind.OUTPUT:
                self._outputs[slot.number] = (mesh, outputs[-1])
        label = f"stage {stage} {phase.name}"
        if not phase.runs_once:
            label += f" {micro_batch}"
        number = self._draft.add_program(
            (stage, phase.name), lambda: self._phase_program(stage, phase)
        )
        state.instructions.append(Run(number, inputs, tuple(outputs), label))
        for slot, buffer in zip(phase.outputs, outputs, strict=True):
            if slot.kind is SlotKind.TRANSFER:
                self._traffic.send(slot, mesh, buffer, micro_batch)

    def _phase_program(self, stage: int, phase: PhaseProgram) -> CostedProgram:
        """A phase's program, with what it donates filled in."""
        program = dataclasses.replace(
            phase.program,
            donated=self._lifetimes.donated(stage, phase),
            name=program_name(stage, phase.name),
        )
        # What is written over is no longer beside the results where the program needs the most.
        is_kept = not program.donated
        inside = phase.inside_bytes if is_kept else self._inside_bytes.of(program)
        return CostedProgram(program, phase.time_s, inside, phase.compute_s, phase.collectives)

    def _sides(self, stage: int, phase: PhaseProgram) -> tuple[_Side, _Side]:
        """Inputs and outputs of a phase, each a slot and what a buffer for it holds."""
        sides = self._held.get((stage, phase.name))
        if sides is None:
            inputs, outputs = (
                map(as_held, phase.program.inputs),
                map(as_held, phase.program.outputs),
            )
            sides = (
                tuple(zip(phase.inputs, inputs, strict=True)),
                tuple(zip(phase.outputs, outputs, strict=True)),
            )
            self._held[stage, phase.name] = sides
        return sides

    def _inputs_of(
        self, stage: int, phase: PhaseProgram, taken: _Side, micro_batch: int
    ) -> tuple[int, ...]:
        """The buffers that a phase takes, in order."""
        standing = self._standing.setdefault((stage, phase.name), {})
        buffers = []
        for slot, value in taken:
            buffer = standing.get(slot)
            if buffer is None:
                buffer = self._input(stage, slot, value, micro_batch)
                if slot.kind in _STANDING:
                    standing[slot] = buffer
            buffers.append(buffer)
        return tuple(buffers)

    def _input(self, stage: int, slot: Slot, value: ValueSpec, micro_batch: int) -> int:
        """The buffer that a phase of a stage takes for one of its slots."""
        mesh = self._schedule.mesh_of(stage)
        state, at = self._draft.meshes[mesh], max(micro_batch, 0)
        match slot.kind:
            case SlotKind.INPUT:
                return self._step_inputs.whole(slot, value, mesh)
            case SlotKind.BATCH:
                return self._step_inputs.fed(slot, value, at, mesh)
            case SlotKind.MICRO_BATCH:
                return state.buffer((SHARED, slot, at), value)
            case SlotKind.TRANSFER:
                return self._transfer(slot, value, at, mesh)
            case SlotKind.LOCAL:
                makers = self._lifetimes.makers_of(stage, slot)
                is_once = any(phase.runs_once for phase in makers)
                return state.buffer((stage, slot, ONCE if is_once else at), value)
        return state.buffer((stage, slot, ONCE), value)

    def _transfer(self, slot: Slot, value: ValueSpec, micro_batch: int, mesh: int) -> int:
        """The buffer of what another stage has made."""
        maker, made_by = self._lifetimes.senders[slot.number]
        at = ONCE if made_by.runs_once else micro_batch
        made = made_by.program.outputs[made_by.outputs.index(slot)]
        source = self._schedule.mesh_of(maker)
        if source == mesh:
            buffer = self._draft.meshes[mesh].buffer((maker, slot, at), made)
        else:
            buffer = self._traffic.receive(slot, made, source, mesh, at)
        return self._traffic.resharded(buffer, (SHARED, slot, at), value, mesh)

    def _finish(self) -> Plan:
        values: dict[ValueSpec, int] = {}
        meshes = self._draft.meshes
        buffers = tuple(
            tuple(values.setdefault(value, len(values)) for value in mesh.values) for mesh in meshes
        )
        return Plan(
            name=self._step.name,
            num_micro_batches=self._schedule.num_micro_batches,
            schedule=str(self._schedule.name),
            meshes=tuple(PlanMesh(tuple(s.mesh.axes), s.devices) for s in self._firsts),
            programs=tuple(costed.program for costed in self._draft.programs),
            reshardings=tuple(self._traffic.reshardings),
            values=tuple(values),
            buffers=buffers,
            instructions=tuple(tuple(mesh.instructions) for mesh in meshes),
            inputs=self._step_inputs.placed(),
            outputs=tuple(
                PlanOutput(*self._outputs[index], name)
                for index, name in enumerate(self._step.outputs)
            ),
        )
