"""Inputs of a step: which mesh keeps each, and the buffers that the caller fills."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from alpa_runtime import ValueSpec
from alpa_runtime.plan import Placement, PlanInput

from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.draft import ONCE, SHARED, PlanDraft
from stablehlo_alpa.inter_op.traffic import Traffic
from stablehlo_alpa.planning.lowering import identifier
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import Slot, SlotKind, StageBody

# Inputs of at most so many bytes are fed to every mesh that needs them, unless they are state.
# Heuristic.
_SMALL_BYTES = 1024


@dataclass(frozen=True)
class StepInterface:
    """Flat inputs and outputs of a step as the caller sees them.

    Attributes:
        name: of the function.
        inputs: what the caller passes.
        outputs: names of the results.
        donated: inputs whose buffers the step may overwrite, and the outputs that are their next
            values.
    """

    name: str
    inputs: tuple[ValueSpec, ...]
    outputs: tuple[str, ...]
    donated: Mapping[int, int]

    @classmethod
    def of(cls, program: TracedProgram) -> StepInterface:
        """That of a step."""
        inputs = tuple(
            ValueSpec(
                (value.shape[0] * program.num_parts, *value.shape[1:])
                if index in program.batch and program.num_parts > 1
                else value.shape,
                value.dtype,
                ((),) * len(value.shape),
                value.key_impl,
                value.is_weak,
                value.name,
            )
            for index, value in enumerate(program.inputs)
        )
        return cls(
            identifier(program.name),
            inputs,
            tuple(value.name for value in program.outputs),
            {i: program.aliases[i] for i in program.donated if i in program.aliases},
        )


class StepInputs:
    """Brings inputs to the meshes that need them.

    State is kept by one mesh, which sends it to others; what is small, and keys, the caller gives
    to every mesh.
    """

    def __init__(
        self,
        step: StepInterface,
        stages: Sequence[StageBody],
        schedule: Schedule,
        draft: PlanDraft,
        traffic: Traffic,
    ) -> None:
        """Nothing is placed yet."""
        self._step, self._schedule, self._draft = step, schedule, draft
        self._traffic = traffic
        self._keepers = _find_keepers(stages)
        # By input and mesh the buffers, each with the micro-batch whose part it holds, or ONCE.
        self._placements: dict[int, dict[int, dict[int, int]]] = {}

    def send_kept(self) -> None:
        """State that several meshes need goes to the others from the mesh that keeps it."""
        for slot, meshes in self._traffic.needs.items():
            if slot.kind is SlotKind.INPUT and not self._is_fed(slot.number):
                keeper = self._keeper(slot.number)
                if any(mesh != keeper for mesh in meshes):
                    self._traffic.send(slot, keeper, self._kept(slot, keeper), ONCE)

    def whole(self, slot: Slot, value: ValueSpec, mesh: int) -> int:
        """The buffer of an input on a mesh that uses it."""
        if self._is_fed(slot.number):
            return self.fed(slot, value, ONCE, mesh)
        keeper = self._keeper(slot.number)
        if keeper == mesh:
            buffer = self._kept(slot, mesh)
        else:
            kept = self._traffic.needs[slot][keeper]
            buffer = self._traffic.receive(slot, kept, keeper, mesh, ONCE)
        return self._traffic.resharded(buffer, (SHARED, slot, ONCE), value, mesh)

    def fed(self, slot: Slot, value: ValueSpec, at: int, mesh: int) -> int:
        """The buffer of an input that the caller gives to a mesh, whole (ONCE) or a part of it."""
        buffer = self._draft.meshes[mesh].buffer((SHARED, slot, at), value)
        places = self._placements.setdefault(slot.number, {}).setdefault(mesh, {})
        places.setdefault(buffer, at)
        return buffer

    def placed(self) -> tuple[PlanInput, ...]:
        """All inputs with the buffers that they fill."""
        inputs = []
        for index, value in enumerate(self._step.inputs):
            places = self._placements.get(index, {})
            keeper = self._keeper(index) if places else 0
            order = sorted(places, key=lambda mesh: (mesh != keeper, mesh))
            found = (p for mesh in order for p in self._placed(mesh, places[mesh]))
            inputs.append(PlanInput(value, index in self._step.donated, tuple(found)))
        return tuple(inputs)

    def _is_fed(self, number: int) -> bool:
        """Whether the caller gives an input to every mesh that needs it, instead of to one."""
        value = self._step.inputs[number]
        if value.key_impl is not None:
            return True
        return number not in self._step.donated and value.local_bytes({}) <= _SMALL_BYTES

    def _keeper(self, number: int) -> int:
        """The mesh that keeps an input."""
        return self._schedule.mesh_of(self._keepers[number])

    def _kept(self, slot: Slot, mesh: int) -> int:
        """The buffer of an input on the mesh that keeps it."""
        return self.fed(slot, self._traffic.needs[slot][mesh], ONCE, mesh)

    def _placed(self, mesh: int, buffers: dict[int, int]) -> list[Placement]:
        """One placement per sharding in which a mesh needs an input, whole or in parts."""
        whole = [Placement(mesh, (buffer,)) for buffer, at in buffers.items() if at < 0]
        groups: dict[ValueSpec, dict[int, int]] = {}
        for buffer, at in buffers.items():
            if at >= 0:
                groups.setdefault(self._draft.meshes[mesh].values[buffer], {})[at] = buffer
        count = self._schedule.num_micro_batches
        parts = [tuple(group[m] for m in range(count)) for group in groups.values()]
        return whole + [Placement(mesh, part) for part in parts]


def _find_keepers(stages: Sequence[StageBody]) -> Mapping[int, int]:
    """Per input the stage that keeps it: the one that makes its next value, or the first user."""
    keepers: dict[int, int] = {}
    for number, stage in enumerate(stages):
        for phase in stage.phases:
            for slot in phase.inputs:
                if slot.kind in (SlotKind.INPUT, SlotKind.BATCH):
                    keepers.setdefault(slot.number, number)
    for number, stage in reversed(list(enumerate(stages))):
        for phase in stage.phases:
            if phase.is_update:
                inputs = (slot.number for slot in phase.inputs if slot.kind is SlotKind.INPUT)
                keepers.update(dict.fromkeys(inputs, number))
    return keepers
