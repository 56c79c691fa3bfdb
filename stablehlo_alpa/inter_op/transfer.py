"""A pipeline by the cut and the strategies of a plan for other sizes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stablehlo_alpa.compiler import enumerate_strategies
from stablehlo_alpa.cost import PricedGraph, price
from stablehlo_alpa.errors import InfeasibleError, MeshError, TraceError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.assigning import assign, stage_search
from stablehlo_alpa.inter_op.forms import layered_forms
from stablehlo_alpa.inter_op.options import (
    AutoStages,
    ManualStages,
    PipelineOptions,
    StageMethod,
    tried_shapes,
)
from stablehlo_alpa.inter_op.pipeline_search import SearchLimits
from stablehlo_alpa.inter_op.planned_stages import choices_of
from stablehlo_alpa.inter_op.planner import plan_pipeline
from stablehlo_alpa.inter_op.slicing import LayeredStep
from stablehlo_alpa.inter_op.stage_search import latency
from stablehlo_alpa.intra_op import (
    CarriedStrategies,
    SolverCache,
    in_pipeline,
    lower_bound,
)
from stablehlo_alpa.planning.applied import Applied
from stablehlo_alpa.planning.bracket import Bracket
from stablehlo_alpa.planning.cut import Cut
from stablehlo_alpa.planning.ordering import ScheduleKind
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.schedules import ScheduleName
from stablehlo_alpa.planning.stage import PlannedStage
from stablehlo_alpa.planning.transfer import USUAL_GAP
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

# Stages that are solved for the sake of the bound, and seconds for every ``gap`` that it is off
# (heuristics: what a search has beside that is most of its time).
_MAX_SOLVED, _PATIENCE_S = 16, 2.0


def transfer_pipeline(
    program: TracedProgram,
    options: PipelineOptions,
    source: Plan,
    schedule: ScheduleKind | None,
    most: float | None = None,
    say: Say = _log.debug,
) -> Plan | None:
    """The plan of a step by the stages and strategies of another one of its sizes.

    Args:
        program: the step, in as many layers.
        options: what it would be searched under; number of micro-batches and schedule in it are not
            used.
        source: the plan.
        schedule: one's own; that of a name is the plan's.
        most: the largest gap; None where any will do.
        say: is told what is being done.

    Returns:
        the plan; None where it may be further than ``most`` from the best, or nothing is known of
        that.

    Raises:
        CompileError: the step cannot be cut into so many micro-batches.
        TraceError: it has other layers.
        InfeasibleError: over the memory budget.
        MeshError, ValueError: see `plan_pipeline`.
    """
    count = source.runtime.num_micro_batches
    name = source.schedule.name
    own = ScheduleName(name) if name in tuple(ScheduleName) else schedule
    assert own is not None
    carried = tuple(CarriedStrategies.of(one.priced.graph, one.solution) for one in source.stages)
    asked = replace(options, num_micro_batches=count, schedule=own)
    given = replace(asked, stages=_as_given(source, options), carried=carried)
    goal = USUAL_GAP if most is None else most
    found: list[tuple[Plan, Bracket | None]] = []
    refused: list[InfeasibleError] = []
    for form in layered_forms(program, asked):
        _check_layers(program, form, source)
        try:
            plan = plan_pipeline(program, given, say, (form,))
        except InfeasibleError as error:
            refused.append(error)
            continue
        say("bound of the stages")
        found.append(_proved(plan, asked, form, carried, goal))
    if not found:
        raise refused[0]
    plan, bracket = min(found, key=lambda one: one[0].step_time_s)
    brackets = [one for _, one in found if one is not None]
    if bracket is not None:
        # What is known of one form holds for no other.
        is_known = len(brackets) == len(found) and not refused
        bound_s = min(one.bound_s for one in brackets)
        bracket = replace(bracket, bound_s=bound_s) if is_known else None
    if most is not None and (bracket is None or bracket.gap > most):
        return None
    applied = Applied.of(source.program.inputs, program.inputs, carried, plan.stages)
    said = (applied.remark(bracket), *plan.remarks)
    again = source.recomputed
    return replace(plan, bracket=bracket, applied=applied, remarks=said, recomputed=again)


def _check_layers(program: TracedProgram, layered: LayeredStep, source: Plan) -> None:
    """Raises ``TraceError`` where a step has other layers than a plan."""
    num_layers = sum(len(stage.layers) for stage in source.stages)
    if layered.num_layers != num_layers:
        raise TraceError(
            f"{program.name} has {layered.num_layers} layers in these sizes, the stages of the "
            f"plan have {num_layers}: plan it anew"
        )


def _as_given(source: Plan, options: PipelineOptions) -> ManualStages:
    """The stages of a plan."""
    count, own = len(source.stages), options.stages.stage_methods
    methods: list[StageMethod] = [own[number * len(own) // count] for number in range(count) if own]
    return ManualStages(
        tuple(len(stage.layers) for stage in source.stages),
        tuple(stage.submesh for stage in source.stages),
        tuple(stage.mesh.shape for stage in source.stages),
        methods or None,
        tuple(map(source.schedule.mesh_of, range(count))),
        Cut.of(source.stages).parts or None,
    )


def _proved(
    plan: Plan,
    options: PipelineOptions,
    layered: LayeredStep,
    carried: Sequence[CarriedStrategies],
    goal: float,
) -> tuple[Plan, Bracket | None]:
    """The plan, its stages knowing how good they are, and what is proved of all together."""
    solve, cache, count = options.solve, SolverCache(), plan.runtime.num_micro_batches
    stages: list[PlannedStage] = []
    bounds: list[float] = []
    for stage, before in zip(plan.stages, carried, strict=True):
        found = stage.solution
        wanted_s = found.objective_s * (1 - goal)
        bound_s = lower_bound(
            stage.priced,
            solve,
            cache,
            wanted_s=wanted_s,
            plan=found,
            memory_price_s=before.memory_price_s,
        )
        bracket = Bracket(found.objective_s, min(bound_s, found.objective_s))
        status = "optimal" if bracket.gap == 0 else "gap"
        stages.append(replace(stage, solution=replace(found, gap=bracket.gap, status=status)))
        bounds.append(bracket.bound_s)
    plan = replace(plan, stages=tuple(stages))
    if isinstance(options.stages, AutoStages):
        return plan, _among_cuts(plan, options, layered, bounds, goal)
    assignment = assign(layered, options)
    if assignment.num_stages != len(stages):
        # They were cut once more, which a search of their meshes need not do.
        return plan, None
    for number, stage in enumerate(stages):
        for priced in _other_meshes(plan, number, tried_shapes(options, assignment, number)):
            wanted_s = stage.solution.objective_s * (1 - goal)
            other_s = lower_bound(priced, solve, cache, wanted_s=wanted_s)
            bounds[number] = min(bounds[number], other_s)
    times = [one / count for one in bounds]
    bound_s = sum(times) + (count - 1) * max(times)
    latency_s = latency(choices_of(plan.stages, options), count)
    return plan, Bracket(latency_s, min(bound_s, latency_s))


def _among_cuts(
    plan: Plan,
    options: PipelineOptions,
    layered: LayeredStep,
    bounds_s: Sequence[float],
    goal: float,
) -> Bracket | None:
    """What is proved of stages among all that there can be; None of several on a mesh."""
    count = options.num_micro_batches
    if len(plan.runtime.meshes) < len(plan.stages):
        return None
    bounds = [bound_s / count for bound_s in bounds_s]
    pipeline = list(zip(choices_of(plan.stages, options), bounds, strict=True))
    _, _, stages = stage_search(layered, options, _log.debug)
    limits = SearchLimits(goal, _MAX_SOLVED, _PATIENCE_S)
    return stages.bracket(pipeline, limits)


def _other_meshes(
    plan: Plan, number: int, shapes: Sequence[tuple[int, ...]]
) -> Iterator[PricedGraph]:
    """What a stage that was given could be on meshes that it is not on.

    What is prescribed is left out: without it nothing costs more.
    """
    stage = plan.stages[number]
    cluster = plan.cluster.parts[stage.place.part].part(*stage.submesh)
    for shape in shapes:
        if shape == stage.mesh.shape:
            continue
        try:
            mesh = cluster.logical_mesh(shape)
        except MeshError:
            continue
        graph = enumerate_strategies(stage.texts["merged"], mesh, plan.program.name)
        count, most = plan.runtime.num_micro_batches, plan.schedule.most_in_flight(number)
        yield price(in_pipeline(graph, most, count), mesh, cluster.device)
