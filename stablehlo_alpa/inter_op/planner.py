"""Plans a pipeline: layers, stages, an intra-operator plan per stage, a schedule, instructions."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from alpa_runtime import check

from stablehlo_alpa.errors import InfeasibleError, MeshError, SlowerError
from stablehlo_alpa.frontend import TracedProgram, paused_collection
from stablehlo_alpa.inter_op.assigning import ADVICE, WHY_UNCUT, assign
from stablehlo_alpa.inter_op.forms import marked
from stablehlo_alpa.inter_op.options import AutoStages, PipelineOptions
from stablehlo_alpa.inter_op.slicing import LayeredStep, StepForms
from stablehlo_alpa.inter_op.stage_fitting import fitted
from stablehlo_alpa.inter_op.stages_planner import StagesPlanner, named, within_room
from stablehlo_alpa.planning.bracket import of_stages
from stablehlo_alpa.planning.fitting import Form, FormSearch
from stablehlo_alpa.planning.lowering import InsideBytes
from stablehlo_alpa.planning.mesh_search import Candidate
from stablehlo_alpa.planning.ordering import make_schedule
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.planner import over_budget
from stablehlo_alpa.planning.refusals import leanest
from stablehlo_alpa.planning.schedules import Schedule, ScheduleName
from stablehlo_alpa.planning.stage import PlannedStage
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

# So often stages are searched, each time for so much less memory at least (heuristics).
_SEARCHES, _LEAST_SHARE = 4, 0.97
# So many names are listed, the others counted.
_LISTED = 6


@paused_collection()
def plan_pipeline(
    program: TracedProgram,
    options: PipelineOptions,
    say: Say = _log.debug,
    forms: Sequence[LayeredStep] = (),
) -> Plan:
    """Plans a step.

    Args:
        program: the step.
        options: what it is planned under.
        say: is told what is being done.
        forms: the step with layers and phases, in several forms where one stage is asked for, of
            which the fastest is taken; made here where there is none.

    Raises:
        CompileError: a pass refused the program.
        ValueError: stages, layers, meshes or schedule do not fit each other.
        InfeasibleError: a stage does not fit its mesh, named with what it lacks.
        SlowerError: no pipeline undercuts the options' seconds.
    """
    if options.schedule == ScheduleName.INFERENCE and program.has_gradients:
        others = [name for name in ScheduleName if name is not ScheduleName.INFERENCE]
        raise ValueError(
            f"schedule 'inference' runs no backward passes and {program.name} takes gradients: "
            f"leave schedule out, or take one of {', '.join(others)}"
        )
    forms = forms or (marked(StepForms(program, options.store), options),)
    planners = [_planner_of(program, options, form, say) for form in forms]
    if all(planner.assignment.num_stages == 1 for planner in planners):
        say("stage 0 of 1")
        return _plan_stage(planners, say)
    (planner,), (form,) = planners, forms
    return _plan_fitting(
        planner, lambda share: _planner_of(program, options, form, say, share), say
    )


def _plan_fitting(
    planner: StagesPlanner, search: Callable[[float], StagesPlanner], say: Say
) -> Plan:
    """The plan of a pipeline; where its programs do not fit, of one with more room in its stages.

    Args:
        planner: of the stages that were found first.
        search: finds stages that need no more than a part of the memory budget.
        say: is told what is being done.

    Raises:
        InfeasibleError, SlowerError: see `plan_pipeline`.
    """
    first, share, options = planner.assignment.bracket, 1.0, planner.options
    refused: InfeasibleError | None = None
    # Given stages are all there are, and a trial is not worth more.
    can_search = isinstance(options.stages, AutoStages) and not options.is_trial
    for _ in range(_SEARCHES if can_search else 1):
        try:
            if refused is not None:
                planner = search(share)
            stages = planner.plan_all(say)
            _check_shared_meshes(stages, planner.schedule)
            plan = fitted(planner, stages, say)
        except InfeasibleError as error:
            # What the first lacks is said: it was given all there is.
            refused = refused or error
            if not (error.needed_bytes and error.budget_bytes):
                break
            # With all that lacks less, what would fit may be left out.
            share *= min(math.sqrt(error.budget_bytes / error.needed_bytes), _LEAST_SHARE)
            _log.info("%s; stages are searched with %.2f of the memory", error, share)
        else:
            if plan.bracket is None or first is None:
                return plan
            bound_s = min(first.bound_s, plan.bracket.bound_s)
            return replace(plan, bracket=replace(plan.bracket, bound_s=bound_s))
    assert refused is not None
    raise refused


def _plan_stage(planners: Sequence[StagesPlanner], say: Say) -> Plan:
    """The plan of a step that is one stage.

    Where a search for stages has found it, and its programs do not fit the memory, what does may be
    on another mesh.

    Args:
        planners: of each form.
        say: is told what is being done.

    Raises:
        InfeasibleError, SlowerError: see `plan_pipeline`.
    """
    found, plan, refused = planners[0].assignment, None, []
    try:
        plan = _fastest_stage(planners, say)
    except InfeasibleError as error:
        refused.append(error)
    if plan is not None and (not found.solutions or plan.stages[0].solution is found.solutions[0]):
        return plan
    if not found.solutions:
        raise refused[0]
    most_s = planners[0].options.most_s
    if plan is not None:
        most_s = min(most_s, plan.stages[0].solution.objective_s)
    try:
        return _fastest_stage([_opened(one, most_s) for one in planners], say)
    except SlowerError:
        if plan is None:
            raise
    except InfeasibleError as error:
        refused.append(error)
    if plan is None:
        raise leanest(refused)
    return plan


def _opened(planner: StagesPlanner, most_s: float) -> StagesPlanner:
    """The same for strategies on any mesh that undercut so many seconds of a step."""
    assignment = replace(planner.assignment, mesh_shapes=(None,), solutions=())
    return replace(planner, assignment=assignment, options=replace(planner.options, most_s=most_s))


def _fastest_stage(planners: Sequence[StagesPlanner], say: Say) -> Plan:
    """The fastest of the forms of a step that is one stage.

    Args:
        planners: of each form.
        say: is told what is being done.

    Raises:
        InfeasibleError, SlowerError: see `plan_pipeline`.
    """
    first = planners[0]
    options = first.mesh_options(0)
    again = options.solve
    if again.memory_budget is not None:
        again = within_room(again, again.memory_budget)
    search = FormSearch([_form_of(one) for one in planners], options, say, again=again)
    try:
        found = search.run()
    except InfeasibleError as error:
        raise named(first, 0, error) from error
    if found is None:
        assert search.over is not None
        assert options.solve.memory_budget is not None
        raise over_budget(search.over, 0, options.solve.memory_budget, ADVICE)
    plan, best, least_s = found
    check(plan.runtime)
    if first.assignment.bracket is None and plan.bracket is not None:
        # Of all forms.
        bracket = of_stages([best.solution.objective_s], [least_s])
        plan = replace(plan, bracket=bracket)
    return plan


def _planner_of(
    program: TracedProgram,
    options: PipelineOptions,
    layered: LayeredStep,
    say: Say,
    share: float = 1.0,
) -> StagesPlanner:
    """That of a form of a step, with its layers assigned to stages; see `plan_pipeline`.

    Args:
        program: the step.
        options: what it is planned under.
        layered: the form.
        say: is told what is being done.
        share: of the memory budget that stages are searched for.
    """
    say(f"stages of {layered.num_layers} layers")
    assignment = assign(layered, options.within(share), say)
    schedule = make_schedule(options.schedule, assignment.meshes, options.num_micro_batches)
    _check_passes(program, schedule)
    said = list(layered.remarks)
    if isinstance(options.stages, AutoStages) and layered.is_uncut:
        said.append(f"there is one stage: {WHY_UNCUT.format(program.name)}")
    if schedule.is_asynchronous:
        said.append(_said_of_updates(program, schedule))
        # What the search has proved is of steps with one update.
        assignment = replace(assignment, solutions=(), bracket=None)
    methods = {id(method): method for method in options.stages.stage_methods}
    prescriptions = {key: method.prescription(program) for key, method in methods.items()}
    cut = layered.kept_cut(assignment.stage_of_layer, schedule.is_asynchronous)
    first = options.cluster.parts[assignment.part_of(0)].device
    inside_bytes = InsideBytes(first.platform, options.store)
    planner = StagesPlanner(
        program, options, assignment, schedule, cut, inside_bytes, tuple(said), prescriptions
    )
    planner.check_weight_gradients()
    return planner


def _form_of(planner: StagesPlanner) -> Form:
    """The only stage of a step, of which others are other forms."""

    def lower(candidate: Candidate, reach: int) -> Plan:
        planner.candidates[0] = candidate
        planner.frugal.clear()
        planner.frugal.update([0] if reach else [])
        return planner.emitted([planner.lower(0)])

    return Form(planner.subject(0)[0], lower)


def _check_passes(program: TracedProgram, schedule: Schedule) -> None:
    """Refuses a schedule with backward passes of a step without, and the other way round."""
    if schedule.has_backward != program.has_gradients:
        does = "takes gradients" if program.has_gradients else "takes no gradients"
        tasks = "backward tasks" if schedule.has_backward else "no backward tasks"
        raise ValueError(f"schedule {schedule.name} has {tasks}, {program.name} {does}")


def _said_of_updates(program: TracedProgram, schedule: Schedule) -> str:
    """What a call means that updates the state several times, as a remark.

    Raises:
        ValueError: the step has no state.
    """
    if not program.aliases:
        raise ValueError(
            f"schedule {schedule.name} updates the state {schedule.num_updates} times in a call, "
            f"and no result of {program.name} is the next value of an argument: return the new "
            "state as the argument has it, and donate that (donate_argnums=)"
        )
    inputs = [(i, one.name) for i, one in enumerate(program.inputs) if i not in program.aliases]
    cut = _listed([name for i, name in inputs if i in program.batch])
    kept = _listed([name for i, name in inputs if i not in program.batch])
    stale = ", ".join(str(schedule.staleness(number)) for number in range(schedule.num_stages))
    return (
        f"{schedule.num_updates} updates in a call, each by its part of: {cut}; arguments that all "
        f"updates read: {kept}; gradients of the stages are of weights that are at most {stale} "
        "updates old; results that are no state are those of the last update"
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more if names else "none"


def _check_shared_meshes(stages: Sequence[PlannedStage], schedule: Schedule) -> None:
    """Stages of one mesh see it under one shape."""
    firsts: dict[int, int] = {}
    for number, stage in enumerate(stages):
        first = firsts.setdefault(schedule.mesh_of(number), number)
        if stages[first].mesh.axes != stage.mesh.axes:
            raise MeshError(
                f"stages {first} and {number} share a mesh, and their methods see it as "
                f"{dict(stages[first].mesh.axes)} and as {dict(stage.mesh.axes)}: give both one "
                "mesh_shape and one set of names"
            )
