"""Plans a pipeline: layers, stages, an intra-operator plan per stage, a schedule, instructions."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import alpa_runtime
from alpa_runtime import Event, Simulation, ValueSpec, check, save, simulate, write_trace
from alpa_runtime.simulate import Loads

import stablehlo_alpa._core as _core
from stablehlo_alpa.cluster import ClusterSpec, logical_mesh_shapes
from stablehlo_alpa.errors import (
    CompileError,
    InfeasibleError,
    MeshError,
    ShardingError,
    StablehloAlpaError,
)
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.inter_op.emit import StepInterface, emit
from stablehlo_alpa.inter_op.options import (
    AutoStages,
    ManualStages,
    StageAssignment,
    StageOption,
    UniformStages,
    manual,
    uniform,
)
from stablehlo_alpa.inter_op.routing import Priced
from stablehlo_alpa.inter_op.schedules import (
    FORWARD_ONLY,
    KNOWN_SCHEDULES,
    Schedule,
    make_schedule,
)
from stablehlo_alpa.inter_op.stage import PlannedStage
from stablehlo_alpa.inter_op.stage_part import stage_part
from stablehlo_alpa.inter_op.stage_planner import (
    Prescribed,
    StageCandidate,
    lower_stage,
    prepare_stage,
    solve_stage,
)
from stablehlo_alpa.inter_op.stage_pricing import StagePricing, Submesh
from stablehlo_alpa.inter_op.stage_search import search_stages
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.planning.compiler import run_passes
from stablehlo_alpa.planning.prescription import Prescription
from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view import Column, Report, Say, Sheet, Shown

_log = logging.getLogger(__name__)

# What mends a stage that does not fit.
_ADVICE = (
    "more micro-batches, remat=True of the layers, or a larger submesh for the stage take less "
    "memory per device"
)
_LAYER = re.compile(r"alpa\.layer = (\d+)")


@dataclass(frozen=True)
class PipelineOptions:
    """What a pipeline is planned under.

    Attributes:
        cluster: all devices.
        stages: how stages are formed.
        num_micro_batches: of a step.
        schedule: name of the schedule.
        num_chunks: stages per mesh, for the interleaved schedule.
        reduction: how results of independent micro-batches are joined, ``"mean"`` or ``"sum"``.
        prescription: what is prescribed for inputs of the step.
        mesh_shapes: logical meshes of a stage to try; None for all.
        axis_names: names of their axes, at least as many as they have; None for the usual ones.
        solve: budget and limits of the intra-operator plans.
    """

    cluster: ClusterSpec
    stages: StageOption
    num_micro_batches: int = 1
    schedule: str = "1f1b"
    num_chunks: int = 1
    reduction: str = "mean"
    prescription: Prescription = field(default_factory=Prescription)
    mesh_shapes: tuple[tuple[int, ...], ...] | None = None
    axis_names: tuple[str, ...] | None = None
    solve: SolveOptions = field(default_factory=SolveOptions)


@dataclass(frozen=True)
class Alternative:
    """A plan that was looked at.

    Attributes:
        num_micro_batches, schedule: what was chosen for it.
        step_time_s: predicted seconds of a step; None where it does not fit the devices.
    """

    num_micro_batches: int
    schedule: str
    step_time_s: float | None

    def __str__(self) -> str:
        time = "does not fit" if self.step_time_s is None else format_seconds(self.step_time_s)
        return f"{self.num_micro_batches} micro-batches, {self.schedule}: {time}"


@dataclass(frozen=True, eq=False, repr=False)
class PlannedPipeline(Shown):
    """How a step runs on several meshes.

    Attributes:
        program: what was planned.
        cluster: the devices.
        assignment: stages of layers on submeshes.
        schedule: the order of tasks.
        stages: the planned stages.
        runtime: what is run.
        costs: predicted, one per program of ``runtime``.
        tried: plans that this one was chosen from; empty when nothing was left to choose.
    """

    program: TracedProgram
    cluster: ClusterSpec
    assignment: StageAssignment
    schedule: Schedule
    stages: tuple[PlannedStage, ...]
    runtime: alpa_runtime.Plan
    costs: tuple[Priced, ...]
    tried: tuple[Alternative, ...] = ()

    @cached_property
    def simulation(self) -> Simulation:
        """The predicted run of a step: events, bubbles, peak memory per mesh."""
        return simulate(
            self.runtime,
            [cost.time_s for cost in self.costs],
            self._transfer_s,
            [cost.inside_bytes for cost in self.costs],
        )

    @property
    def step_time_s(self) -> float:
        """Predicted seconds of a step."""
        return self.simulation.step_s

    def timeline(self, path: str | os.PathLike[str] | None = None) -> tuple[Event, ...]:
        """The predicted run of a step.

        Args:
            path: where it is written for Perfetto; nowhere by default.
        """
        if path is not None:
            write_trace(self.simulation.events, path)
        return self.simulation.events

    def _transfer_s(self, source: int, target: int, loads: Loads) -> float:
        """Seconds between two meshes: those of the device, or the host, with most to move."""
        cluster, meshes = self.cluster, self.runtime.meshes
        sent: dict[int, int] = {}
        received: dict[int, int] = {}
        devices = {*meshes[source].devices, *meshes[target].devices}
        is_local = len({device // cluster.devices_per_host for device in devices}) == 1
        link = cluster.device.intra_host if is_local else cluster.device.inter_host
        width = 1 if is_local else cluster.devices_per_host
        for (sender, receiver), size in loads.items():
            start = meshes[source].devices[sender] // width
            end = meshes[target].devices[receiver] // width
            if is_local or start != end:
                sent[start] = sent.get(start, 0) + size
                received[end] = received.get(end, 0) + size
        most = max((*sent.values(), *received.values()), default=0)
        return link.alpha_s + most / link.bandwidth

    def report(self) -> Report:
        """What is shown of it."""
        count = self.runtime.num_micro_batches
        heading = (
            f"pipeline of {self.program.name}: {len(self.stages)} stages, {count} micro-batches, "
            f"{self.schedule.name}"
        )
        most = format_bytes(max(self.simulation.peak_bytes, default=0.0))
        step = format_seconds(self.step_time_s)
        remarks = (remark for stage in self.stages for remark in stage.priced.graph.remarks)
        return Report(
            heading=heading,
            brief=f"{heading}, {step} per step, {most} per device at most",
            lines=(f"step {step} (predicted)", *(f"  considered {one}" for one in self.tried)),
            parts=tuple(
                stage_part(
                    f"stage {number}",
                    stage,
                    self.cluster.device,
                    self.simulation.peak_bytes[self.schedule.mesh_of(number)],
                )
                for number, stage in enumerate(self.stages)
            ),
            first=(self._stage_sheet(),),
            remarks=tuple(dict.fromkeys(remarks)),
        )

    def _stage_sheet(self) -> Sheet:
        """A row per stage."""
        rows = []
        for number, stage in enumerate(self.stages):
            layers = [i for i, s in enumerate(self.assignment.stage_of_layer) if s == number]
            mesh = self.schedule.mesh_of(number)
            rows.append(
                (
                    str(number),
                    f"{layers[0]} to {layers[-1]}" if len(layers) > 1 else str(layers[0]),
                    f"{stage.devices[0]} to {stage.devices[-1]}",
                    "x".join(map(str, stage.mesh.shape)),
                    format_seconds(sum(p.time_s for p in stage.phases if not p.runs_once)),
                    f"{self.simulation.bubble(mesh):.0%}",
                    format_bytes(self.simulation.peak_bytes[mesh]),
                )
            )
        texts = tuple(Column(head) for head in ("stage", "layers", "devices", "mesh"))
        heads = ("per micro-batch", "bubble", "memory per device")
        numbers = tuple(Column(head, is_number=True) for head in heads)
        return Sheet("stages", (*texts, *numbers), tuple(rows), self.stages)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what is run to one file, for ``alpa_runtime.load``."""
        save(self.runtime, path)


