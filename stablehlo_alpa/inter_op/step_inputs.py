"""Inputs of a step: which mesh keeps each, and the buffers that the caller fills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from alpa_runtime import ValueSpec
from alpa_runtime.plan import Placement, PlanInput

from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.draft import ONCE, SHARED, PlanDraft
from stablehlo_alpa.inter_op.traffic import Traffic
from stablehlo_alpa.inter_op.versions import Versions, once
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
        next_values: inputs that are state, donated or not, likewise.
        cut: inputs of which every update of the step has a part.
    """

    name: str
    inputs: tuple[ValueSpec, ...]
    outputs: tuple[str, ...]
    donated: Mapping[int, int]
    next_values: Mapping[int, int] = field(default_factory=dict)
    cut: frozenset[int] = frozenset()

    @cached_property
    def previous(self) -> Mapping[int, int]:
        """By number of an output the input whose next value it is."""
        return {output: index for index, output in self.next_values.items()}

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
                is_on_host=value.is_on_host,
            )
            for index, value in enumerate(program.inputs)
        )
        return cls(
            identifier(program.name),
            inputs,
            tuple(value.name for value in program.outputs),
            {i: program.aliases[i] for i in program.donated if i in program.aliases},
            program.aliases,
            program.batch if program.num_parts > 1 else frozenset(),
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
        versions: Versions,
    ) -> None:
        """Nothing is placed yet."""
        self._step, self._schedule, self._draft = step, schedule, draft
        self._traffic, self._versions = traffic, versions
        self._keepers = dict(_find_keepers(stages))
        if schedule.is_asynchronous:
            self._keepers.update(versions.makers)
        # By input and mesh the buffers, each with the micro-batch whose part it holds, or ONCE.
        self._placements: dict[int, dict[int, dict[int, int]]] = {}

    def send_kept(self) -> None:
        """State that several meshes need goes to the others from the mesh that keeps it."""
        for slot, meshes in self._traffic.needs.items():
            if slot.kind is not SlotKind.INPUT or self._is_given(slot.number):
                continue
            keeper = self._keeper(slot.number)
            targets = self._first_readers(slot, meshes)
            if any(mesh != keeper for mesh in targets):
                self._traffic.send(slot, keeper, self._kept(slot, keeper), ONCE, targets)

    def _first_readers(self, slot: Slot, meshes: Iterable[int]) -> Set[int]:
        """The meshes that read an input as the step begins with it."""
        is_state = slot.number in self._step.next_values
        if is_state and self._schedule.is_asynchronous:
            return self._versions.readers(slot, 0)
        return frozenset(meshes)

    def whole(self, slot: Slot, value: ValueSpec, mesh: int, update: int = 0) -> int:
        """The buffer of an input on a mesh that uses it, or of the part that an update has."""
        if self._is_cut(slot.number):
            return self.fed(slot, value, once(update), mesh)
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
            is_cut = self._is_cut(index)
            found = (p for mesh in order for p in self._placed(mesh, places[mesh], is_cut))
            inputs.append(PlanInput(value, index in self._step.donated, tuple(found)))
        return tuple(inputs)

    def _is_given(self, number: int) -> bool:
        """Whether no mesh sends an input to another."""
        return self._is_cut(number) or self._is_fed(number)

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

    def _is_cut(self, number: int) -> bool:
        """Whether each of several updates has its part of an input."""
        return number in self._step.cut and self._schedule.num_updates > 1

    def _placed(self, mesh: int, buffers: dict[int, int], is_cut: bool) -> list[Placement]:
        """One placement per sharding in which a mesh needs an input, whole or in parts.

        Parts are micro-batches or, of what is cut, those of updates.
        """
        whole: list[Placement] = []
        groups: dict[tuple[ValueSpec, bool], dict[int, int]] = {}
        for buffer, at in buffers.items():
            value = self._draft.meshes[mesh].values[buffer]
            if at == ONCE and not is_cut:
                whole.append(Placement(mesh, (buffer,)))
            else:
                groups.setdefault((value, at < 0), {})[at] = buffer
        parts = [
            tuple(buffer for _, buffer in sorted(group.items(), key=lambda one: abs(one[0])))
            for group in groups.values()
        ]
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
