"""Search over the number of micro-batches and over schedules, where they are not given."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace

from stablehlo_alpa.errors import CompileError, InfeasibleError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.options import (
    AutoStages,
    ManualStages,
    PipelineOptions,
    UniformStages,
)
from stablehlo_alpa.inter_op.planner import plan_pipeline
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.plan_report import Alternative
from stablehlo_alpa.planning.schedules import ScheduleName
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

# GPipe is never faster than 1F1B and keeps more: it is there for who asks for it.
_OTHERS = (ScheduleName.ZERO_BUBBLE,)
_CHUNKS = 2
_PATIENCE = 2


def sweep(
    program: TracedProgram,
    options: PipelineOptions,
    num_micro_batches: int | None,
    schedule: str | None,
    say: Say = _log.debug,
) -> Plan:
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
    if not program.has_gradients:
        # Without backward passes there is nothing to order.
        schedule = ScheduleName.INFERENCE
    attempts = _Attempts(program, say)
    options = replace(options, schedule=schedule or ScheduleName.ONE_F_ONE_B)
    attempts.try_counts(options, _counts(program, options, num_micro_batches, schedule))
    best = attempts.best
    if best is None and not attempts.refusals:
        raise ValueError(
            f"no power of two divides the batch and suits the {schedule} schedule: pass "
            "num_micro_batches"
        )
    if best is None:
        raise attempts.refusals[-1]
    is_open = schedule is None and program.has_gradients and options.num_chunks == 1
    if is_open and len(best.stages) > 1:
        for other in _alternatives(best, options):
            attempts.attempt(other)
    assert attempts.best is not None
    tried = attempts.tried
    return replace(attempts.best, tried=tuple(tried) if len(tried) > 1 else ())


@dataclass
class _Attempts:
    """Plans that were made, of which the fastest is kept.

    Attributes:
        program: the step.
        say: is told what is being done.
        best: the fastest; None as long as nothing fits.
        tried: all, in order.
        refusals: why some do not fit.
    """

    program: TracedProgram
    say: Say
    best: Plan | None = None
    tried: list[Alternative] = field(default_factory=list)
    refusals: list[InfeasibleError] = field(default_factory=list)

    def attempt(self, one: PipelineOptions) -> bool | None:
        """Makes a plan; says whether it is the fastest, None where it does not fit."""
        which = f"{self.program.name}: {one.num_micro_batches} micro-batches, {one.schedule}"
        try:
            planned = plan_pipeline(self.program, one, lambda what: self.say(f"{which}: {what}"))
        except InfeasibleError as error:
            self.tried.append(Alternative(one.num_micro_batches, one.schedule, None))
            self.refusals.append(error)
            return None
        self.tried.append(Alternative(one.num_micro_batches, one.schedule, planned.step_time_s))
        _log.info("%s", self.tried[-1])
        is_best = self.best is None or planned.step_time_s < self.best.step_time_s
        if is_best:
            self.best = planned
        return is_best

    def try_counts(self, options: PipelineOptions, counts: list[int]) -> None:
        """Tries numbers of micro-batches, as long as more of them may be faster."""
        slower = 0
        for count in counts:
            if slower >= _PATIENCE and count > options.cluster.num_devices:
                break
            try:
                is_best = self.attempt(replace(options, num_micro_batches=count))
            except CompileError:
                # What cannot be cut into so many cannot be cut into twice as many.
                if self.best is None:
                    raise
                break
            if is_best is not None:
                slower = 0 if is_best else slower + 1


def _counts(
    program: TracedProgram, options: PipelineOptions, given: int | None, schedule: str | None
) -> list[int]:
    if given is not None:
        return [given]
    size = max((program.inputs[index].shape[0] for index in program.batch), default=1)
    powers = (1 << power for power in range(max(size, 1).bit_length()))
    # The interleaved schedule takes micro-batches in multiples of its meshes.
    step, is_interleaved = 1, schedule == ScheduleName.INTERLEAVED
    if is_interleaved and isinstance(options.stages, UniformStages):
        step = options.stages.num_stages // options.num_chunks
    if is_interleaved and isinstance(options.stages, ManualStages):
        step = len(options.stages.layers) // options.num_chunks
    return [count for count in powers if size % count == 0 and count % max(step, 1) == 0]


def _as_given(plan: Plan, options: PipelineOptions) -> ManualStages:
    """The stages of a plan, so that they need not be searched again."""
    return ManualStages(
        tuple(len(stage.layers) for stage in plan.stages),
        tuple(stage.submesh for stage in plan.stages),
        tuple(stage.mesh.shape for stage in plan.stages),
        options.stages.stage_methods or None,
    )


def _alternatives(best: Plan, options: PipelineOptions) -> list[PipelineOptions]:
    """The same number of micro-batches under other schedules."""
    count = best.runtime.num_micro_batches
    same = replace(options, num_micro_batches=count, stages=_as_given(best, options))
    found = [replace(same, schedule=name) for name in _OTHERS]
    # Equal stages can be cut once more: several to a mesh.
    stages, submeshes = len(best.stages), {stage.submesh for stage in best.stages}
    num_layers = sum(len(stage.layers) for stage in best.stages)
    fits = num_layers >= _CHUNKS * stages and count % stages == 0
    if isinstance(options.stages, (AutoStages, UniformStages)) and len(submeshes) == 1 and fits:
        shapes = {stage.mesh.shape for stage in best.stages}
        shape = shapes.pop() if len(shapes) == 1 else None
        # Stages that are cut once more are split as the whole was.
        methods = [one for one in options.stages.stage_methods for _ in range(_CHUNKS)]
        found.append(
            replace(
                same,
                schedule=ScheduleName.INTERLEAVED,
                num_chunks=_CHUNKS,
                stages=UniformStages(_CHUNKS * stages, shape, methods or None),
            )
        )
    return found
