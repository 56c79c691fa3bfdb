"""Search over numbers of micro-batches, schedules and recomputation, where they are not given."""

from __future__ import annotations

import functools
import logging
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from stablehlo_alpa.errors import CompileError, InfeasibleError, SlowerError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.count_search import Outcome, climb
from stablehlo_alpa.inter_op.forecast import Forecast, likely_counts
from stablehlo_alpa.inter_op.forms import last_forms, layered_forms
from stablehlo_alpa.inter_op.options import (
    AutoStages,
    ManualStages,
    PipelineOptions,
    ProfiledStages,
    StageOption,
    UniformStages,
)
from stablehlo_alpa.inter_op.pipeline_search import SearchLimits
from stablehlo_alpa.inter_op.planner import plan_pipeline
from stablehlo_alpa.inter_op.profiled import plan_profiled, profiler_of
from stablehlo_alpa.inter_op.profiling import Profiler
from stablehlo_alpa.inter_op.slicing import LayeredStep, StepForms
from stablehlo_alpa.planning.cut import Cut
from stablehlo_alpa.planning.interruption import SearchInterrupted
from stablehlo_alpa.planning.ordering import ScheduleKind
from stablehlo_alpa.planning.own_schedule import OwnSchedule
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.plan_report import Alternative
from stablehlo_alpa.planning.refusals import lack, lacking, leanest
from stablehlo_alpa.planning.schedules import ScheduleName
from stablehlo_alpa.units import micro_batches
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

# GPipe is never faster than 1F1B and keeps more: it is there for who asks for it.
_OTHERS = (ScheduleName.ZERO_BUBBLE,)
_CHUNKS = 2
_PATIENCE = 2
# A plan that takes more than this part of the memory may have been cut as it is for its sake.
_FULL = 0.5
# Steps whose modules have no more lines: a candidate of one with 200 takes a fifth of a second of
# processor time, of one with 2500, a GPT of one layer, half a second (measured; heuristic).
_FEW_LINES = 1000
# A number of micro-batches that gains less than this part of a step is not searched to the end: a
# search for stages ends with as much.
_WORTH = SearchLimits().gap


def sweep(
    programs: Iterable[tuple[str, TracedProgram]],
    options: PipelineOptions,
    num_micro_batches: int | None,
    schedule: ScheduleKind | None,
    say: Say = _log.debug,
    whole: InfeasibleError | None = None,
) -> Plan:
    """The plan of least predicted time per step.

    What is computed again is work, done for memory alone: where memory decided nothing, no more of
    it is tried.

    Args:
        programs: the step, as it is with more and more of it computed again in the backward phase,
            each with what that is (see `Alternative`); those that are not tried are not made.
        options: everything else; number and schedule in it are not used.
        num_micro_batches: None searches.
        schedule: its name, or one's own; None searches.
        say: is told what is being done.
        whole: why the step does not fit in one piece, where that is known.

    Raises:
        InfeasibleError: nothing fits; the last refusal.
        CompileError, ValueError: see `plan_pipeline`.
        SearchInterrupted: Ctrl-C, when there is a plan.
    """
    made: list[_Attempts] = []
    stages = options.stages
    profiler = profiler_of(stages, say) if isinstance(stages, ProfiledStages) else None
    forecast = Forecast()
    try:
        for recomputed, program in programs:
            latency_s = _least_latency(made)
            attempts = _Attempts(program, recomputed, say, profiler, latency_s, forecast=forecast)
            attempts.learn(1, whole)
            before = _fastest(made)
            made.append(attempts)
            try:
                attempts.run(options, num_micro_batches, schedule, before)
            except CompileError as error:
                # What runs once per step cannot be computed again for every micro-batch.
                if not any(one.tried for one in made[:-1]):
                    raise
                _log.info("%s computed again: %s", recomputed, error)
            if not attempts.is_tight(options):
                break
    except KeyboardInterrupt as interrupt:
        best = _fastest(made)
        if best is None:
            raise
        raise SearchInterrupted(best) from interrupt
    best = _fastest(made)
    return _last_resort(made) if best is None else best


def _least_latency(made: list[_Attempts]) -> float:
    """The least latency that a search for stages has found."""
    return min((one.latency_s for one in made), default=math.inf)