def plan_pipeline(
    program: TracedProgram, options: PipelineOptions, say: Say = _log.debug
) -> PlannedPipeline:
    """Plans a step, telling ``say`` what is being done.

    Raises:
        CompileError: a pass refused the program.
        ValueError: stages, layers, meshes or schedule do not fit each other.
        InfeasibleError: a stage does not fit its mesh, named with what it lacks.
    """
    if options.schedule == FORWARD_ONLY and program.has_gradients:
        raise ValueError(
            f"schedule {FORWARD_ONLY!r} runs no backward passes and {program.name} takes "
            "gradients: leave schedule out, or take one of "
            + ", ".join(name for name in KNOWN_SCHEDULES if name != FORWARD_ONLY)
        )
    layered = mark_layers(program, options.num_micro_batches, options.reduction)
    num_layers = count_layers(layered)
    say(f"stages of {num_layers} layers")
    assignment = _assign(layered, num_layers, options, program.name)
    num_meshes, rest = divmod(assignment.num_stages, options.num_chunks)
    if rest:
        raise ValueError(
            f"{assignment.num_stages} stages do not divide into {options.num_chunks} per mesh"
        )
    schedule = make_schedule(
        options.schedule, num_meshes, assignment.num_stages, options.num_micro_batches
    )
    sliced = slice_stages(layered, assignment.stage_of_layer, program.name)
    cache = _core.SolverCache()
    prescribed = Prescribed(program, options.prescription)
    stages = []
    starts = _first_devices(assignment, num_meshes)
    for number in range(assignment.num_stages):
        name = f"{program.name} stage {number}"
        say(f"stage {number} of {assignment.num_stages}")
        candidate = _best(
            sliced[f"stage_{number}"], number, assignment, options, name, cache, prescribed
        )
        start = starts[number % num_meshes]
        devices = tuple(range(start, start + candidate.mesh.num_devices))
        stages.append(
            lower_stage(
                candidate,
                program,
                devices,
                options.cluster.device,
                name,
                split_backward=schedule.splits_backward,
            )
        )
    say("instructions")
    step = interface(program)
    emitted = emit(stages, schedule, step, options.cluster.device)
    check(emitted.plan)
    planned = PlannedPipeline(
        program,
        options.cluster,
        assignment,
        schedule,
        tuple(stages),
        emitted.plan,
        emitted.costs,
    )
    _check_memory(planned, options.solve.memory_budget)
    return planned


