"""A planned stage as what is shown of it."""

from __future__ import annotations

from alpa_runtime import ValueSpec

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost import volumes
from stablehlo_alpa.inter_op.stage import PlannedStage
from stablehlo_alpa.intra_op import MemoryModel
from stablehlo_alpa.view import Part, collectives


def stage_part(label: str, stage: PlannedStage, device: DeviceSpec, peak_bytes: float) -> Part:
    """What is shown of a stage: its inputs of the step, and its operators in a whole step.

    Args:
        label: what the stage is called.
        stage: the stage.
        device: one of its devices.
        peak_bytes: per device of its mesh.
    """
    graph, solution = stage.priced.graph, stage.solution
    moved = volumes(graph, solution.choice)
    live: list[tuple[str, float]] = []
    if solution.memory_peak_point >= 0:
        memory = MemoryModel.of(graph)
        count = len(graph.value_node)
        live = memory.largest(solution.choice, solution.memory_peak_point, count)
    return Part(
        label=label,
        inputs=_inputs(stage),
        mesh=stage.mesh,
        device=device,
        priced=stage.priced,
        solution=solution,
        collectives=collectives(
            [(int(kind), mask, volume) for (kind, mask), volume in moved.items()], stage.mesh
        ),
        live=tuple(live),
        peak_bytes=peak_bytes,
    )


def _inputs(stage: PlannedStage) -> tuple[ValueSpec, ...]:
    """The inputs of the step that a stage reads, as its first phase to do so has them."""
    found: dict[int, ValueSpec] = {}
    for phase in stage.phases:
        for slot, value in zip(phase.inputs, phase.program.inputs, strict=True):
            if slot.kind == "input":
                found.setdefault(slot.number, value)
    return tuple(found[number] for number in sorted(found))
