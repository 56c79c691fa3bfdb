"""Plans a pipeline: layers, stages, an intra-operator plan per stage, a schedule, instructions."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from alpa_runtime import check

from stablehlo_alpa.errors import InfeasibleError, MeshError, SlowerError
from stablehlo_alpa.frontend import TracedProgram, paused_collection
from stablehlo_alpa.inter_op.assigning import ADVICE, assign, stage_options
from stablehlo_alpa.inter_op.emit import emit
from stablehlo_alpa.inter_op.forms import marked
from stablehlo_alpa.inter_op.options import (
    AutoStages,
    PipelineOptions,
    StageAssignment,
    tried_shapes,
)
from stablehlo_alpa.inter_op.slicing import CutStages, LayeredStep, StepForms
from stablehlo_alpa.inter_op.solver_caches import SolverCaches
from stablehlo_alpa.inter_op.stage_planner import known_transfers, prepare_stage
from stablehlo_alpa.inter_op.step_inputs import StepInterface
from stablehlo_alpa.inter_op.threads import in_threads
from stablehlo_alpa.inter_op.weight_gradients import most_waiting, waiting_bytes
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.planning.boundary import Companions
from stablehlo_alpa.planning.bracket import of_stages
from stablehlo_alpa.planning.fitting import Form, FormSearch, begun
from stablehlo_alpa.planning.lowering import NEAR, InsideBytes, lower_stage
from stablehlo_alpa.planning.mesh_search import (
    Candidate,
    PlanOptions,
    Subject,
    find_candidate,
)
from stablehlo_alpa.planning.ordering import make_schedule
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.planner import assemble, over_budget
from stablehlo_alpa.planning.prescription import Prescription
from stablehlo_alpa.planning.problems import Problems
from stablehlo_alpa.planning.schedules import Schedule, ScheduleName
from stablehlo_alpa.planning.stage import PlannedStage, StagePlace
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

# How often stages that exceed the budget are planned again with less, and the gap to which they are
# then solved (heuristics: what is emitted differs by as much from what was counted).
_FITTING_ROUNDS = 4
_FITTING_GAP = 2e-2
# What a stage that is planned again gives at least, as a part of what it takes (heuristic): what is
# counted differs by as much from what its programs need, between strategies that are alike.
_LEAST_GIVEN = 2e-3
# What lowering leaves at least of the seconds that stages were solved to: values are gathered once
# for several operators, collectives run beside products (heuristic).
_LOWERED_SHARE = 0.9
# A schedule that is one of several is not tried where what waits for weight gradients, split over
# all devices, takes so many times the memory (heuristic).
_HOPELESS = 1.25
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
    planner: _StagePlanner, search: Callable[[float], _StagePlanner], say: Say
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
            plan = planner.fitted(stages, say)
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


def _plan_stage(planners: Sequence[_StagePlanner], say: Say) -> Plan:
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
        again = _fitting(again, again.memory_budget)
    search = FormSearch([_form_of(one) for one in planners], options, say, again=again)
    try:
        found = search.run()
    except InfeasibleError as error:
        raise _named(first, 0, error) from error
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


@dataclass(frozen=True, eq=False)
class _StagePlanner:
    """Plans the stages of a step; equal ones share tables of the solver."""

    program: TracedProgram
    options: PipelineOptions
    assignment: StageAssignment
    schedule: Schedule
    cut: CutStages
    inside_bytes: InsideBytes
    # Of the step.
    remarks: tuple[str, ...] = ()
    # Of the methods of the stages, by identity.
    prescriptions: Mapping[int, Prescription] = field(default_factory=dict)
    caches: SolverCaches = field(default_factory=SolverCaches)
    # By number of a transfer what its dimensions go together with.
    transfers: dict[int, Companions] = field(default_factory=dict)
    # By number of a stage the strategies that it was lowered with last.
    candidates: dict[int, Candidate] = field(default_factory=dict)
    # By number of a stage it and what is chosen from, where no other stage has a say in that.
    subjects: dict[int, tuple[Subject, Problems]] = field(default_factory=dict)
    # Stages of which gathered values are kept for operators near by alone.
    frugal: set[int] = field(default_factory=set)

    def plan_all(self, say: Say) -> list[PlannedStage]:
        """The stages of all modules, all processors taking part where none waits for another.

        Raises:
            InfeasibleError: a stage does not fit its mesh.
            SlowerError: the stages of one mesh take longer than the step may.
        """

        def one(number: int) -> PlannedStage:
            self._check_undercuts()
            say(f"stage {number} of {self.assignment.num_stages}")
            part = self._part_of_memory(number)
            if part is not None:
                try:
                    return self.plan(number, part)
                except InfeasibleError as error:
                    _log.info("%s", error)
            return self.plan(number)

        # Those of one mesh after each other: together they may be known to be too slow.
        mesh_of, every = self.schedule.mesh_of, range(self.assignment.num_stages)
        numbers = sorted(every, key=lambda number: (mesh_of(number), number))
        found = dict(zip(numbers, self._each(one, numbers), strict=True))
        self._check_undercuts()
        return [found[number] for number in every]

    def check_weight_gradients(self) -> None:
        """Refuses a trial in which far too much waits for the gradients of parameters.

        Looked at is the stage in which most micro-batches wait, before anything is solved.

        Raises:
            InfeasibleError: it cannot fit.
        """
        schedule = self.schedule
        if not (self.options.is_trial and schedule.splits_backward):
            return
        stages = range(self.assignment.num_stages)
        number = max(stages, key=lambda one: most_waiting(schedule, one))
        budget = self._budget(number)
        if budget is None:
            return
        subject, _ = self.subject(number)
        hosts, per_host = self.assignment.submeshes[number]
        part = self.options.cluster.parts[self.assignment.part_of(number)]
        waiting = waiting_bytes(subject, schedule, number, part, self.options.store)
        least = waiting / (hosts * per_host)
        if least > _HOPELESS * budget:
            raise InfeasibleError(
                f"stage {number} of {self.program.name} keeps about {format_bytes(least)} per "
                f"device for the gradients of its parameters under schedule {schedule.name}, more "
                f"than {_HOPELESS:g} times the budget of {format_bytes(budget)}; {ADVICE}"
            )

    def _check_undercuts(self) -> None:
        """Raises ``SlowerError`` where what is planned of a mesh takes longer than the step may.

        How much longer depends on which stages were planned first, and is not said.
        """
        busy_s: dict[int, float] = {}
        for number, candidate in list(self.candidates.items()):
            mesh = self.schedule.mesh_of(number)
            busy_s[mesh] = busy_s.get(mesh, 0.0) + candidate.solution.objective_s
        most_s = self.options.most_step_s
        if _LOWERED_SHARE * max(busy_s.values(), default=0.0) >= most_s:
            raise SlowerError(
                f"the stages of a mesh take {self.program.name} longer under schedule "
                f"{self.schedule.name} than the {most_s:.4g} s that were to be undercut",
                most_s,
            )

    def fitted(self, stages: list[PlannedStage], say: Say) -> Plan:
        """The plan of planned stages, those that exceed the memory planned again with less.

        Args:
            stages: of the step; those that are planned again are replaced.
            say: is told what is being done.

        Raises:
            InfeasibleError: they do not fit, named with what is largest.
            SlowerError: it takes too long before it fits.
        """
        options = self.options
        for round_ in range(_FITTING_ROUNDS + 1):
            say("instructions")
            plan = self.emitted(stages)
            budgets = _budgets(plan, options)
            excess = _excess(plan, budgets)
            if not excess:
                check(plan.runtime)
                return plan
            if plan.step_time_s >= options.most_step_s:
                raise SlowerError(
                    f"{self.program.name} takes {plan.step_time_s:.4g} s under schedule "
                    f"{self.schedule.name} before it fits the memory, {options.most_step_s:.4g} s "
                    "was to be undercut",
                    plan.step_time_s,
                )
            if round_ < _FITTING_ROUNDS:
                try:
                    self.fit(stages, excess)
                except InfeasibleError as error:
                    _log.info("%s", error)
                    break
        fullest = max(excess, key=excess.__getitem__)
        raise over_budget(plan, fullest, budgets[fullest], ADVICE)

    def emitted(self, stages: Sequence[PlannedStage]) -> Plan:
        """The plan of planned stages, with its instructions."""
        program, cluster, schedule = self.program, self.options.cluster, self.schedule
        interface = StepInterface.of(program)
        runtime, costs = emit(stages, schedule, interface, self.inside_bytes)
        plan = assemble(program, cluster, stages, schedule, runtime, costs, self.remarks)
        found = self.assignment
        bracket = found.bracket
        if bracket is None and not (schedule.is_asynchronous or self.options.known):
            chosen = [self.candidates[number] for number in range(found.num_stages)]
            latency_s = [one.solution.objective_s for one in chosen]
            bracket = of_stages(latency_s, [one.least_s for one in chosen])
        return replace(plan, bracket=bracket, considered=found.considered)

    def _part_of_memory(self, number: int) -> float | None:
        """Bytes per device for one of several stages of a mesh; None where there is no such limit.

        All have as much, unless one needs more.
        """
        budget, mesh_of = self._budget(number), self.schedule.mesh_of
        meshes = [mesh_of(one) for one in range(self.assignment.num_stages)]
        sharing = meshes.count(mesh_of(number))
        return None if budget is None or sharing == 1 else budget / sharing

    def _budget(self, number: int) -> float | None:
        """Bytes per device of the mesh of a stage; None for any."""
        return self.options.budget_of(self.assignment.part_of(number))

    def plan(self, number: int, room: float | None = None) -> PlannedStage:
        """The stage of a number; those before it are planned.

        Args:
            number: of the stage.
            room: bytes per device for its strategies, where the budget turned out to be too much.
        """
        mesh_options = self.mesh_options(number)
        if room is not None:
            mesh_options = self._within(number, mesh_options, room)
        candidate = self._candidate(number, mesh_options)
        if mesh_options.prescription.confinement is not None:
            subject, _ = self.subject(number)
            assert subject.boundary is not None
            self.transfers.update(known_transfers(candidate, subject.boundary))
        self.candidates[number] = candidate
        return self.lower(number)

    def subject(self, number: int) -> tuple[Subject, Problems]:
        """What is split, and what was made of it before: a stage that is planned again is equal."""
        if number in self.subjects:
            return self.subjects[number]
        program = self.program
        name = f"{program.name} stage {number}"
        store = self.options.store
        problems = Problems()
        found = prepare_stage(self.cut, number, name, program, self.transfers, store), problems
        if self.mesh_options(number).prescription.confinement is None:
            self.subjects[number] = found
        return found

    def _within(self, number: int, options: PlanOptions, room: float) -> PlanOptions:
        """The same with fewer bytes per device, beginning with what was best with more."""
        before = self.candidates.get(number)
        options = replace(options, solve=_fitting(options.solve, room), known=None)
        return options if before is None else replace(begun(options, before), names_lack=False)

    def lower(self, number: int) -> PlannedStage:
        """The stage of a number by the strategies chosen for it."""
        candidate = self.candidates[number]
        starts = self.assignment.first_devices(self.options.cluster)
        start = starts[self.schedule.mesh_of(number)]
        return lower_stage(
            candidate,
            self.program,
            StagePlace(
                tuple(range(start, start + candidate.mesh.num_devices)),
                self.assignment.submeshes[number],
                self.assignment.layers_of(number),
                self.assignment.part_of(number),
            ),
            candidate.mesh.cluster.device,
            self.cut.texts()[number],
            split_backward=self.schedule.splits_backward,
            reach=NEAR if number in self.frugal else 0,
            store=self.options.store,
            inside_bytes=self.inside_bytes,
        )

    def fit(self, stages: list[PlannedStage], excess: Mapping[int, float]) -> None:
        """Mends stages that take more than was counted.

        What is gathered is kept for operators near by alone; where it is so already, the strategies
        are others. Stages of one mesh give in proportion to what they take; what one cannot give,
        the others do. Those that have to give most are first: they are most likely to refuse.

        Args:
            stages: as planned; those of the meshes are replaced.
            excess: bytes per device over the budget, per number of a mesh.

        Raises:
            InfeasibleError: a stage cannot do with so little.
        """
        mesh_of = self.schedule.mesh_of
        taken: dict[int, float] = {}
        for number, stage in enumerate(stages):
            mesh = mesh_of(number)
            taken[mesh] = taken.get(mesh, 0.0) + stage.solution.memory_peak_bytes
        left = {
            mesh: max(0.0, 1 - max(over / taken[mesh], _LEAST_GIVEN))
            for mesh, over in excess.items()
        }

        rooms = {
            number: left[mesh_of(number)] * stage.solution.memory_peak_bytes
            for number, stage in enumerate(stages)
            if mesh_of(number) in excess
        }

        def mended(number: int) -> PlannedStage | InfeasibleError:
            if number not in self.frugal:
                self.frugal.add(number)
                return self.lower(number)
            if rooms[number] <= 0:
                raise InfeasibleError(
                    f"stage {number} of {self.program.name} would have to do without "
                    f"{format_bytes(excess[mesh_of(number)])}, more than its mesh's stages take"
                )
            try:
                return self.plan(number, rooms[number])
            except InfeasibleError as error:
                return error

        exceeding = sorted(rooms, key=lambda number: left[mesh_of(number)])
        refusals: dict[int, InfeasibleError] = {}
        for number, found in zip(exceeding, self._each(mended, exceeding), strict=True):
            if isinstance(found, InfeasibleError):
                refusals[number] = found
            else:
                stages[number] = found
        for number, room in _given_by_others(rooms, refusals, stages, self.schedule).items():
            if stages[number].solution.memory_peak_bytes > room:
                stages[number] = self.plan(number, room)

    def _each(self, work: Callable[[int], _T], numbers: Sequence[int]) -> list[_T]:
        """What is made of each stage, all processors taking part where none waits for another."""
        methods = (self.options.prescription, *self.prescriptions.values())
        if any(method.confinement is not None for method in methods):
            # What a transfer goes together with is known from the stage that sends it.
            found = {number: work(number) for number in sorted(numbers)}
            return [found[number] for number in numbers]
        return in_threads(work, numbers)

    def mesh_options(self, number: int) -> PlanOptions:
        """What strategies of a stage are looked for under."""
        options = self.options
        whole = options.cluster.parts[self.assignment.part_of(number)]
        cluster = whole.part(*self.assignment.submeshes[number])
        methods = options.stages.stage_methods
        names, prescription = options.axis_names, options.prescription
        if methods:
            names = methods[number].axis_names
            prescription = self.prescriptions[id(methods[number])]
        shapes = tried_shapes(options, self.assignment, number)
        budget = self._budget(number)
        solve = replace(options.solve, memory_budget=budget)
        if options.is_trial and budget is not None:
            solve = stage_options(solve, budget)
        # A stage that is all of a pipeline takes as long as that.
        most_s = options.most_s if self.assignment.num_stages == 1 else math.inf
        solutions = self.assignment.solutions or options.known
        return PlanOptions(
            cluster,
            shapes,
            names,
            replace(solve, most_s=most_s),
            prescription,
            in_flight=self.schedule.most_in_flight(number),
            num_micro_batches=options.num_micro_batches,
            known=solutions[number] if solutions else None,
            carried=options.carried[number] if options.carried else None,
            memory_price_s=options.memory_price_s,
            store=options.store,
        )

    def _candidate(self, number: int, options: PlanOptions) -> Candidate:
        subject, problems = self.subject(number)
        try:
            with self.caches.one() as cache:
                return find_candidate(subject, options, cache, problems=problems)
        except InfeasibleError as error:
            raise _named(self, number, error) from error


def _planner_of(
    program: TracedProgram,
    options: PipelineOptions,
    layered: LayeredStep,
    say: Say,
    share: float = 1.0,
) -> _StagePlanner:
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
    if schedule.is_asynchronous:
        said.append(_said_of_updates(program, schedule))
        # What the search has proved is of steps with one update.
        assignment = replace(assignment, solutions=(), bracket=None)
    methods = {id(method): method for method in options.stages.stage_methods}
    prescriptions = {key: method.prescription(program) for key, method in methods.items()}
    cut = layered.kept_cut(assignment.stage_of_layer, schedule.is_asynchronous)
    first = options.cluster.parts[assignment.part_of(0)].device
    inside_bytes = InsideBytes(first.platform, options.store)
    planner = _StagePlanner(
        program, options, assignment, schedule, cut, inside_bytes, tuple(said), prescriptions
    )
    planner.check_weight_gradients()
    return planner


def _form_of(planner: _StagePlanner) -> Form:
    """The only stage of a step, of which others are other forms."""

    def lower(candidate: Candidate, reach: int) -> Plan:
        planner.candidates[0] = candidate
        planner.frugal.clear()
        planner.frugal.update([0] if reach else [])
        return planner.emitted([planner.lower(0)])

    return Form(planner.subject(0)[0], lower)


def _named(planner: _StagePlanner, number: int, error: InfeasibleError) -> InfeasibleError:
    """A refusal that says which stage it is of."""
    name, count = planner.subject(number)[0].name, math.prod(planner.assignment.submeshes[number])
    return error.reworded(f"{name} on {count} devices: {error}; {ADVICE}")


def _fitting(options: SolveOptions, room: float) -> SolveOptions:
    """How a stage is solved that is planned again: within bytes per device."""
    options = stage_options(options, room)
    return replace(options, budget_gap=max(options.budget_gap, _FITTING_GAP))


def _given_by_others(
    rooms: Mapping[int, float],
    refusals: Mapping[int, InfeasibleError],
    stages: Sequence[PlannedStage],
    schedule: Schedule,
) -> dict[int, float]:
    """Bytes per device of stages that give what others of their mesh cannot; those stay.

    Args:
        rooms: by number of a stage what it should do with.
        refusals: of stages that cannot.
        stages: of the step.
        schedule: of them.

    Raises:
        InfeasibleError: no other stage of a mesh is left.
    """
    found: dict[int, float] = {}
    for mesh in {schedule.mesh_of(number) for number in refusals}:
        own = [number for number in rooms if schedule.mesh_of(number) == mesh]
        others = [number for number in own if number not in refusals]
        refused = [number for number in own if number in refusals]
        if not others:
            raise refusals[refused[0]]
        lacking = sum(stages[one].solution.memory_peak_bytes - rooms[one] for one in refused)
        share = max(0.0, 1 - lacking / sum(rooms[number] for number in others))
        found |= {number: share * rooms[number] for number in others}
    return found


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


def _budgets(plan: Plan, options: PipelineOptions) -> dict[int, float]:
    """Bytes per device of each mesh; empty for any."""
    found = {
        plan.schedule.mesh_of(number): options.budget_of(stage.place.part)
        for number, stage in enumerate(plan.stages)
    }
    return {mesh: budget for mesh, budget in found.items() if budget is not None}


def _excess(plan: Plan, budgets: Mapping[int, float]) -> dict[int, float]:
    """Bytes per device over the budget of each mesh that exceeds it.

    Buffers of all micro-batches in flight have to fit, with what programs need inside.
    """
    if not budgets:
        return {}
    peaks = enumerate(plan.simulation.peak_bytes)
    return {mesh: peak - budgets[mesh] for mesh, peak in peaks if peak > budgets[mesh]}
