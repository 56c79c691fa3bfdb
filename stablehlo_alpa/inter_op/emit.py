"""From planned stages and a schedule to the instructions of every mesh."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence, Set

from alpa_runtime import ValueSpec
from alpa_runtime.plan import Plan, PlanMesh, PlanOutput, Run

from stablehlo_alpa.errors import CompileError
from stablehlo_alpa.inter_op.beginnings import numbers_program, zeros_program
from stablehlo_alpa.inter_op.draft import ONCE, SHARED, PlanDraft
from stablehlo_alpa.inter_op.lifetimes import Lifetimes
from stablehlo_alpa.inter_op.phase_inputs import PhaseInputs, Side
from stablehlo_alpa.inter_op.routing import Router
from stablehlo_alpa.inter_op.step_inputs import StepInputs, StepInterface
from stablehlo_alpa.inter_op.traffic import Traffic, find_needs
from stablehlo_alpa.inter_op.versions import Moment, Versions, once
from stablehlo_alpa.planning.lowering import InsideBytes
from stablehlo_alpa.planning.schedules import Schedule, Task, TaskKind
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

_PHASES = {TaskKind.FORWARD: FORWARD, TaskKind.BACKWARD: BACKWARD, TaskKind.WEIGHT: WEIGHT}


def emit(
    stages: Sequence[StageBody],
    schedule: Schedule,
    step: StepInterface,
    inside_bytes: InsideBytes | None = None,
) -> tuple[Plan, tuple[CostedProgram, ...]]:
    """Writes the plan of a step.

    Args:
        stages: all stages, in order.
        schedule: of as many stages.
        step: the flat interface.
        inside_bytes: measures what programs need.

    Returns:
        the plan, and what each of its programs costs.

    Raises:
        CompileError: the schedule leaves a phase out, or no stage makes a result.
    """
    return _Emitter(stages, schedule, step, inside_bytes or InsideBytes()).run()


class _Emitter:
    """Writes phases in the order of the schedule, and what each needs before it."""

    def __init__(
        self,
        stages: Sequence[StageBody],
        schedule: Schedule,
        step: StepInterface,
        inside_bytes: InsideBytes,
    ) -> None:
        self._stages, self._schedule, self._step = stages, schedule, step
        self._inside_bytes = inside_bytes
        self._lifetimes = Lifetimes(stages, schedule, step.donated)
        self._versions = Versions(stages, schedule, step.next_values)
        # The first stage of each mesh.
        firsts = {schedule.mesh_of(n): s for n, s in reversed(list(enumerate(stages)))}
        self._firsts = [firsts[mesh] for mesh in range(len(schedule.meshes))]
        self._draft = PlanDraft(len(schedule.meshes))
        router = Router(inside_bytes)
        meshes, needs = [s.mesh for s in self._firsts], find_needs(stages, schedule)
        self._traffic = Traffic(self._draft, meshes, needs, router)
        self._step_inputs = StepInputs(
            step, stages, schedule, self._draft, self._traffic, self._versions
        )
        self._inputs = PhaseInputs(
            schedule, self._draft, self._traffic, self._step_inputs, self._lifetimes, self._versions
        )
        # By number of the output its mesh and buffer.
        self._outputs: dict[int, tuple[int, int]] = {}
        # By stage and name of a phase what its buffers hold.
        self._held: dict[tuple[int, str], tuple[Side, Side]] = {}
        # By stage, name of a phase and key of an update, per result the buffer that all
        # micro-batches of the update share.
        self._shared: dict[tuple[int, str, int], list[int | None]] = {}

    def run(self) -> tuple[Plan, tuple[CostedProgram, ...]]:
        _check_prepared(self._stages, self._schedule, self._step)
        self._step_inputs.send_kept()
        self._number_micro_batches()
        for number, stage in enumerate(self._stages):
            if not self._schedule.is_asynchronous:
                self._run_zeros(number, stage.phases)
            self._run_phase(number, stage.phase(PREPARE), Moment(ONCE))
        for tasks in self._schedule.meshes:
            for task in tasks:
                self._run_task(task)
        if not self._schedule.is_asynchronous:
            self._update(range(len(self._stages)), Moment(ONCE))
        self._check_complete()
        kept: dict[int, set[int]] = {}
        for mesh, buffer in self._outputs.values():
            kept.setdefault(mesh, set()).add(buffer)
        self._draft.free(kept)
        return self._finish(), tuple(self._draft.programs)

    def _run_task(self, task: Task) -> None:
        if task.kind is TaskKind.UPDATE:
            self._update((task.stage,), Moment(ONCE, task.micro_batch))
            if task.micro_batch + 1 < self._schedule.num_updates:
                prepare = self._stages[task.stage].phase(PREPARE)
                self._run_phase(task.stage, prepare, Moment(ONCE, task.micro_batch + 1))
            return
        at = Moment(task.micro_batch, self._schedule.update_of(task.micro_batch))
        phase = self._stages[task.stage].phase(_PHASES[task.kind])
        if phase is not None and self._schedule.is_asynchronous:
            # Only as they are needed: several updates may be on their way.
            self._run_zeros(task.stage, (phase,), at.update)
        self._run_phase(task.stage, phase, at)

    def _update(self, stages: Sequence[int], at: Moment) -> None:
        """Phases of stages behind the micro-batches of an update."""
        updates = {p.name for number in stages for p in self._stages[number].phases if p.is_update}
        for update in sorted(updates, key=lambda name: int(name.removeprefix(APPLY))):
            for number in stages:
                self._run_phase(number, self._stages[number].phase(update), at)

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

    def _run_zeros(self, stage: int, phases: Sequence[PhaseProgram], update: int = 0) -> None:
        """What phases join over the micro-batches of an update starts from zero."""
        mesh, at = self._schedule.mesh_of(stage), once(update)
        state = self._draft.meshes[mesh]
        slots: dict[Slot, ValueSpec] = {}
        for phase in phases:
            taken = frozenset(phase.inputs)
            for slot, value in zip(phase.outputs, phase.program.outputs, strict=True):
                if slot.kind is SlotKind.ACCUMULATOR and slot in taken:
                    slots[slot] = value
        buffers = {slot: state.buffer((stage, slot, at), value) for slot, value in slots.items()}
        if state.filled.issuperset(buffers.values()):
            return
        state.filled.update(buffers.values())
        name = f"stage_{stage}_zeros"
        if self._schedule.is_asynchronous:
            name += f"_{phases[0].name}"
        axes = tuple(self._stages[stage].mesh.axes)
        program = zeros_program(tuple(slots.values()), axes, name)
        self._draft.run(mesh, program, tuple(buffers.values()), f"stage {stage} zeros")

    def _number_micro_batches(self) -> None:
        """Meshes on which something depends on it have the number of each micro-batch."""
        count = self._schedule.num_micro_batches // self._schedule.num_updates
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

    def _run_phase(self, stage: int, phase: PhaseProgram | None, at: Moment) -> None:
        """Writes a phase, if the stage has it."""
        if phase is None:
            return
        mesh = self._schedule.mesh_of(stage)
        state = self._draft.meshes[mesh]
        taken, made = self._sides(stage, phase)
        inputs = self._inputs.of(stage, phase, taken, at)
        outputs = self._made_in(stage, phase, made, at)
        label = f"stage {stage} {phase.name}"
        if not phase.runs_once:
            label += f" {at.micro_batch}"
        elif self._schedule.is_asynchronous:
            label += f" {at.update}"
        number = self._draft.add_program(
            (stage, phase.name), lambda: self._phase_program(stage, phase)
        )
        state.instructions.append(Run(number, inputs, tuple(outputs), label))
        self._send_made(phase, mesh, outputs, at)

    def _made_in(self, stage: int, phase: PhaseProgram, made: Side, at: Moment) -> list[int]:
        """The buffers of what a phase makes, in order."""
        mesh, once_key = self._schedule.mesh_of(stage), at.once
        state = self._draft.meshes[mesh]
        shared = self._shared.setdefault((stage, phase.name, once_key), [None] * len(made))
        outputs = []
        for position, (slot, value) in enumerate(made):
            buffer = shared[position]
            if buffer is None:
                is_joined = slot.kind in (SlotKind.ACCUMULATOR, SlotKind.OUTPUT)
                is_shared = is_joined or phase.runs_once
                key = once_key if is_shared else at.micro_batch
                buffer = state.buffer((stage, slot, key), value)
                if is_shared:
                    shared[position] = buffer
            if slot.kind is SlotKind.OUTPUT:
                self._outputs[slot.number] = (mesh, buffer)
            outputs.append(buffer)
        return outputs

    def _send_made(
        self, phase: PhaseProgram, mesh: int, outputs: Sequence[int], at: Moment
    ) -> None:
        """Sends what a phase has made to the meshes that need it."""
        for slot, buffer in zip(phase.outputs, outputs, strict=True):
            if slot.kind is SlotKind.TRANSFER:
                key, targets = (at.once if phase.runs_once else at.micro_batch), None
                if phase.name == PREPARE and self._schedule.is_asynchronous:
                    targets = self._versions.readers(slot, at.update)
                self._traffic.send(slot, mesh, buffer, key, targets)
            state = self._step.previous.get(slot.number) if slot.kind is SlotKind.OUTPUT else None
            if state is not None and self._schedule.is_asynchronous:
                slot, version = Slot(SlotKind.INPUT, state), at.update + 1
                targets = self._versions.readers(slot, version)
                _check_key(self._schedule, self._step, state, targets - {mesh})
                self._traffic.send(slot, mesh, buffer, once(version), targets)

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

    def _sides(self, stage: int, phase: PhaseProgram) -> tuple[Side, Side]:
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


def _check_prepared(stages: Sequence[StageBody], schedule: Schedule, step: StepInterface) -> None:
    """Refuses what is made once of the part of the batch that an update has."""
    cut = step.cut if schedule.num_updates > 1 else ()
    for number, stage in enumerate(stages):
        phase = stage.phase(PREPARE)
        for slot in phase.inputs if phase else ():
            if slot.kind is SlotKind.INPUT and slot.number in cut:
                raise CompileError(
                    f"{step.name}: stage {number} makes something of "
                    f"{step.inputs[slot.number].name} once for all micro-batches of an update, and "
                    f"schedule {schedule.name} has {schedule.num_updates} updates in a call, each "
                    "with a part of it: batch_argnums= says which arguments are cut, or take "
                    "micro_batches_per_update=1"
                )


def _check_key(schedule: Schedule, step: StepInterface, number: int, targets: Set[int]) -> None:
    """Refuses a PRNG key that goes from mesh to mesh: only a caller gives keys away."""
    if targets and step.inputs[number].key_impl is not None:
        raise CompileError(
            f"{step.name}: {step.inputs[number].name} is a PRNG key that several stages read and "
            f"each update of schedule {schedule.name} replaces: keep one key, and draw by "
            "jax.random.fold_in(key, count) with a count in the state"
        )
