"""Plans the stages of a step, each by itself."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.assigning import ADVICE, stage_options
from stablehlo_alpa.inter_op.emit import emit
from stablehlo_alpa.inter_op.options import PipelineOptions, StageAssignment, tried_shapes
from stablehlo_alpa.inter_op.planned_stages import latency_of
from stablehlo_alpa.inter_op.slicing import CutStages
from stablehlo_alpa.inter_op.solver_caches import SolverCaches
from stablehlo_alpa.inter_op.stage_subjects import known_transfers, prepare_stage
from stablehlo_alpa.inter_op.step_inputs import StepInterface
from stablehlo_alpa.inter_op.threads import in_threads
from stablehlo_alpa.inter_op.weight_gradients import most_waiting, waiting_bytes
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.planning.boundary import Companions
from stablehlo_alpa.planning.bracket import Bracket, of_stages
from stablehlo_alpa.planning.fitting import begun
from stablehlo_alpa.planning.lowering import NEAR, InsideBytes, lower_stage
from stablehlo_alpa.planning.mesh_search import Candidate, PlanOptions, Subject, find_candidate
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.planner import assemble
from stablehlo_alpa.planning.prescription import Prescription
from stablehlo_alpa.planning.problems import Problems
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.small_values import with_small_values
from stablehlo_alpa.planning.stage import PlannedStage, StagePlace
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

# The gap to which stages are solved that are planned again with less memory (heuristic: what is
# emitted differs by as much from what was counted).
_FITTING_GAP = 2e-2
# What lowering leaves at least of the seconds that stages were solved to: values are gathered once
# for several operators, collectives run beside products (heuristic).
_LOWERED_SHARE = 0.9
# A schedule that is one of several is not tried where what waits for weight gradients, split over
# all devices, takes so many times the memory (heuristic).
_HOPELESS = 1.25


@dataclass(frozen=True, eq=False)
class StagesPlanner:
    """Plans the stages of a step; equal ones share tables of the solver.

    Attributes:
        program: the step.
        options: what it is planned under.
        assignment: which layers run where.
        schedule: of the stages.
        cut: the step, cut into them.
        inside_bytes: measures what their programs need inside.
        remarks: of the step.
        prescriptions: of the methods of the stages, by identity.
        caches: tables of the solver.
        transfers: by number of a transfer what its dimensions go together with.
        candidates: by number of a stage the strategies that it was lowered with last.
        subjects: by number of a stage it and what is chosen from, where no other stage has a say in
            that.
        frugal: stages of which gathered values are kept for operators near by alone.
    """

    program: TracedProgram
    options: PipelineOptions
    assignment: StageAssignment
    schedule: Schedule
    cut: CutStages
    inside_bytes: InsideBytes
    remarks: tuple[str, ...] = ()
    prescriptions: Mapping[int, Prescription] = field(default_factory=dict)
    caches: SolverCaches = field(default_factory=SolverCaches)
    transfers: dict[int, Companions] = field(default_factory=dict)
    candidates: dict[int, Candidate] = field(default_factory=dict)
    subjects: dict[int, tuple[Subject, Problems]] = field(default_factory=dict)
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
        found = dict(zip(numbers, self.each(one, numbers), strict=True))
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

    def emitted(self, stages: Sequence[PlannedStage]) -> Plan:
        """The plan of planned stages, with its instructions."""
        program, cluster, schedule = self.program, self.options.cluster, self.schedule
        interface = StepInterface.of(program)
        runtime, costs = emit(stages, schedule, interface, self.inside_bytes)
        plan = assemble(program, cluster, stages, schedule, runtime, costs, self.remarks)
        return replace(plan, bracket=self._bracket(stages), considered=self.assignment.considered)

    def _bracket(self, stages: Sequence[PlannedStage]) -> Bracket | None:
        """What is proved of planned stages; None where nothing is."""
        found = self.assignment
        if found.bracket is not None:
            # Those that are planned again, with less memory, take longer than those found.
            if [id(one.solution) for one in stages] == list(map(id, found.solutions)):
                return found.bracket
            return found.bracket.of(latency_of(stages, found.received_s, self.options))
        if self.schedule.is_asynchronous or self.options.known:
            return None
        own = [self.candidates[number] for number in range(found.num_stages)]
        return of_stages([one.solution.objective_s for one in own], [one.least_s for one in own])

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
        prescription = self.mesh_options(number).prescription
        subject = prepare_stage(self.cut, number, name, program, self.transfers, store)
        found = with_small_values(subject, prescription, store), problems
        if prescription.confinement is None:
            self.subjects[number] = found
        return found

    def _within(self, number: int, options: PlanOptions, room: float) -> PlanOptions:
        """The same with fewer bytes per device, beginning with what was best with more."""
        before = self.candidates.get(number)
        options = replace(options, solve=within_room(options.solve, room), known=None)
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

    def each(self, work: Callable[[int], _T], numbers: Sequence[int]) -> list[_T]:
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
            raise named(self, number, error) from error


def named(planner: StagesPlanner, number: int, error: InfeasibleError) -> InfeasibleError:
    """A refusal that says which stage it is of."""
    name, count = planner.subject(number)[0].name, math.prod(planner.assignment.submeshes[number])
    return error.reworded(f"{name} on {count} devices: {error}; {ADVICE}")


def within_room(options: SolveOptions, room: float) -> SolveOptions:
    """How a stage is solved that is planned again: within bytes per device."""
    options = stage_options(options, room)
    return replace(options, budget_gap=max(options.budget_gap, _FITTING_GAP))
