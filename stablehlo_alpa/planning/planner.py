"""Plans a step as one program of one mesh, and proves what every planner has made."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import alpa_runtime
from alpa_runtime import check

from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.compiler import run_passes
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.intra_op import SolverCache
from stablehlo_alpa.planning.boundary import Boundary
from stablehlo_alpa.planning.lowering import NEAR, lower_program
from stablehlo_alpa.planning.mesh_search import Candidate, PlanOptions, Subject, find_candidate
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.schedules import Schedule, single
from stablehlo_alpa.planning.stage import CostedProgram, PlannedStage, StagePlace
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view import Say, progress

_log = logging.getLogger(__name__)

# How often strategies are chosen for a step whose program is over the memory budget (heuristic).
_MEMORY_ROUNDS = 4
# Tensors that an error names (heuristic).
_SHOWN_TENSORS = 5


def plan_program(program: TracedProgram, options: PlanOptions) -> Plan:
    """Finds the fastest plan among the mesh shapes.

    Raises:
        CompileError: a pass refused the program.
        InfeasibleError: no mesh shape has a plan within the memory budget; the largest tensors of
            the one that needs the least.
        ShardingError: what is prescribed exactly fits no mesh shape.
        MeshError: there is no mesh shape.
    """
    with progress(_log.debug) as say:

        def tell(what: str) -> None:
            say(f"{program.name}: {what}")

        tell("merging operators")
        # Shardings that the function's author asks for, where it is their mesh that is planned for.
        axes = ",".join(options.axis_names or ())
        preparing = f"alpa-prepare-pipeline{{{program.state_option} axes={axes}}}"
        merged, remarks = run_passes(program.text, f"builtin.module({preparing})", program.name)
        subject = Subject(program.name, merged, Boundary.of(program))
        return _plan_within(subject, program, options, remarks, tell)


def _plan_within(
    subject: Subject,
    program: TracedProgram,
    options: PlanOptions,
    remarks: Sequence[str],
    tell: Say,
) -> Plan:
    """The fastest plan whose per-device program stays within the memory budget.

    The strategies are chosen by the tensors of the step as it is written. What collectives between
    them hold as well is known of the program that is run. Where that is over the budget, gathered
    values are not kept for operators far behind; where that does not suffice, strategies are chosen
    anew with that much less room.

    Raises:
        InfeasibleError: no mesh shape has such a plan.
    """
    cache, budget = SolverCache(), options.solve.memory_budget
    room, over = budget, None
    for _ in range(_MEMORY_ROUNDS):
        solve = replace(options.solve, memory_budget=room)
        try:
            best = find_candidate(subject, replace(options, solve=solve), cache, tell)
        except InfeasibleError:
            if over is None:
                raise
            break
        tell(f"lowering to {'x'.join(map(str, best.mesh.shape))}")
        for reach in (0, NEAR):
            plan = _lowered(best, program, options.cluster, remarks, reach)
            if budget is None or plan.peak_bytes <= budget:
                return plan
        assert budget is not None
        excess = plan.peak_bytes - budget
        _log.info("%s: %.3e bytes over the memory budget", subject.name, excess)
        over = plan if over is None or plan.peak_bytes < over.peak_bytes else over
        room = max(0.0, best.solution.memory_peak_bytes - excess)
    assert over is not None
    assert budget is not None
    raise over_budget(over, 0, budget)


def _lowered(
    best: Candidate,
    program: TracedProgram,
    cluster: ClusterSpec,
    remarks: Sequence[str],
    reach: int,
) -> Plan:
    """The plan of a step whose strategies are chosen."""
    devices = tuple(range(best.mesh.num_devices))
    place = StagePlace(devices, (cluster.num_hosts, cluster.devices_per_host))
    stage = lower_program(best, program, place, cluster.device, reach=reach)
    (phase,) = stage.phases
    runtime = alpa_runtime.Plan.of_program(phase.program)
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
    phases = [phase for number in numbers for phase in plan.stages[number].phases]
    fullest = max(phases, key=lambda phase: sum(size for _, size in phase.live))
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


def assemble(
    program: TracedProgram,
    cluster: ClusterSpec,
    stages: Sequence[PlannedStage],
    schedule: Schedule,
    runtime: alpa_runtime.Plan,
    costs: Sequence[CostedProgram],
    remarks: Sequence[str],
) -> Plan:
    """The plan of planned stages, proved.

    Args:
        program: the step.
        cluster: the devices.
        stages: of it.
        schedule: of them.
        runtime: what is run.
        costs: one per program of ``runtime``.
        remarks: on the step as a whole; those of the stages follow.

    Raises:
        ProgramError: what is run contradicts itself.
    """
    check(runtime)
    said = [*remarks, *(remark for stage in stages for remark in stage.remarks)]
    return Plan(
        cluster=cluster,
        runtime=runtime,
        costs=tuple(costs),
        program=program,
        stages=tuple(stages),
        schedule=schedule,
        remarks=tuple(dict.fromkeys(said)),
    )
