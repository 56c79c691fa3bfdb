"""Stages that are planned, by the measure of the search for stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stablehlo_alpa.cost import price_once
from stablehlo_alpa.inter_op.options import PipelineOptions
from stablehlo_alpa.inter_op.stage_choices import StageChoice
from stablehlo_alpa.inter_op.stage_search import latency
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.planning.schedules import ScheduleName
from stablehlo_alpa.planning.stage import PlannedStage


def choices_of(stages: Sequence[PlannedStage], options: PipelineOptions) -> list[StageChoice]:
    """Stages as the search knows them, without what they receive.

    Args:
        stages: of a step, in order.
        options: what they were planned under.
    """
    count = options.num_micro_batches
    keeps_all = options.schedule == ScheduleName.GPIPE
    found = []
    for number, stage in enumerate(stages):
        where = Submesh(*stage.submesh, stage.mesh.shape, stage.place.part)
        choice = StageChoice(
            stage.layers[0],
            stage.layers[-1],
            where.num_devices,
            stage.solution.objective_s / count,
            count if keeps_all else min(len(stages) - number, count),
            where,
            sum(price_once(stage.priced, count).split(stage.solution.choice)) / count,
        )
        found.append(choice)
    return found


def latency_of(
    stages: Sequence[PlannedStage], received_s: Sequence[float], options: PipelineOptions
) -> float:
    """Seconds of a step of planned stages.

    Args:
        stages: of a step, in order.
        received_s: in which each receives its input, per micro-batch.
        options: what they were planned under.
    """
    moved = [
        replace(one, time_s=one.time_s + more_s)
        for one, more_s in zip(choices_of(stages, options), received_s, strict=True)
    ]
    return latency(moved, options.num_micro_batches)
