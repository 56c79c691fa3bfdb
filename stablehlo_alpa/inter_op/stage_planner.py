"""Plans one stage: strategies of all its phases together, then a program for each phase."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from alpa_runtime import SpmdProgram, ValueSpec

import stablehlo_alpa._core as _core
from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.cost import PricedGraph, StrategyGraph, collective_seconds, price
from stablehlo_alpa.frontend import TracedProgram, TracedValue
from stablehlo_alpa.inter_op.stage import PhaseProgram, PlannedStage, Slot
from stablehlo_alpa.intra_op import Solution, SolveOptions, solve
from stablehlo_alpa.planning.compiler import enumerate_strategies, run_passes
from stablehlo_alpa.planning.notation import parse_partial_sharding
from stablehlo_alpa.planning.pins import Boundary, Masks, masks
from stablehlo_alpa.planning.prescription import Prescription
from stablehlo_alpa.planning.tensor_type import parse_tensor_type


@dataclass(frozen=True, eq=False)
class StageCandidate:
    """The best intra-operator plan of a stage on one logical mesh.

    Attributes:
        mesh: the mesh.
        merged: the stage with roles.
        priced, solution: strategies and the choice. Seconds are those of a whole step.
        remarks: what was prescribed for the stage and cannot be.
    """

    mesh: LogicalMesh
    merged: str
    priced: PricedGraph
    solution: Solution
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prescribed:
    """What is prescribed for a step that stages are cut from.

    Attributes:
        program: the step.
        prescription: by its flat inputs and outputs.
    """

    program: TracedProgram
    prescription: Prescription

    def masks(self, merged: str, graph: StrategyGraph, mesh: LogicalMesh) -> Masks:
        """What that means for the graph of a stage.

        Raises:
            ShardingError: an exact wish cannot be kept.
        """
        signature = _core.signature(merged)
        boundary = Boundary(
            self._side(signature, "input", self.program.inputs),
            self._side(signature, "output", self.program.outputs),
        )
        return masks(self.prescription, boundary, graph, mesh)

    def _side(
        self, signature: dict[str, Any], side: str, values: tuple[TracedValue, ...]
    ) -> tuple[tuple[int, TracedValue] | None, ...]:
        found: list[tuple[int, TracedValue] | None] = []
        for kind, type_ in zip(signature[f"{side}_kinds"], signature[f"{side}_types"], strict=True):
            slot = Slot.parse(kind)
            if slot.kind not in (side, "batch"):
                found.append(None)
                continue
            shape, _ = parse_tensor_type(type_)
            found.append((slot.number, replace(values[slot.number], shape=shape)))
        return tuple(found)


def prepare_stage(sliced: str, name: str) -> str:
    """Merges operators of a stage."""
    return run_passes(sliced, "builtin.module(alpa-stage-pipeline)", name)[0]


def solve_stage(
    merged: str,
    mesh: LogicalMesh,
    device: DeviceSpec,
    options: SolveOptions,
    name: str,
    cache: _core.SolverCache | None = None,
    prescribed: Prescribed | None = None,
) -> StageCandidate:
    """Chooses the strategies of a stage on a mesh."""
    graph = enumerate_strategies(merged, mesh, name)
    found = Masks({}) if prescribed is None else prescribed.masks(merged, graph, mesh)
    priced = price(graph.restrict(found.nodes) if found.nodes else graph, mesh, device)
    return StageCandidate(mesh, merged, priced, solve(priced, options, cache), found.remarks)


def lower_stage(
    candidate: StageCandidate,
    program: TracedProgram,
    devices: tuple[int, ...],
    device: DeviceSpec,
    name: str,
    *,
    split_backward: bool,
) -> PlannedStage:
    """Writes the programs of a stage's phases.

    Args:
        candidate: the stage and its strategies.
        program: the step that it was cut from.
        devices: positions of the mesh's devices.
        device: what they are.
        name: of the stage, for errors.
        split_backward: whether gradients of parameters are a phase of their own.
    """
    mesh = candidate.mesh
    choice = ",".join(str(strategy) for strategy in candidate.solution.choice.tolist())
    planning = f"alpa-plan-pipeline{{mesh={mesh.pass_option} solution={choice}}}"
    planned, _ = run_passes(candidate.merged, f"builtin.module({planning})", name)
    splitting = f"alpa-split-phases{{split-backward={str(split_backward).lower()}}}"
    split, _ = run_passes(planned, f"builtin.module({splitting})", name)
    phases = []
    for phase, text in _core.submodules(split).items():
        signature = _core.signature(text)
        local, _ = run_passes(text, "builtin.module(alpa-spmd-pipeline)", f"{name} {phase}")
        inputs = tuple(Slot.parse(kind) for kind in signature["input_kinds"])
        outputs = tuple(Slot.parse(kind) for kind in signature["output_kinds"])
        spmd = SpmdProgram(
            text=local,
            mesh=tuple(mesh.axes),
            inputs=_specs(signature, "input", inputs, program),
            outputs=_specs(signature, "output", outputs, program),
            name=phase,
        )
        phases.append(
            PhaseProgram(
                phase,
                spmd,
                inputs,
                outputs,
                time_s=program_seconds(text, local, mesh, device),
                inside_bytes=inside_bytes(spmd),
            )
        )
    return PlannedStage(
        mesh=mesh,
        devices=devices,
        phases=tuple(phases),
        priced=candidate.priced,
        solution=candidate.solution,
        texts={"merged": candidate.merged, "planned": planned},
    )


def program_seconds(planned: str, local: str, mesh: LogicalMesh, device: DeviceSpec) -> float:
    """Roofline seconds of a program's operators plus those of its collectives."""
    work = _core.work(local)
    rates = np.array([device.rate(dtype) for dtype in work["dtype"]])
    compute = np.maximum(work["flops"] / rates, work["bytes"] / device.memory_bandwidth).sum()
    moved = _core.communication(planned)
    count = np.maximum(moved["count"], 1e-30)
    each = collective_seconds(moved["kind"], moved["axes"], moved["bytes"], mesh, device)
    return float(compute + (each * count).sum())


def inside_bytes(program: SpmdProgram) -> float:
    """Bytes that a program needs beside its inputs and outputs."""
    sizes = program.mesh_sizes
    boundary = sum(value.local_bytes(sizes) for value in (*program.inputs, *program.outputs))
    return float(max(0.0, _core.memory(program.text)["peak_bytes"] - boundary))


def _specs(
    signature: dict[str, Any], side: str, slots: tuple[Slot, ...], program: TracedProgram
) -> tuple[ValueSpec, ...]:
    """Types and shardings of one side of a phase; those of the step keep names and key types."""
    specs = []
    traced = {"input": program.inputs, "batch": program.inputs, "output": program.outputs}
    for slot, sharding, type_ in zip(
        slots, signature[f"{side}s"], signature[f"{side}_types"], strict=True
    ):
        axes, partial = parse_partial_sharding(sharding, signature["mesh_axes"])
        shape, dtype = parse_tensor_type(type_)
        value = traced[slot.kind][slot.number] if slot.kind in traced else None
        specs.append(
            ValueSpec(
                shape=shape,
                dtype=dtype,
                axes=axes,
                key_impl=value.key_impl if value else None,
                is_weak=bool(value and value.is_weak and slot.kind == "output"),
                name=value.name if value else f"{slot.kind} {slot.number}",
                partial=partial,
            )
        )
    return tuple(specs)
