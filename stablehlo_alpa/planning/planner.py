"""Plans a step as one program of one mesh, and proves what every planner has made."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import alpa_runtime
from alpa_runtime import check
from alpa_runtime.buffer_memory import peak_of

from stablehlo_alpa.cluster import Cluster
from stablehlo_alpa.compiler import Module
from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.frontend import TracedProgram, paused_collection
from stablehlo_alpa.intra_op import SolverCache
from stablehlo_alpa.planning.boundary import Boundary
from stablehlo_alpa.planning.bracket import of_stages
from stablehlo_alpa.planning.constrained_blocks import with_constrained_blocks
from stablehlo_alpa.planning.fitting import Form, FormSearch, lowered_within
from stablehlo_alpa.planning.lowering import lower_program
from stablehlo_alpa.planning.mesh_search import (
    Candidate,
    PlanOptions,
    Subject,
    find_candidate,
    undercutting,
)
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.prescription import Prescription
from stablehlo_alpa.planning.problems import Problems
from stablehlo_alpa.planning.refusals import leanest
from stablehlo_alpa.planning.schedules import Schedule, single
from stablehlo_alpa.planning.slow_types import slow_types
from stablehlo_alpa.planning.small_values import with_small_values
from stablehlo_alpa.planning.stage import (
    CostedProgram,
    PhaseProgram,
    PlannedStage,
    StagePlace,
    program_name,
)
from stablehlo_alpa.planning.unmeasured import unmeasured
from stablehlo_alpa.store import Record
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view import Say, progress

_log = logging.getLogger(__name__)

# Tensors that an error names (heuristic).
_SHOWN_TENSORS = 5


# What padding may add to a size, as a share of it: next to nothing, as to a vocabulary, or a
# multiple, as to 3 heads (heuristic). Each is a form of its own, so that sizes that are better left
# alone do not spoil those that are not.
MOST_ADDED = (0.125, 8.0)


@dataclass(frozen=True)
class PreparedForm:
    """One form of a program.

    Attributes:
        subject: what is planned.
        remarks: on it.
    """

    subject: Subject = field(repr=False)
    remarks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PreparedProgram:
    """A program that is to be planned for one mesh.

    Attributes:
        program: it.
        options: what its plan is looked for under.
        forms: see `prepared_forms`.
        problems: those that were made so far.
    """

    program: TracedProgram
    options: PlanOptions
    forms: tuple[PreparedForm, ...]
    problems: Problems = field(default_factory=Problems)

    @classmethod
    def of(cls, program: TracedProgram, options: PlanOptions) -> PreparedProgram:
        """Merges operators.

        Raises:
            CompileError: a pass refused the program.
        """
        with progress(_log.debug) as say:
            say(f"{program.name}: merging operators")
            return cls(program, options, tuple(prepared_forms(program, options)))


def plan_program(program: TracedProgram, options: PlanOptions) -> Plan:
    """Finds the fastest plan among the mesh shapes; see `plan_prepared`.

    Raises:
        CompileError: a pass refused the program.
    """
    return plan_prepared(PreparedProgram.of(program, options))


@paused_collection()
def plan_prepared(prepared: PreparedProgram, *, names_lack: bool = True) -> Plan:
    """Finds the fastest plan among the mesh shapes.

    Args:
        prepared: the program.
        names_lack: where nothing fits, the leanest plan is looked for, to say what it lacks.

    Raises:
        CompileError: a pass refused the program.
        InfeasibleError: no mesh shape has a plan within the memory budget; the largest tensors of
            the one that needs the least.
        ShardingError: what is prescribed exactly fits no mesh shape.
        MeshError: there is no mesh shape.
    """
    with progress(_log.debug) as say:

        def tell(what: str) -> None:
            say(f"{prepared.program.name}: {what}")

        options = replace(prepared.options, names_lack=names_lack)
        return _plan_within(replace(prepared, options=options), tell)


def prepared_forms(program: TracedProgram, options: PlanOptions) -> list[PreparedForm]:
    """The program with roles, as it is, and other forms of it.

    Those whose sizes are padded, the one in which devices sort rows of their own for products in
    groups, and of each the one in which attention over many keys is one operator, as far as they
    differ.

    Raises:
        CompileError: a pass refused the program.
    """
    boundary = Boundary.of(program)
    # Shardings that the function's author asks for, where it is their mesh that is planned for.
    axes = ",".join(options.axis_names or ())
    imports = f"alpa-import-pipeline{{{program.state_option} axes={axes}}}"

    @functools.cache
    def imported() -> tuple[Module, list[str]]:
        """What all forms are made of, and remarks on it."""
        module = Module(program.text, program.name)
        return module, module.run(imports)

    def prepare(more: str) -> PreparedForm:
        pipeline = f"alpa-merge-pipeline{{{more}}}"
        parsed: Module | None = None

        def made() -> Record:
            nonlocal parsed
            module, said = imported()
            parsed = module.clone()
            return {"remarks": [*said, *parsed.run(pipeline)], "merged": parsed.text()}

        found = options.store.remember("merged", (program.text, imports, pipeline), made)
        subject = Subject(program.name, found["merged"], boundary, parsed)
        subject = with_small_values(subject, options.prescription, options.store)
        return PreparedForm(subject, tuple(found["remarks"]))

    def add(forms: dict[str, PreparedForm], more: str) -> bool:
        """Whether the form is another one."""
        form = prepare(more)
        is_new = all(form.subject.merged != other.subject.merged for other in forms.values())
        if is_new:
            forms[more] = form
        return is_new

    forms = {"": prepare("")}
    devices = options.cluster.num_devices
    # What is prescribed is of sizes that padded operators need not keep.
    pads = options.pads_sizes and devices > 1 and options.prescription == Prescription()
    for most in reversed(MOST_ADDED) if pads else ():
        if not add(forms, f" pad-to={devices} most-added={most}") and len(forms) == 1:
            # What may add more adds nothing.
            break
    has_sorts = "stablehlo.sort" in program.text
    if has_sorts and devices > 1 and options.prescription == Prescription():
        add(forms, f" sort-parts={devices}")
    if options.attention_keys is not None:
        for more in tuple(forms):
            add(forms, f"{more} attention-keys={options.attention_keys}")
    return list(forms.values())


def fastest_form(
    forms: Sequence[PreparedForm],
    options: PlanOptions,
    cache: SolverCache,
    say: Say,
    problems: Problems | None = None,
) -> tuple[Candidate, tuple[str, ...]]:
    """The form with the fastest plan, of which ``least_s`` is of all, and the remarks on it.

    Raises:
        InfeasibleError: no form has a plan within the memory budget; what lacks least.
        ShardingError: what is prescribed exactly fits no mesh.
        MeshError: there is no mesh.
    """
    found: list[tuple[Candidate, tuple[str, ...]]] = []
    refused: list[InfeasibleError] = []
    bounds: list[float] = []
    for form in forms:
        try:
            candidate = find_candidate(form.subject, options, cache, say, problems)
            found.append((candidate, form.remarks))
            bounds.append(candidate.least_s)
            options = undercutting(options, candidate)
        except InfeasibleError as error:
            refused.append(error)
            bounds += [] if error.is_proved else [0.0]
        except SlowerError as error:
            # Another form was found.
            _log.info("%s", error)
            bounds.append(error.least_s)
    if not found:
        raise leanest(refused)
    best, remarks = min(found, key=lambda one: one[0].solution.objective_s)
    return replace(best, least_s=min(bounds)), remarks


def _plan_within(prepared: PreparedProgram, tell: Say) -> Plan:
    """The fastest plan whose per-device program stays within the memory budget.

    Raises:
        InfeasibleError: no mesh shape has such a plan.
    """
    options = prepared.options
    forms = [
        Form(one.subject, functools.partial(_lowered, prepared, one.remarks))
        for one in prepared.forms
    ]
    search = FormSearch(forms, options, tell, problems=prepared.problems)
    found = search.run()
    if found is None:
        assert search.over is not None
        assert options.solve.memory_budget is not None
        raise over_budget(search.over, 0, options.solve.memory_budget)
    plan, best, least_s = found
    return replace(plan, bracket=of_stages([best.solution.objective_s], [least_s]))


def lowered(best: Candidate, prepared: PreparedProgram, remarks: Sequence[str]) -> Plan:
    """The plan of a step whose strategies are chosen; over the memory budget where it has to be.

    Args:
        best: the strategies.
        prepared: the step.
        remarks: on the step.
    """
    budget = prepared.options.solve.memory_budget
    return lowered_within(best, functools.partial(_lowered, prepared, remarks), budget)


def _lowered(
    prepared: PreparedProgram, remarks: Sequence[str], best: Candidate, reach: int
) -> Plan:
    program, cluster = prepared.program, prepared.options.cluster
    devices = tuple(range(best.mesh.num_devices))
    place = StagePlace(devices, (cluster.num_hosts, cluster.devices_per_host))
    store = prepared.options.store
    stage = lower_program(best, program, place, cluster.device, reach=reach, store=store)
    (phase,) = stage.phases
    runtime = alpa_runtime.Plan.of_program(phase.program)
    check(runtime)
    return assemble(program, cluster, [stage], single(), runtime, [phase], remarks)


def over_budget(plan: Plan, mesh: int, budget: float, advice: str = "") -> InfeasibleError:
    """The error that says which mesh of a plan is over its memory budget, and with what.

    Args:
        plan: what does not fit.
        mesh: number of the mesh.
        budget: bytes per device.
        advice: what would mend it.
    """
    peak = plan.simulation.peak_bytes[mesh]
    numbers = range(mesh, len(plan.stages), len(plan.runtime.meshes))
    fullest = _fullest(plan, mesh, numbers)
    largest = fullest.live[:_SHOWN_TENSORS]
    listed = ", ".join(f"{name} ({format_bytes(size)})" for name, size in largest)
    who, what, which = "the plan that needs least takes", "", "there"
    if len(plan.stages) > 1:
        who = f"stage {' and '.join(map(str, numbers))} takes"
        what = " for parameters, micro-batches in flight and the program that runs"
        which = f"of its {fullest.name} program"
    return InfeasibleError(
        f"{plan.program.name}: {who} {format_bytes(peak)} per device{what}, "
        f"{format_bytes(peak - budget)} more than the memory budget of {format_bytes(budget)}; "
        f"largest live tensors {which}: {listed}" + (f"; {advice}" if advice else ""),
        needed_bytes=peak,
        budget_bytes=budget,
        largest=largest,
    )


def _fullest(plan: Plan, mesh: int, stages: Sequence[int]) -> PhaseProgram:
    """The phase that runs where a mesh holds the most; of what only waits the one with the most."""
    phases = [(stage, phase) for stage in stages for phase in plan.stages[stage].phases]
    peak = peak_of(plan.runtime, mesh, [cost.inside_bytes for cost in plan.costs])
    if peak.program is not None:
        running = plan.runtime.programs[peak.program].name
        named = {program_name(stage, phase.name): phase for stage, phase in phases}
        if running in named:
            return named[running]
    return max((phase for _, phase in phases), key=lambda phase: sum(b for _, b in phase.live))


def assemble(
    program: TracedProgram,
    cluster: Cluster,
    stages: Sequence[PlannedStage],
    schedule: Schedule,
    runtime: alpa_runtime.Plan,
    costs: Sequence[CostedProgram],
    remarks: Sequence[str],
) -> Plan:
    """The plan of planned stages; that what is run does not contradict itself is not checked.

    Args:
        program: the step.
        cluster: the devices.
        stages: of it.
        schedule: of them.
        runtime: what is run.
        costs: one per program of ``runtime``.
        remarks: on the step as a whole; those of the stages follow.
    """
    said = [*remarks, *slow_types(stages), *unmeasured(cluster)]
    said += [remark for stage in stages for remark in stage.remarks]
    return Plan(
        cluster=cluster,
        runtime=with_constrained_blocks(runtime, cluster.parts[0].device.platform),
        costs=tuple(costs),
        program=program,
        stages=tuple(stages),
        schedule=schedule,
        remarks=tuple(dict.fromkeys(said)),
    )
