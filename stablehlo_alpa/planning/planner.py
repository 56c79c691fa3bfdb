"""Plans a traced program: every logical mesh is priced and solved, the fastest plan is lowered."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from alpa_runtime import SpmdProgram, ValueSpec

import stablehlo_alpa._core as _core
from stablehlo_alpa.cluster import ClusterSpec, LogicalMesh
from stablehlo_alpa.cost import PricedGraph, StrategyGraph, price
from stablehlo_alpa.errors import (
    CompileError,
    InfeasibleError,
    MeshError,
    ShardingError,
    StablehloAlpaError,
)
from stablehlo_alpa.frontend import TracedProgram, TracedValue
from stablehlo_alpa.intra_op import Solution, SolveOptions, solve
from stablehlo_alpa.planning.compiler import enumerate_strategies, run_passes
from stablehlo_alpa.planning.gathering import charge_gathers
from stablehlo_alpa.planning.notation import parse_sharding
from stablehlo_alpa.planning.pins import Boundary, masks
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.prescription import Prescription
from stablehlo_alpa.view import Say, progress

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanOptions:
    """What a plan is looked for under.

    Attributes:
        cluster: the devices.
        mesh_shapes: logical mesh shapes to try.
        axis_names: names of the mesh axes; x, y, z when None.
        solve: budget and limits of the ILP.
        prescription: what is prescribed for inputs and outputs.
    """

    cluster: ClusterSpec
    mesh_shapes: tuple[tuple[int, ...], ...]
    axis_names: tuple[str, ...] | None = None
    solve: SolveOptions = field(default_factory=SolveOptions)
    prescription: Prescription = field(default_factory=Prescription)


@dataclass(frozen=True, eq=False)
class _Candidate:
    mesh: LogicalMesh
    priced: PricedGraph
    solution: Solution
    remarks: tuple[str, ...]


def plan_program(program: TracedProgram, options: PlanOptions) -> Plan:
    """Finds the fastest plan among the mesh shapes.

    Raises:
        CompileError: a pass refused the program.
        InfeasibleError: no mesh shape has a plan within the memory budget.
        ShardingError: what is prescribed exactly fits no mesh shape.
    """
    with progress(logger.debug) as say:
        say(f"{program.name}: merging operators")
        # Shardings that the function's author asks for, where it is their mesh that is planned for.
        axes = ",".join(options.axis_names or ())
        preparing = f"alpa-prepare-pipeline{{aliases={program.alias_option} axes={axes}}}"
        merged, remarks = run_passes(program.text, f"builtin.module({preparing})", program.name)
        best = _search(program, merged, options, say)
        say(f"{program.name}: lowering to {'x'.join(map(str, best.mesh.shape))}")
        return _lower(program, merged, best, options, remarks)


def _search(program: TracedProgram, merged: str, options: PlanOptions, say: Say) -> _Candidate:
    found: list[_Candidate] = []
    refused: list[StablehloAlpaError] = []
    for shape in options.mesh_shapes:
        say(f"{program.name}: mesh {'x'.join(map(str, shape))}: strategies")
        try:
            mesh = options.cluster.logical_mesh(shape, options.axis_names)
            graph = enumerate_strategies(merged, mesh, program.name)
            if len(graph.input_node) != len(program.inputs):
                raise CompileError(
                    f"{program.name}: the compiler sees {len(graph.input_node)} inputs, "
                    f"the function has {len(program.inputs)}"
                )
            graph = _name_inputs(graph, program)
            pinned = masks(options.prescription, Boundary.of(program), graph, mesh)
            device = options.cluster.device
            priced = price(graph.restrict(pinned.nodes), mesh, device)
            say(f"{program.name}: mesh {'x'.join(map(str, shape))}: {graph.num_nodes} operators")
            gathered = options.prescription.gathered
            priced = charge_gathers(priced, program.outputs, gathered, mesh, device)
            found.append(_Candidate(mesh, priced, solve(priced, options.solve), pinned.remarks))
        except (InfeasibleError, ShardingError, MeshError) as error:
            logger.info("mesh %s: %s", shape, error)
            refused.append(error)
    if found:
        return min(found, key=lambda candidate: candidate.solution.objective_s)
    if not refused:
        raise MeshError(f"{program.name}: there is no mesh shape to plan for")
    short = [e for e in refused if isinstance(e, InfeasibleError) and e.needed_bytes is not None]
    if short:
        raise min(short, key=lambda error: error.needed_bytes or 0.0)
    raise refused[0]


def _name_inputs(graph: StrategyGraph, program: TracedProgram) -> StrategyGraph:
    """The compiler counts arguments; the function's own names say more."""
    names = list(graph.node_name)
    for value, node in zip(program.inputs, graph.input_node.tolist(), strict=True):
        if node >= 0:
            names[node] = value.name
    return replace(graph, node_name=tuple(names))


def _lower(
    program: TracedProgram,
    merged: str,
    best: _Candidate,
    options: PlanOptions,
    remarks: Sequence[str],
) -> Plan:
    choice = ",".join(str(int(strategy)) for strategy in best.solution.choice)
    planning = f"alpa-plan-pipeline{{mesh={best.mesh.pass_option} solution={choice}}}"
    planned, more = run_passes(merged, f"builtin.module({planning})", program.name)
    local, last = run_passes(planned, "builtin.module(alpa-spmd-pipeline)", program.name)
    signature = _core.signature(planned)
    axis_names = signature["mesh_axes"]
    spmd = SpmdProgram(
        text=local,
        mesh=tuple(best.mesh.axes),
        inputs=_specs(program.inputs, signature["inputs"], axis_names),
        outputs=_specs(program.outputs, signature["outputs"], axis_names),
        donated=program.donated,
        name=program.name if program.name.isidentifier() else "program",
        callbacks=program.callbacks,
    )
    return Plan(
        program=program,
        spmd=spmd,
        mesh=best.mesh,
        cluster=options.cluster,
        priced=best.priced,
        solution=best.solution,
        stages={
            "traced": program.text,
            "merged": merged,
            "planned": planned,
            "local": local,
        },
        volumes=_core.communication(planned),
        memory=_core.memory(local, list(program.donated)),
        remarks=tuple(
            dict.fromkeys([*best.remarks, *remarks, *best.priced.graph.remarks, *more, *last])
        ),
    )


def _specs(
    values: Sequence[TracedValue], shardings: Sequence[str], axis_names: Sequence[str]
) -> tuple[ValueSpec, ...]:
    return tuple(
        ValueSpec(
            shape=value.shape,
            dtype=value.dtype,
            axes=parse_sharding(sharding, axis_names),
            key_impl=value.key_impl,
            is_weak=value.is_weak,
            name=value.name,
        )
        for value, sharding in zip(values, shardings, strict=True)
    )
