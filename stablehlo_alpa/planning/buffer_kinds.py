"""What the buffers of a plan hold: parameters, optimiser state, activations and the like."""

from __future__ import annotations

from collections.abc import Sequence

import alpa_runtime
from alpa_runtime.plan import Recv, Run, Send

from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.planning.account import input_numbers
from stablehlo_alpa.planning.stage import FORWARD, PREPARE, PlannedStage, SlotKind
from stablehlo_alpa.view.page import (
    ACTIVATIONS,
    BATCH,
    GRADIENTS,
    MEMORY_KINDS,
    OPTIMISER,
    PARAMETERS,
    RESULTS,
)

_OF_SLOTS = {
    SlotKind.INPUT: OPTIMISER,
    SlotKind.OUTPUT: RESULTS,
    SlotKind.BATCH: BATCH,
    SlotKind.MICRO_BATCH: BATCH,
    SlotKind.TRANSFER: ACTIVATIONS,
    SlotKind.LOCAL: ACTIVATIONS,
    SlotKind.ACCUMULATOR: GRADIENTS,
}


def input_kinds(program: TracedProgram, stages: Sequence[PlannedStage]) -> tuple[str, ...]:
    """Per input of a step what it is, of `MEMORY_KINDS`.

    Numbers that a product or a look-up is reached from are parameters, and those that a forward
    phase reads, unless they are of the batch; what is left is state that the update alone reads,
    or no numbers, e.g. keys.
    """
    read: set[int] = set()
    for stage in stages:
        flags = zip(input_numbers(stage), stage.priced.graph.input_is_parameter, strict=True)
        read |= {number for number, is_one in flags if is_one and number is not None}
        for phase in stage.phases:
            if phase.name in (PREPARE, FORWARD):
                read |= {slot.number for slot in phase.inputs if slot.kind is SlotKind.INPUT}
    kinds = []
    for number, one in enumerate(program.inputs):
        is_parameter = number in read and "float" in one.dtype
        kind = PARAMETERS if is_parameter else OPTIMISER
        kinds.append(BATCH if number in program.batch else kind)
    return tuple(kinds)


def buffer_kinds(
    plan: alpa_runtime.Plan, stages: Sequence[PlannedStage], inputs: Sequence[str]
) -> tuple[tuple[int, ...], ...]:
    """Per mesh and buffer its kind, as a position in `MEMORY_KINDS`.

    Args:
        plan: what is run.
        stages: what its programs were made of.
        inputs: see `input_kinds`.
    """
    kinds: list[dict[int, str]] = [{} for _ in plan.meshes]
    for kind, value in zip(inputs, plan.inputs, strict=True):
        for placement in value.placements:
            kinds[placement.mesh].update(dict.fromkeys(placement.buffers, kind))
    for (mesh, buffer), kind in _updated(plan, inputs).items():
        kinds[mesh][buffer] = kind
    for output in plan.outputs:
        kinds[output.mesh].setdefault(output.buffer, RESULTS)
    slots = _slots_of(plan, stages)
    sent: dict[int, tuple[int, int]] = {}
    for mesh, instructions in enumerate(plan.instructions):
        for one in instructions:
            if isinstance(one, Run) and one.program in slots:
                for buffer, slot in zip(one.outputs, slots[one.program], strict=True):
                    kinds[mesh].setdefault(buffer, _OF_SLOTS[slot])
            if isinstance(one, Send):
                sent[one.transfer] = (mesh, one.buffer)
    _follow(plan, kinds, sent)
    return tuple(
        tuple(MEMORY_KINDS.index(own.get(buffer, ACTIVATIONS)) for buffer in range(len(values)))
        for own, values in zip(kinds, plan.buffers, strict=True)
    )


def _slots_of(
    plan: alpa_runtime.Plan, stages: Sequence[PlannedStage]
) -> dict[int, tuple[SlotKind, ...]]:
    """Per program what its outputs are."""
    phases = {
        f"stage_{number}_{phase.name}": tuple(slot.kind for slot in phase.outputs)
        for number, stage in enumerate(stages)
        for phase in stage.phases
    }
    found = {number: phases.get(one.name) for number, one in enumerate(plan.programs)}
    return {number: kinds for number, kinds in found.items() if kinds is not None}


def _updated(plan: alpa_runtime.Plan, inputs: Sequence[str]) -> dict[tuple[int, int], str]:
    """Outputs that take the place of inputs that are given away, as jax pairs them: in order."""
    waiting: dict[object, list[str]] = {}
    for kind, value in zip(inputs, plan.inputs, strict=True):
        if value.is_donated:
            waiting.setdefault((value.value.shape, value.value.dtype), []).append(kind)
    found = {}
    for output in plan.outputs:
        made = plan.value(output.mesh, output.buffer)
        if same := waiting.get((made.shape, made.dtype)):
            found[output.mesh, output.buffer] = same.pop(0)
    return found


def _follow(
    plan: alpa_runtime.Plan, kinds: list[dict[int, str]], sent: dict[int, tuple[int, int]]
) -> None:
    """What is received, gathered or zeroed is what it was made of, or is used as."""
    for _ in range(2):
        for mesh, instructions in enumerate(plan.instructions):
            for one in instructions:
                if isinstance(one, Recv) and one.transfer in sent:
                    source, buffer = sent[one.transfer]
                    if buffer in kinds[source]:
                        kinds[mesh].setdefault(one.buffer, kinds[source][buffer])
                if isinstance(one, Run) and len(one.inputs) == 1 and len(one.outputs) == 1:
                    kind = kinds[mesh].get(one.inputs[0])
                    if kind is not None:
                        kinds[mesh].setdefault(one.outputs[0], kind)
