"""Pipelines chosen among the best by prices by what their programs take on the devices at hand."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator
from dataclasses import replace

import jax

from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.options import ManualStages, PipelineOptions, ProfiledStages
from stablehlo_alpa.inter_op.planner import plan_pipeline
from stablehlo_alpa.inter_op.profile_store import profile_store
from stablehlo_alpa.inter_op.profiling import Profiler
from stablehlo_alpa.planning.cut import Cut
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)


def profiler_of(stages: ProfiledStages, say: Say) -> Profiler:
    """What times programs for an option, on all devices of the process."""
    return Profiler(jax.devices(), profile_store(stages.store), say)


def plan_profiled(
    program: TracedProgram, options: PipelineOptions, profiler: Profiler, say: Say
) -> Plan:
    """The fastest by measured seconds of the cuts that are best by prices.

    Args:
        program: the step.
        options: what it is planned under, with `ProfiledStages`.
        profiler: times programs.
        say: is told what is being done.

    Raises:
        MeshError: a stage has more devices than are at hand.
        CompileError, ValueError, InfeasibleError: see `plan_pipeline`.
    """
    assert isinstance(options.stages, ProfiledStages)
    best = plan_pipeline(program, options, say)
    plans = itertools.chain([best], _next_best(best, program, options, say))
    found = [profiler.measured(one) for one in itertools.islice(plans, options.stages.num_cuts)]
    for one in found:
        _log.info("%s takes %.4g s as measured", Cut.of(one.stages), one.step_time_s)
    fastest = min(found, key=lambda one: one.step_time_s)
    return replace(fastest, considered=best.considered)


def _next_best(
    best: Plan, program: TracedProgram, options: PipelineOptions, say: Say
) -> Iterator[Plan]:
    """Plans of the other cuts, by estimated latency."""
    if best.considered is None:
        return
    own = Cut.of(best.stages)
    for cut, _ in best.considered.cuts():
        if cut.places == own.places:
            continue
        try:
            stages = ManualStages(cut.layers, cut.submeshes, parts=cut.parts or None)
            yield plan_pipeline(program, replace(options, stages=stages), say)
        except InfeasibleError as error:
            _log.info("%s: %s", cut, error)
