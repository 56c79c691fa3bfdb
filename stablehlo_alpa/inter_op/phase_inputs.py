"""The buffers that phases take: inputs of the step, what other phases and stages have made."""

from __future__ import annotations

from typing import TypeAlias

from alpa_runtime import ValueSpec

from stablehlo_alpa.inter_op.draft import ONCE, SHARED, PlanDraft
from stablehlo_alpa.inter_op.lifetimes import Lifetimes
from stablehlo_alpa.inter_op.step_inputs import StepInputs
from stablehlo_alpa.inter_op.traffic import Traffic
from stablehlo_alpa.inter_op.versions import Moment, Versions, once
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import PREPARE, PhaseProgram, Slot, SlotKind

# Slots that are the same buffer for every micro-batch.
_STANDING = frozenset((SlotKind.INPUT, SlotKind.ACCUMULATOR, SlotKind.OUTPUT))

Side: TypeAlias = tuple[tuple[Slot, ValueSpec], ...]
"""Inputs or outputs of a phase, each a slot and what a buffer for it holds."""


class PhaseInputs:
    """Finds buffers, and writes what brings values into them."""

    def __init__(
        self,
        schedule: Schedule,
        draft: PlanDraft,
        traffic: Traffic,
        step_inputs: StepInputs,
        lifetimes: Lifetimes,
        versions: Versions,
    ) -> None:
        """Nothing was asked for yet."""
        self._schedule, self._draft, self._traffic = schedule, draft, traffic
        self._step_inputs, self._lifetimes = step_inputs, lifetimes
        self._versions = versions
        # By stage, name of a phase and moment the buffers that stand through the step.
        self._standing: dict[tuple[int, str, Moment], dict[Slot, int]] = {}

    def of(self, stage: int, phase: PhaseProgram, taken: Side, at: Moment) -> tuple[int, ...]:
        """The buffers that a phase takes, in order."""
        # Where weights change within a step, other micro-batches take others.
        moment = at if self._schedule.is_asynchronous else Moment(ONCE)
        standing = self._standing.setdefault((stage, phase.name, moment), {})
        buffers = []
        for slot, value in taken:
            buffer = standing.get(slot)
            if buffer is None:
                buffer = self._input(stage, slot, value, at)
                if slot.kind in _STANDING:
                    standing[slot] = buffer
            buffers.append(buffer)
        return tuple(buffers)

    def _input(self, stage: int, slot: Slot, value: ValueSpec, at: Moment) -> int:
        """The buffer that a phase of a stage takes for one of its slots."""
        mesh, per_update = self._schedule.mesh_of(stage), self._schedule.micro_batches_per_update
        state, number = self._draft.meshes[mesh], at.micro_batch
        if number < 0:
            # What every micro-batch of an update makes alike.
            number = at.update * (per_update or 0)
        match slot.kind:
            case SlotKind.INPUT:
                version = self._versions.of(stage, slot, at)
                if version:
                    return self._next_version(slot, value, version, mesh)
                return self._step_inputs.whole(slot, value, mesh, at.update)
            case SlotKind.BATCH:
                return self._step_inputs.fed(slot, value, number, mesh)
            case SlotKind.MICRO_BATCH:
                number %= per_update or self._schedule.num_micro_batches
                return state.buffer((SHARED, slot, number), value)
            case SlotKind.TRANSFER:
                return self._transfer(stage, slot, value, number, at)
            case SlotKind.LOCAL:
                makers = self._lifetimes.makers_of(stage, slot)
                if any(phase.runs_once for phase in makers):
                    number = self._made_once(stage, slot, makers[0], at)
                return state.buffer((stage, slot, number), value)
        return state.buffer((stage, slot, at.once), value)

    def _made_once(self, stage: int, slot: Slot, made_by: PhaseProgram, at: Moment) -> int:
        """In place of the number of a micro-batch, where something was made once per update."""
        is_version = made_by.name == PREPARE and self._schedule.is_asynchronous
        return once(self._versions.of(stage, slot, at)) if is_version else at.once

    def _next_version(self, slot: Slot, value: ValueSpec, version: int, mesh: int) -> int:
        """The buffer of what updates of this step have made of an input."""
        maker = self._versions.makers[slot.number]
        output = Slot(SlotKind.OUTPUT, self._versions.outputs[slot.number])
        phase = self._lifetimes.makers_of(maker, output)[-1]
        made = phase.program.outputs[phase.outputs.index(output)]
        source = self._schedule.mesh_of(maker)
        if source == mesh:
            key = (maker, output, once(version - 1))
            buffer = self._draft.meshes[mesh].buffer(key, made)
        else:
            buffer = self._traffic.receive(slot, made, source, mesh, once(version))
        return self._traffic.resharded(buffer, (SHARED, slot, once(version)), value, mesh)

    def _transfer(self, stage: int, slot: Slot, value: ValueSpec, number: int, at: Moment) -> int:
        """The buffer of what another stage has made of a micro-batch, or once per update."""
        mesh = self._schedule.mesh_of(stage)
        maker, made_by = self._lifetimes.senders[slot.number]
        key = self._made_once(stage, slot, made_by, at) if made_by.runs_once else number
        made = made_by.program.outputs[made_by.outputs.index(slot)]
        source = self._schedule.mesh_of(maker)
        if source == mesh:
            buffer = self._draft.meshes[mesh].buffer((maker, slot, key), made)
        else:
            buffer = self._traffic.receive(slot, made, source, mesh, key)
        return self._traffic.resharded(buffer, (SHARED, slot, key), value, mesh)