def _check_memory(planned: PlannedPipeline, budget: float | None) -> None:
    """Buffers of all micro-batches in flight have to fit, whatever programs need inside."""
    runtime = planned.runtime
    peaks = simulate(runtime, [1.0] * len(runtime.programs)).peak_bytes
    for mesh, peak in enumerate(peaks):
        if budget is None or peak <= budget:
            continue
        stages = range(mesh, len(planned.stages), len(peaks))
        listed = " and ".join(str(stage) for stage in stages)
        raise InfeasibleError(
            f"{planned.program.name}: stage {listed} keeps {format_bytes(peak)} per device for "
            f"parameters and micro-batches in flight, {format_bytes(peak - budget)} more than the "
            f"budget of {format_bytes(budget)}; {_ADVICE}",
            needed_bytes=peak,
            budget_bytes=budget,
        )


def mark_layers(program: TracedProgram, num_micro_batches: int, reduction: str = "mean") -> str:
    """The step with layers and phases."""
    is_part = program.num_parts > 1
    indices = program.batch if is_part else program.declared_batch
    batch = ",".join(str(index) for index in sorted(indices))
    independent = f" independent={reduction}" if is_part else ""
    marking = (
        f"alpa-layers-pipeline{{aliases={program.alias_option} batch={batch} "
        f"micro-batches={num_micro_batches}{independent}}}"
    )
    return run_passes(program.text, f"builtin.module({marking})", program.name)[0]


def count_layers(layered: str) -> int:
    """Layers of a step."""
    return 1 + max((int(number) for number in _LAYER.findall(layered)), default=0)


def slice_stages(layered: str, stage_of_layer: tuple[int, ...], name: str) -> Mapping[str, str]:
    """The modules of the stages, ``"stage_0"`` first."""
    stages = ",".join(str(stage) for stage in stage_of_layer)
    text, _ = run_passes(layered, f"builtin.module(alpa-slice-stages{{stages={stages}}})", name)
    return _core.submodules(text)


def interface(program: TracedProgram) -> StepInterface:
    """Flat inputs and outputs as the caller sees them."""
    inputs = tuple(
        ValueSpec(
            (value.shape[0] * program.num_parts, *value.shape[1:])
            if index in program.batch and program.num_parts > 1
            else value.shape,
            value.dtype,
            ((),) * len(value.shape),
            value.key_impl,
            value.is_weak,
            value.name,
        )
        for index, value in enumerate(program.inputs)
    )
    return StepInterface(
        program.name if program.name.isidentifier() else "program",
        inputs,
        tuple(value.name for value in program.outputs),
        {i: program.aliases[i] for i in program.donated if i in program.aliases},
    )


