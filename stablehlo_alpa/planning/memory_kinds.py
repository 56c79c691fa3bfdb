"""What the memory of a mesh is taken by, where it holds the most."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from alpa_runtime.buffer_memory import peak_of
from alpa_runtime.plan import Recv, Run

from stablehlo_alpa.planning.saved_plan import SavedPlan
from stablehlo_alpa.planning.stage import Slot, SlotKind


class MemoryKind(enum.StrEnum):
    """What bytes are for."""

    PARAMETERS = "parameters"
    STATE = "state"  # what else the step takes and gives back: an optimiser's moments
    GRADIENTS = "gradients"  # what is joined over the micro-batches
    ACTIVATIONS = "activations"  # what one phase leaves to a later one
    TRANSFERS = "transfers"  # values between stages, on both sides
    BATCH = "batch"  # inputs that are not given away
    RESULTS = "results"
    WORKSPACE = "workspace"  # inside the program that runs


_OF_SLOT: Mapping[SlotKind, MemoryKind] = {
    SlotKind.BATCH: MemoryKind.BATCH,
    SlotKind.MICRO_BATCH: MemoryKind.BATCH,
    SlotKind.TRANSFER: MemoryKind.TRANSFERS,
    SlotKind.LOCAL: MemoryKind.ACTIVATIONS,
    SlotKind.ACCUMULATOR: MemoryKind.GRADIENTS,
}


def memory_by_kind(plan: SavedPlan, mesh: int) -> dict[MemoryKind, float]:
    """Bytes per device at the peak, those that are none left out; their sum is the peak.

    Args:
        plan: the plan.
        mesh: number of the mesh.
    """
    runtime = plan.runtime
    peak = peak_of(runtime, mesh, [cost.inside_bytes for cost in plan.costs])
    kinds, sizes = _kinds(plan, mesh), runtime.sizes(mesh)
    found: dict[MemoryKind, float] = {}
    for buffer in peak.buffers:
        kind = kinds.get(buffer, MemoryKind.WORKSPACE)
        bytes_ = runtime.value(mesh, buffer).held_bytes(sizes)
        found[kind] = found.get(kind, 0.0) + bytes_
    found[MemoryKind.WORKSPACE] = found.get(MemoryKind.WORKSPACE, 0.0) + peak.inside_bytes
    return {kind: found[kind] for kind in MemoryKind if found.get(kind)}


def _kinds(plan: SavedPlan, mesh: int) -> dict[int, MemoryKind]:
    """By buffer of a mesh what it is for: as the phases that take and make it call it."""
    found: dict[int, MemoryKind] = {}
    for index, value in enumerate(plan.runtime.inputs):
        for placement in value.placements:
            if placement.mesh == mesh:
                found |= dict.fromkeys(placement.buffers, _of_input(plan, index))
    phases = {
        one.program: (tuple(map(Slot.parse, one.inputs)), tuple(map(Slot.parse, one.outputs)))
        for stage in plan.account.stages
        for one in stage.phases
    }
    for instruction in plan.runtime.instructions[mesh]:
        if isinstance(instruction, Recv):
            found.setdefault(instruction.buffer, MemoryKind.TRANSFERS)
        if isinstance(instruction, Run) and instruction.program in phases:
            both = zip(
                (instruction.inputs, instruction.outputs), phases[instruction.program], strict=True
            )
            for buffers, slots in both:
                for buffer, slot in zip(buffers, slots, strict=True):
                    found.setdefault(buffer, _of_slot(plan, slot))
    return found


def _of_slot(plan: SavedPlan, slot: Slot) -> MemoryKind:
    if slot.kind is SlotKind.INPUT:
        return _of_input(plan, slot.number)
    if slot.kind is SlotKind.OUTPUT:
        index = plan.account.next_values.get(slot.number)
        return MemoryKind.RESULTS if index is None else _of_input(plan, index)
    return _OF_SLOT[slot.kind]


def _of_input(plan: SavedPlan, index: int) -> MemoryKind:
    if index in plan.account.parameters:
        return MemoryKind.PARAMETERS
    is_state = index in dict(plan.account.donated)
    return MemoryKind.STATE if is_state else MemoryKind.BATCH