def _last_resort(made: list[_Attempts]) -> Plan:
    """What lacks least of all that was tried, or was tried last, where no pains are spared.

    Raises:
        InfeasibleError: it does not fit; with what it lacks.
    """
    last = [one for one in made if one.refused][-1]
    known = [(one, *refusal) for one in made for refusal in one.refused]
    hopeful = min(known, key=lambda refusal: _lack(refusal[2]))
    looked_at = [(last, *last.refused[-1])]
    looked_at += [hopeful] if hopeful[2] is not last.refused[-1][1] else []
    refusals = []
    for attempts, options, refusal in looked_at:
        if options.is_trial:
            try:
                options = replace(options, is_trial=False)
                return attempts.fastest_form(options, attempts.say)
            except InfeasibleError as error:
                refusal = error
        refusals.append(refusal)
    refusal = min(refusals, key=_lack)
    if last.uncut is None:
        raise refusal
    count, why = last.uncut
    raise refusal.reworded(f"{refusal}; {micro_batches(count)} were not possible: {why}")


def _lack(refusal: InfeasibleError) -> float:
    """Bytes per device that what was refused lacks, or its stage that lacks least; +inf unknown."""
    known = [one for one in (refusal, refusal.__cause__) if isinstance(one, InfeasibleError)]
    return min(map(lack, lacking(known)), default=math.inf)


def _fastest(made: list[_Attempts]) -> Plan | None:
    """The best plan of all, with what it was chosen from."""
    found = [replace(one.best, recomputed=one.recomputed) for one in made if one.best is not None]
    tried = tuple(alternative for one in made for alternative in one.tried)
    if not found:
        return None
    best = min(found, key=lambda plan: plan.step_time_s)
    bracket, bounds = best.bracket, [bound_s for one in made for bound_s in one.bounds]
    if bracket is not None:
        bracket = replace(bracket, bound_s=min([bracket.bound_s, *bounds]))
    return replace(best, bracket=bracket, tried=tried if len(tried) > 1 else ())