def _assign(layered: str, num_layers: int, options: PipelineOptions, name: str) -> StageAssignment:
    match options.stages:
        case UniformStages():
            num_meshes = options.stages.num_stages // options.num_chunks
            return uniform(options.stages, num_layers, options.cluster, max(num_meshes, 1))
        case ManualStages():
            return manual(options.stages, num_layers, options.cluster)
        case AutoStages():
            return search(layered, num_layers, options, name)
    raise TypeError(
        f"stages must be AutoStages(), UniformStages(...) or ManualStages(...), got "
        f"{options.stages!r}"
    )


def search(layered: str, num_layers: int, options: PipelineOptions, name: str) -> StageAssignment:
    """The partition of least predicted latency.

    Raises:
        InfeasibleError: no partition fits the devices' memory.
    """
    if options.num_chunks > 1:
        raise ValueError("AutoStages has one stage per mesh, the interleaved schedule has several")
    pricing = StagePricing(
        layered, num_layers, options.cluster, options.num_micro_batches, options.solve, name
    )
    choices = list(pricing.choices())
    found = search_stages(
        choices,
        num_layers,
        options.cluster.num_devices,
        options.num_micro_batches,
        keeps_all=options.schedule == "gpipe",
    )
    if found is None:
        short = [error for error in pricing.refusals if error.needed_bytes is not None]
        reason = f"; the stage that lacks least: {min(short, key=_lack)}" if short else ""
        raise InfeasibleError(
            f"{name}: no pipeline of {num_layers} layers fits {options.cluster.num_devices} "
            f"devices with {options.num_micro_batches} micro-batches{reason}; {_ADVICE}"
        )
    chosen = [choice.key for choice in found.stages]
    assert all(isinstance(submesh, Submesh) for submesh in chosen)
    return StageAssignment(
        tuple(
            number
            for number, choice in enumerate(found.stages)
            for _ in range(choice.first, choice.last + 1)
        ),
        tuple((s.hosts, s.devices_per_host) for s in chosen if isinstance(s, Submesh)),
        tuple(s.mesh_shape for s in chosen if isinstance(s, Submesh)),
    )


def _lack(error: InfeasibleError) -> float:
    return (error.needed_bytes or 0.0) - (error.budget_bytes or 0.0)


def _first_devices(assignment: StageAssignment, num_meshes: int) -> list[int]:
    """Where the devices of each mesh begin.

    Largest first, so that none reaches over the border of a host without need (paper, Theorem 1).
    """
    sizes = [hosts * devices for hosts, devices in assignment.submeshes[:num_meshes]]
    starts, position = [0] * num_meshes, 0
    for mesh in sorted(range(num_meshes), key=lambda mesh: -sizes[mesh]):
        starts[mesh] = position
        position += sizes[mesh]
    return starts


def _best(
    sliced: str,
    number: int,
    assignment: StageAssignment,
    options: PipelineOptions,
    name: str,
    cache: _core.SolverCache,
    prescribed: Prescribed,
) -> StageCandidate:
    """The fastest logical mesh of a stage."""
    hosts, per_host = assignment.submeshes[number]
    cluster = replace(options.cluster, num_hosts=hosts, devices_per_host=per_host)
    shape = assignment.mesh_shapes[number]
    shapes = options.mesh_shapes or tuple(logical_mesh_shapes(cluster.num_devices, hosts))
    shapes = (shape,) if shape else shapes
    if options.num_chunks > 1 and shape is None:
        # Stages of one mesh share it: its shape must not depend on the stage.
        shapes = shapes[:1]
    merged = prepare_stage(sliced, name)
    found: list[StageCandidate] = []
    refused: list[StablehloAlpaError] = []
    for each in shapes:
        try:
            names = options.axis_names and options.axis_names[: len(each)]
            mesh = cluster.logical_mesh(each, names)
            found.append(
                solve_stage(merged, mesh, cluster.device, options.solve, name, cache, prescribed)
            )
        except (InfeasibleError, MeshError, ShardingError) as error:
            refused.append(error)
    if found:
        return min(found, key=lambda candidate: candidate.solution.objective_s)
    if not refused:
        raise CompileError(f"{name}: there is no mesh shape to plan for")
    short = [error for error in refused if isinstance(error, InfeasibleError)]
    if not short:
        raise refused[0]
    least = min(short, key=_lack)
    raise InfeasibleError(
        f"{name} on {cluster.num_devices} devices: {least}; {_ADVICE}",
        needed_bytes=least.needed_bytes,
        budget_bytes=least.budget_bytes,
        largest=least.largest,
    )
