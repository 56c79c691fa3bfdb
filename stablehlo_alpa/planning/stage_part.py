"""A planned stage as what is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from alpa_runtime import ValueSpec

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import PlannedStage, SlotKind
from stablehlo_alpa.view import Collective, Part, merged


def stage_part(
    label: str, stage: PlannedStage, device: DeviceSpec, peak_bytes: float, schedule: Schedule
) -> Part:
    """What is shown of a stage: its inputs of the step, and its operators in a whole step.

    Args:
        label: what the stage is called; empty where it is all there is.
        stage: the stage.
        device: one of its devices.
        peak_bytes: per device of its mesh.
        schedule: of the step.
    """
    # A step that makes nothing of its arguments has no phases.
    live = max((phase.live for phase in stage.phases), key=_total, default=())
    return Part(
        label=label,
        inputs=_inputs(stage),
        mesh=stage.mesh,
        device=device,
        priced=stage.priced,
        solution=stage.solution,
        collectives=collectives_of(stage, schedule),
        live=live,
        peak_bytes=peak_bytes,
    )


def collectives_of(stage: PlannedStage, schedule: Schedule) -> tuple[Collective, ...]:
    """Those of a whole step, per kind and axes, most bytes first."""
    found = []
    for phase in stage.phases:
        runs = phase.num_runs(schedule)
        found += [
            replace(one, bytes=one.bytes * runs, count=one.count * runs)
            for one in phase.collectives
        ]
    return merged(found)


def _total(live: Sequence[tuple[str, float]]) -> float:
    return sum(size for _, size in live)


def _inputs(stage: PlannedStage) -> tuple[ValueSpec, ...]:
    """The inputs of the step that a stage reads, as its first phase to do so has them.

    Of a batch that is cut, the part of a micro-batch.
    """
    found: dict[int, ValueSpec] = {}
    for phase in stage.phases:
        for slot, value in zip(phase.inputs, phase.program.inputs, strict=True):
            if slot.kind in (SlotKind.INPUT, SlotKind.BATCH):
                found.setdefault(slot.number, value)
    return tuple(found[number] for number in sorted(found))