@dataclass
class _Attempts:
    """Plans that were made, of which the fastest is kept.

    Attributes:
        program: the step.
        recomputed: see `Alternative`.
        say: is told what is being done.
        profiler: times plans; None where they are priced.
        latency_s: the least that a search for stages has found, by its own measure.
        best: the fastest; None as long as nothing fits.
        tried: all, in order.
        bounds: seconds of a step that others are proved to take at least, by the search's measure.
        refused: what did not fit, and why.
        uncut: a number of micro-batches into which the step cannot be cut, and why.
        forecast: says how long it goes on.
    """

    program: TracedProgram
    recomputed: str
    say: Say
    profiler: Profiler | None = None
    latency_s: float = math.inf
    best: Plan | None = None
    tried: list[Alternative] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    refused: list[tuple[PipelineOptions, InfeasibleError]] = field(default_factory=list)
    uncut: tuple[int, CompileError] | None = None
    forecast: Forecast = field(default_factory=Forecast)
    _is_trial: bool = False
    # Bytes that a number of micro-batches needs at least.
    _needed: tuple[int, float] = (1, 0.0)
    # By the mesh of the only stage a number of micro-batches, and the bytes that it needs there.
    _of_mesh: dict[tuple[int, ...], tuple[int, float]] = field(default_factory=dict)
    # By number of micro-batches the step with layers, of the last that were tried and of the best.
    _forms: dict[int, tuple[LayeredStep, ...]] = field(default_factory=dict)
    _steps: StepForms | None = None

    def run(
        self,
        options: PipelineOptions,
        num_micro_batches: int | None,
        schedule: ScheduleKind | None,
        before: Plan | None,
    ) -> None:
        """Tries numbers of micro-batches, then schedules with the best of them.

        Numbers are the powers of two into which the step can be cut.

        Args:
            options: everything else.
            num_micro_batches: None searches.
            schedule: None searches.
            before: the best plan with less of the step computed again.
        """
        program = self.program
        self._steps = StepForms(program, options.store)
        if not program.has_gradients and not isinstance(schedule, OwnSchedule):
            # Without backward passes there is nothing to order.
            schedule = ScheduleName.INFERENCE
        options = replace(options, schedule=schedule or ScheduleName.ONE_F_ONE_B)
        counts = _counts(program, options, num_micro_batches, schedule)
        self._is_trial = len(counts) > 1
        if options.cluster.num_hosts > 1 and isinstance(options.stages, AutoStages):
            usual = options.cluster.num_devices
            start = before.runtime.num_micro_batches if before else usual
            attempt = functools.partial(self._try_count, options)
            climb(counts, start, attempt, tries_all=_is_small(program))
        else:
            self.try_counts(options, counts)
        if not self.tried:
            if self.uncut is not None:
                raise self.uncut[1]
            raise ValueError(
                f"no power of two divides the batch and suits the {schedule} schedule: pass "
                "num_micro_batches"
            )
        is_open = schedule is None and options.num_chunks == 1
        if is_open and self.best is not None and len(self.best.stages) > 1:
            others = _alternatives(self.best, options)
            self._is_trial = True
            for number, other in enumerate(others):
                self.expect(len(others) - number - 1, len(others) - number - 1, options)
                self.attempt(other)

    def is_tight(self, options: PipelineOptions) -> bool:
        """Whether less memory could make a plan that is faster than the best.

        It could where a plan was refused, where memory has a price, and where a cut into fewer
        stages may have been refused for it: the best takes much of the budget (a heuristic).

        Args:
            options: whose budgets of memory they are.
        """
        budget = options.solve.memory_budget
        if budget is None or self.best is None or self.refused:
            return budget is not None
        peaks, mesh_of = self.best.simulation.peak_bytes, self.best.schedule.mesh_of
        is_full = any(
            peaks[mesh_of(number)] > _FULL * (options.budget_of(stage.place.part) or math.inf)
            for number, stage in enumerate(self.best.stages)
        )
        return is_full or self.best.memory_price_s_per_gib > 0

    def expect(self, likely: float, most: int, options: PipelineOptions) -> None:
        """Takes how many candidates follow the next one, with as much computed again.

        Where memory is short, half as many follow with more of it computed again (heuristic: what
        was slower is ruled out by bounds).
        """
        number = 0 if self.recomputed else len(self.tried) + 1
        is_tight = self.is_tight(options)
        self.forecast.likely = likely
        self.forecast.again = 0.5 * (number + likely) if number and is_tight else 0.0
        self.forecast.most = most + 2 * (number + most if number else 0)

    def attempt(self, one: PipelineOptions) -> Outcome:
        """Makes a plan, and says what came of it."""
        with self.forecast.candidate():
            return self._attempt(one)

    def _attempt(self, one: PipelineOptions) -> Outcome:
        which = f"{self.program.name}: {micro_batches(one.num_micro_batches)}, {one.schedule}"
        alternative = self._alternative(one)
        most_s = self.latency_s * (1 if _is_small(self.program) else 1 - _WORTH)
        one = replace(one, most_s=most_s, is_trial=self._is_trial)
        try:
            planned = self._plan(one, lambda what: self.say(f"{which}: {what}{self.forecast}"))
        except InfeasibleError as error:
            self.tried.append(alternative)
            self.refused.append((one, error))
            if not isinstance(one.stages, AutoStages):
                self.learn(one.num_micro_batches, error)
            return Outcome.REFUSED
        except SlowerError as error:
            _log.info("%s: %s", which, error)
            self.tried.append(replace(alternative, least_s=error.least_s))
            # What another schedule is refused for is no bound by the search's measure.
            self.bounds += [error.least_s] if math.isinf(one.most_step_s) else []
            return Outcome.CLOSE if error.least_s < self.latency_s else Outcome.SLOWER
        self.forecast.fits()
        is_given = not isinstance(one.stages, AutoStages)
        cut = Cut.of(planned.stages, one.num_chunks, is_given=is_given)
        self.tried.append(replace(alternative, step_time_s=planned.step_time_s, cut=cut))
        _log.info("%s", self.tried[-1])
        if self.profiler is None:
            # What was measured may be fast where a bound of prices says that it is slow.
            self.latency_s = min(self.latency_s, _latency(planned))
        self.bounds += [planned.bracket.bound_s] if planned.bracket is not None else []
        is_best = self.best is None or planned.step_time_s < self.best.step_time_s
        if is_best:
            self.best = planned
        return Outcome.BEST if is_best else Outcome.SLOWER

    def _alternative(self, one: PipelineOptions) -> Alternative:
        """What is tried, as long as it has no plan."""
        return Alternative(one.num_micro_batches, str(one.schedule), None, self.recomputed)

    def learn(self, count: int, refusal: InfeasibleError | None) -> None:
        """Takes what a number of micro-batches is proved to need, and on which mesh."""
        if refusal is None or refusal.least_bytes is None:
            return
        self._of_mesh |= {mesh: (count, least) for mesh, least in refusal.least_by_mesh.items()}
        # On a mesh that was not tried this time it may be less.
        others = [least * other / count for other, least in self._of_mesh.values()]
        self._needed = count, min([refusal.least_bytes, *others])

    def _open_meshes(self, one: PipelineOptions) -> tuple[tuple[int, ...], ...] | None:
        """The meshes of the only stage that may fit, by what fewer micro-batches need; or all."""
        budget, meshes = one.solve.memory_budget, one.mesh_shapes
        if budget is None or meshes is None or one.stages != UniformStages(1):
            return meshes
        room = budget * one.num_micro_batches
        known = self._of_mesh
        return tuple(m for m in meshes if m not in known or math.prod(known[m]) <= room) or meshes

    def _may_fit(self, one: PipelineOptions) -> bool:
        """Whether a number of micro-batches may fit by what a smaller one needs.

        Twice as many take half of the memory at the least.
        """
        budget, (count, needed) = one.solve.memory_budget, self._needed
        return budget is None or needed * count <= budget * one.num_micro_batches

    def _plan(self, one: PipelineOptions, say: Say) -> Plan:
        """A plan, by measured seconds where there is a profiler."""
        if self.profiler is not None and isinstance(one.stages, ProfiledStages):
            return plan_profiled(self.program, one, self.profiler, say)
        plan = self.fastest_form(one, say)
        return plan if self.profiler is None else self.profiler.measured(plan)

    def fastest_form(self, one: PipelineOptions, say: Say) -> Plan:
        """The best of the plans of the step as it is, and of its other forms."""
        best: Plan | None = None
        bounds: list[float] = []
        refused: list[InfeasibleError] = []
        slower: list[SlowerError] = []
        for forms_of in (self._forms_of, self._last_forms_of):
            for forms in _together(forms_of(one), one):
                try:
                    plan = plan_pipeline(self.program, one, say, forms)
                except InfeasibleError as error:
                    refused.append(error)
                    continue
                except SlowerError as error:
                    bounds.append(error.least_s)
                    slower.append(error)
                    continue
                if best is None or plan.step_time_s < best.step_time_s:
                    best = plan
                if plan.bracket is not None:
                    bounds.append(plan.bracket.bound_s)
                one = replace(one, most_s=min(one.most_s, _latency(plan)))
            if best is not None or bounds:
                break
        if best is None:
            raise slower[0] if slower else leanest(refused)
        if best.bracket is None:
            return best
        is_known = isinstance(one.stages, AutoStages) or all(error.is_proved for error in refused)
        bound_s = min(bounds) if is_known else 0.0
        return replace(best, bracket=replace(best.bracket, bound_s=bound_s))

    def _last_forms_of(self, one: PipelineOptions) -> tuple[LayeredStep, ...]:
        """Those for where no other fits."""
        steps = self._steps or StepForms(self.program, one.store)
        return last_forms(steps, one, self._forms_of(one)[0])

    def _forms_of(self, one: PipelineOptions) -> tuple[LayeredStep, ...]:
        """The step with layers and phases: schedules of the best number have the same."""
        count = one.num_micro_batches
        if count not in self._forms:
            best = self.best.runtime.num_micro_batches if self.best else count
            kept = {best: self._forms[best]} if best in self._forms else {}
            self._forms = kept | {count: layered_forms(self.program, one, self._steps)}
        return self._forms[count]

    def try_counts(self, options: PipelineOptions, counts: list[int]) -> None:
        """Tries numbers of micro-batches, smallest first, as long as more of them may be faster.

        More of them shrink the bubble and starve the devices. From as many as there are devices on
        it ends with the second in a row that is slower; of one stage, which has no bubble, at once.
        """
        is_alone = _num_stages(options.stages) == 1
        enough = 1 if is_alone else options.cluster.num_devices
        slower = 0
        for number, count in enumerate(counts):
            if slower >= _PATIENCE and count > enough:
                break
            one = replace(options, num_micro_batches=count)
            one = replace(one, mesh_shapes=self._open_meshes(one))
            # What less of it computed again takes rules numbers out as well.
            following, is_found = len(counts) - number - 1, math.isfinite(self.latency_s)
            likely = likely_counts(following, slower, _PATIENCE, is_found=is_found)
            self.expect(likely, following, options)
            if count < counts[-1] and not self._may_fit(one):
                self.tried.append(self._alternative(one))
                continue
            try:
                outcome = self.attempt(one)
            except CompileError as error:
                # What cannot be cut into so many cannot be cut into twice as many.
                self.uncut = count, error
                if self.best is None and not self.refused:
                    raise
                break
            if outcome is not Outcome.REFUSED:
                slower = 0 if outcome is Outcome.BEST else slower + 1

    def _try_count(self, options: PipelineOptions, count: int, likely: float, most: int) -> Outcome:
        """Tries a number of micro-batches, which so many are likely to follow, and may."""
        self.expect(likely, most, options)
        try:
            return self.attempt(replace(options, num_micro_batches=count))
        except CompileError as error:
            self.uncut = count, error
            return Outcome.UNCUT


