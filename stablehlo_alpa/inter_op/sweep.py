"""Search over the number of micro-batches and over schedules, where they are not given."""

from __future__ import annotations

import logging
from dataclasses import replace

from stablehlo_alpa.errors import CompileError, InfeasibleError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.options import AutoStages, ManualStages, UniformStages
from stablehlo_alpa.inter_op.planner import (
    Alternative,
    PipelineOptions,
    PlannedPipeline,
    plan_pipeline,
)
from stablehlo_alpa.inter_op.schedules import FORWARD_ONLY
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

_FIRST = "1f1b"
# GPipe is never faster than 1F1B and keeps more: it is there for who asks for it.
_OTHERS = ("zero_bubble",)
_CHUNKS = 2
_PATIENCE = 2


def sweep(
    program: TracedProgram,
    options: PipelineOptions,
    num_micro_batches: int | None,
    schedule: str | None,
    say: Say = _log.debug,
) -> PlannedPipeline:
    """The plan of least predicted time per step.

    Numbers of micro-batches are the powers of two into which the step can be cut, smallest first:
    more of them shrink the bubble and starve the devices. From as many as there are devices on it
    ends with the second in a row that is slower. Then other schedules are tried with the best
    number.

    Args:
        program: the step.
        options: everything else; number and schedule in it are not used.
        num_micro_batches: None searches.
        schedule: its name; None searches.
        say: is told what is being done.

    Raises:
        InfeasibleError: nothing fits; the last refusal.
        CompileError, ValueError: see `plan_pipeline`.
    """
    tried: list[Alternative] = []
    refusals: list[InfeasibleError] = []

    def attempt(one: PipelineOptions) -> PlannedPipeline | None:
        which = f"{program.name}: {one.num_micro_batches} micro-batches, {one.schedule}"
        try:
            planned = plan_pipeline(program, one, lambda what: say(f"{which}: {what}"))
        except InfeasibleError as error:
            tried.append(Alternative(one.num_micro_batches, one.schedule, None))
            refusals.append(error)
            return None
        tried.append(Alternative(one.num_micro_batches, one.schedule, planned.step_time_s))
        _log.info("%s", tried[-1])
        return planned

    best: PlannedPipeline | None = None
    slower = 0
    first = _FIRST if program.has_gradients else FORWARD_ONLY
    for count in _counts(program, options, num_micro_batches, schedule):
        if slower >= _PATIENCE and count > options.cluster.num_devices:
            break
        chosen = replace(options, num_micro_batches=count, schedule=schedule or first)
        try:
            found = attempt(chosen)
        except CompileError:
            # What cannot be cut into so many cannot be cut into twice as many.
            if best is None:
                raise
            break
        if found is None:
            continue
        slower += 1
        if best is None or found.step_time_s < best.step_time_s:
            best, slower = found, 0
    if best is None and not refusals:
        raise ValueError(
            f"no power of two divides the batch and suits the {schedule} schedule: pass "
            "num_micro_batches"
        )
    if best is None:
        raise refusals[-1]
    is_open = schedule is None and program.has_gradients and options.num_chunks == 1
    if is_open and best.assignment.num_stages > 1:
        for other in _alternatives(best, options):
            found = attempt(other)
            if found is not None and found.step_time_s < best.step_time_s:
                best = found
    return replace(best, tried=tuple(tried) if len(tried) > 1 else ())


def _counts(
    program: TracedProgram, options: PipelineOptions, given: int | None, schedule: str | None
) -> list[int]:
    if given is not None:
        return [given]
    size = max((program.inputs[index].shape[0] for index in program.batch), default=1)
    powers = (1 << power for power in range(max(size, 1).bit_length()))
    # The interleaved schedule takes micro-batches in multiples of its meshes.
    step = 1
    if schedule == "interleaved" and isinstance(options.stages, UniformStages):
        step = options.stages.num_stages // options.num_chunks
    if schedule == "interleaved" and isinstance(options.stages, ManualStages):
        step = len(options.stages.layers) // options.num_chunks
    return [count for count in powers if size % count == 0 and count % max(step, 1) == 0]


def _as_given(planned: PlannedPipeline) -> ManualStages:
    """The stages of a plan, so that they need not be searched again."""
    of_layer = planned.assignment.stage_of_layer
    return ManualStages(
        tuple(of_layer.count(stage) for stage in range(planned.assignment.num_stages)),
        planned.assignment.submeshes,
        tuple(stage.mesh.shape for stage in planned.stages),
    )


def _alternatives(best: PlannedPipeline, options: PipelineOptions) -> list[PipelineOptions]:
    """The same number of micro-batches under other schedules."""
    count = best.runtime.num_micro_batches
    same = replace(options, num_micro_batches=count, stages=_as_given(best))
    found = [replace(same, schedule=name) for name in _OTHERS]
    # Equal stages can be cut once more: several to a mesh.
    stages, submeshes = best.assignment.num_stages, set(best.assignment.submeshes)
    num_layers = len(best.assignment.stage_of_layer)
    fits = num_layers >= _CHUNKS * stages and count % stages == 0
    if isinstance(options.stages, (AutoStages, UniformStages)) and len(submeshes) == 1 and fits:
        shapes = {stage.mesh.shape for stage in best.stages}
        shape = shapes.pop() if len(shapes) == 1 else None
        found.append(
            replace(
                same,
                schedule="interleaved",
                num_chunks=_CHUNKS,
                stages=UniformStages(_CHUNKS * stages, shape),
            )
        )
    return found
