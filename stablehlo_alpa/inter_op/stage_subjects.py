"""A stage of a step as something that is split over one mesh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stablehlo_alpa.compiler import Module, Signature, Values, parse_tensor_type
from stablehlo_alpa.frontend import TracedProgram, TracedValue
from stablehlo_alpa.inter_op.slicing import CutStages
from stablehlo_alpa.planning.boundary import Boundary, Companions
from stablehlo_alpa.planning.confinement import companions
from stablehlo_alpa.planning.lowering import traced_value
from stablehlo_alpa.planning.mesh_search import Candidate, Subject
from stablehlo_alpa.planning.stage import Slot, SlotKind
from stablehlo_alpa.store import OFF, Record, Store


def prepare_stage(
    cut: CutStages,
    number: int,
    name: str,
    program: TracedProgram,
    transfers: Mapping[int, Companions],
    store: Store = OFF,
) -> Subject:
    """A stage with its operators merged.

    Args:
        cut: the stages of the step.
        number: of the stage.
        name: of the stage, for messages.
        program: the step that it was cut from.
        transfers: what is known of transfers of earlier stages, by number.
        store: keeps merged modules.
    """
    parsed: Module | None = None

    def made() -> Record:
        nonlocal parsed
        parsed = cut.merged(number)
        return {"merged": parsed.text(), "signature": Signature.of(parsed).record()}

    found = store.remember("merged stage", (cut.texts()[number],), made)
    signature = Signature.from_record(found["signature"])
    return Subject(name, found["merged"], _boundary(signature, program, transfers), parsed)


def known_transfers(candidate: Candidate, boundary: Boundary) -> dict[int, Companions]:
    """What the dimensions of a planned stage's transfers go together with, by their number."""
    slots = map(Slot.parse, Signature.of(candidate.merged).outputs.kinds)
    return {
        slot.number: companions(boundary, candidate.priced.graph, position)
        for position, slot in enumerate(slots)
        if slot.kind is SlotKind.TRANSFER
    }


def _boundary(
    signature: Signature, program: TracedProgram, transfers: Mapping[int, Companions]
) -> Boundary:
    """What the step calls the arguments and results of a stage."""
    slots = map(Slot.parse, signature.inputs.kinds)
    known = {
        position: transfers[slot.number]
        for position, slot in enumerate(slots)
        if slot.kind is SlotKind.TRANSFER and slot.number in transfers
    }
    return Boundary(_side(signature.inputs, program), _side(signature.outputs, program), known)


def _side(values: Values, program: TracedProgram) -> tuple[tuple[int, TracedValue] | None, ...]:
    found: list[tuple[int, TracedValue] | None] = []
    for slot, type_ in zip(map(Slot.parse, values.kinds), values.types, strict=True):
        value = traced_value(slot, program)
        # Of a batch a stage sees the part of a micro-batch.
        shape = parse_tensor_type(type_)[0]
        found.append(None if value is None else (slot.number, replace(value, shape=shape)))
    return tuple(found)