def _together(
    forms: tuple[LayeredStep, ...], options: PipelineOptions
) -> list[tuple[LayeredStep, ...]]:
    """Forms that are planned together: all of a step of one stage, each by itself otherwise."""
    if _num_stages(options.stages) == 1:
        return [forms] if forms else []
    return [(form,) for form in forms]


def _is_small(program: TracedProgram) -> bool:
    """Whether a candidate takes so little that none is left out but by what is proved of it."""
    return program.text.count("\n") <= _FEW_LINES


def _latency(plan: Plan) -> float:
    """Seconds of a step by the measure of the search; +inf where there was none."""
    if plan.bracket is not None:
        return plan.bracket.latency_s
    return plan.stages[0].solution.objective_s if len(plan.stages) == 1 else math.inf


def _counts(
    program: TracedProgram,
    options: PipelineOptions,
    given: int | None,
    schedule: ScheduleKind | None,
) -> list[int]:
    if given is not None:
        return [given]
    size = max((program.inputs[index].shape[0] for index in program.batch), default=1)
    powers = (1 << power for power in range(max(size, 1).bit_length()))
    stages = _num_stages(options.stages) or 1
    # The interleaved schedule takes micro-batches in multiples of its meshes, the V at least twice
    # as many as meshes.
    is_interleaved = schedule == ScheduleName.INTERLEAVED
    step = max(stages // options.num_chunks, 1) if is_interleaved else 1
    least = stages if schedule == ScheduleName.DUALPIPE_V else 1
    return [one for one in powers if size % one == 0 and one % step == 0 and one >= least]


def _num_stages(stages: StageOption) -> int | None:
    """How many stages are asked for; None where they are searched."""
    match stages:
        case UniformStages(num_stages=number):
            return number
        case ManualStages(layers=layers):
            return len(layers)
    return None


def _as_given(plan: Plan, options: PipelineOptions) -> ManualStages:
    """The stages of a plan, so that they need not be searched again."""
    return ManualStages(
        tuple(len(stage.layers) for stage in plan.stages),
        tuple(stage.submesh for stage in plan.stages),
        tuple(stage.mesh.shape for stage in plan.stages),
        options.stages.stage_methods or None,
        parts=Cut.of(plan.stages).parts or None,
    )


def _alternatives(best: Plan, options: PipelineOptions) -> list[PipelineOptions]:
    """The same number of micro-batches under other schedules."""
    count = best.runtime.num_micro_batches
    known = tuple(stage.solution for stage in best.stages)
    same = replace(
        options,
        num_micro_batches=count,
        most_step_s=best.step_time_s,
        memory_price_s=float(np.median([one.memory_price_s for one in known])) or None,
    )
    given = replace(same, stages=_as_given(best, options), known=known)
    found = [replace(given, schedule=name) for name in _OTHERS]
    # Equal stages can be cut once more: several to a mesh.
    stages, submeshes = len(best.stages), {stage.submesh for stage in best.stages}
    num_layers = sum(len(stage.layers) for stage in best.stages)
    fits = num_layers >= _CHUNKS * stages and count % stages == 0
    is_alike = len(submeshes) == 1 and len(options.cluster.parts) == 1
    if isinstance(options.stages, (AutoStages, UniformStages)) and is_alike and fits:
        # Stages that are cut once more are split as the whole was, or as most of it.
        [(shape, _)] = Counter(stage.mesh.shape for stage in best.stages).most_common(1)
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
