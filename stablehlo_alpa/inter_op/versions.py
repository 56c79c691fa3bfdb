"""Which of the versions of what a step updates a phase reads, where it updates several times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stablehlo_alpa.inter_op.draft import ONCE
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import PREPARE, PhaseProgram, Slot, SlotKind, StageBody


@dataclass(frozen=True)
class Moment:
    """When a phase runs.

    Attributes:
        micro_batch: number in the step; ``ONCE`` for what runs once per update.
        update: that it is for.
    """

    micro_batch: int
    update: int = 0

    @property
    def once(self) -> int:
        """In place of the number of a micro-batch: there once per update."""
        return once(self.update)


def once(update: int) -> int:
    """In place of the number of a micro-batch: what is there once per update, of one of them."""
    return ONCE - update


class Versions:
    """Versions of the inputs of a step that are state, and of what is made of them before all else.

    Version ``v`` is there behind ``v`` updates. An update reads the versions that it replaces. A
    micro-batch reads one version of each value, in all stages: the oldest that any stage that keeps
    or reads it has as the micro-batch goes forward.

    Attributes:
        outputs: by number of an input the output of the step that follows it.
        makers: by number of an input the stage that makes that.
    """

    def __init__(
        self, stages: Sequence[StageBody], schedule: Schedule, next_values: Mapping[int, int]
    ) -> None:
        """Takes the stages, their schedule, and by number of an input the output that follows."""
        self._schedule, self.outputs = schedule, next_values
        inputs = {output: index for index, output in next_values.items()}
        # By slot the stages whose updates its versions depend on.
        self._stages: dict[Slot, set[int]] = {}
        readers: dict[Slot, set[int]] = {}
        self.makers: dict[int, int] = {}
        for number, stage in enumerate(stages):
            for phase in stage.phases:
                for slot in phase.outputs:
                    if slot.kind is SlotKind.OUTPUT and slot.number in inputs:
                        self.makers[inputs[slot.number]] = number
                    if phase.name == PREPARE and slot.kind is SlotKind.TRANSFER:
                        self._stages[slot] = {number}
                for slot in () if phase.runs_once else phase.inputs:
                    readers.setdefault(slot, set()).add(number)
        for index, maker in self.makers.items():
            self._stages[Slot(SlotKind.INPUT, index)] = {maker}
        for slot, own in self._stages.items():
            own |= readers.get(slot, set())
        self._reads = self._find_reads(stages) if schedule.is_asynchronous else {}

    def of(self, stage: int, slot: Slot, at: Moment) -> int:
        """The version of a slot that a phase of a stage reads."""
        if slot.kind is SlotKind.LOCAL:
            # Made of the parameters by the stage itself.
            versioned = {stage}
        elif slot not in self._stages:
            return 0
        else:
            versioned = self._stages[slot]
        if at.micro_batch < 0:
            return at.update
        return min(self._schedule.version(one, at.micro_batch) for one in versioned)

    def readers(self, slot: Slot, version: int) -> frozenset[int]:
        """Meshes on which some phase reads a version."""
        return frozenset(self._reads.get((slot, version), ()))

    def moments(self, phase: PhaseProgram) -> Sequence[Moment]:
        """When a phase runs."""
        schedule = self._schedule
        if phase.runs_once:
            return [Moment(ONCE, update) for update in range(schedule.num_updates)]
        each = range(schedule.num_micro_batches)
        return [Moment(number, schedule.update_of(number)) for number in each]

    def _find_reads(self, stages: Sequence[StageBody]) -> dict[tuple[Slot, int], set[int]]:
        found: dict[tuple[Slot, int], set[int]] = {}
        for number, stage in enumerate(stages):
            mesh = self._schedule.mesh_of(number)
            for phase in stage.phases:
                own = [slot for slot in dict.fromkeys(phase.inputs) if slot in self._stages]
                for at in self.moments(phase) if own else ():
                    for slot in own:
                        found.setdefault((slot, self.of(number, slot, at)), set()).add(mesh)
        return found
