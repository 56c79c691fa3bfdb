"""Plans a step as one program of one mesh, and proves what every planner has made."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import alpa_runtime
from alpa_runtime import check

from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.compiler import run_passes
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.planning.boundary import Boundary
from stablehlo_alpa.planning.lowering import lower_program
from stablehlo_alpa.planning.mesh_search import PlanOptions, Subject, find_candidate
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.schedules import Schedule, single
from stablehlo_alpa.planning.stage import CostedProgram, PlannedStage, StagePlace
from stablehlo_alpa.view import progress

_log = logging.getLogger(__name__)


def plan_program(program: TracedProgram, options: PlanOptions) -> Plan:
    """Finds the fastest plan among the mesh shapes.

    Raises:
        CompileError: a pass refused the program.
        InfeasibleError: no mesh shape has a plan within the memory budget.
        ShardingError: what is prescribed exactly fits no mesh shape.
        MeshError: there is no mesh shape.
    """
    with progress(_log.debug) as say:

        def tell(what: str) -> None:
            say(f"{program.name}: {what}")

        tell("merging operators")
        # Shardings that the function's author asks for, where it is their mesh that is planned for.
        axes = ",".join(options.axis_names or ())
        preparing = f"alpa-prepare-pipeline{{aliases={program.alias_option} axes={axes}}}"
        merged, remarks = run_passes(program.text, f"builtin.module({preparing})", program.name)
        subject = Subject(program.name, merged, Boundary.of(program))
        best = find_candidate(subject, options, say=tell)
        tell(f"lowering to {'x'.join(map(str, best.mesh.shape))}")
        cluster = options.cluster
        devices = tuple(range(best.mesh.num_devices))
        place = StagePlace(devices, (cluster.num_hosts, cluster.devices_per_host))
        stage = lower_program(best, program, place)
        (phase,) = stage.phases
        runtime = alpa_runtime.Plan.of_program(phase.program)
        return assemble(program, cluster, [stage], single(), runtime, [phase], remarks)


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
