"""A stage of a step as something that is split over one mesh."""

from __future__ import annotations

from dataclasses import replace

from stablehlo_alpa.compiler import Signature, Values, parse_tensor_type, run_passes
from stablehlo_alpa.frontend import TracedProgram, TracedValue
from stablehlo_alpa.planning.lowering import traced_value
from stablehlo_alpa.planning.mesh_search import Subject
from stablehlo_alpa.planning.pins import Boundary
from stablehlo_alpa.planning.stage import Slot


def prepare_stage(sliced: str, name: str, program: TracedProgram | None = None) -> Subject:
    """Merges operators of a stage.

    Args:
        sliced: the stage as it was cut.
        name: of the stage, for messages.
        program: the step that it was cut from; None where only its price counts.
    """
    merged = run_passes(sliced, "builtin.module(alpa-stage-pipeline)", name)[0]
    return Subject(name, merged, None if program is None else _boundary(merged, program))


def _boundary(merged: str, program: TracedProgram) -> Boundary:
    """What the step calls the arguments and results of a stage."""
    signature = Signature.of(merged)
    return Boundary(_side(signature.inputs, program), _side(signature.outputs, program))


def _side(values: Values, program: TracedProgram) -> tuple[tuple[int, TracedValue] | None, ...]:
    found: list[tuple[int, TracedValue] | None] = []
    for slot, type_ in zip(map(Slot.parse, values.kinds), values.types, strict=True):
        value = traced_value(slot, program)
        # Of a batch a stage sees the part of a micro-batch.
        shape = parse_tensor_type(type_)[0]
        found.append(None if value is None else (slot.number, replace(value, shape=shape)))
    return tuple(found)
