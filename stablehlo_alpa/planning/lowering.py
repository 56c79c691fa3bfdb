"""From chosen strategies to the programs of each device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from alpa_runtime import SpmdProgram, ValueSpec

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.compiler import (
    Live,
    Module,
    Signature,
    Traffic,
    Values,
    Work,
    parse_partial_sharding,
    parse_tensor_type,
)
from stablehlo_alpa.cost import Products, Volume, added_seconds, operator_seconds
from stablehlo_alpa.cost.fits import is_measured
from stablehlo_alpa.cost.kinds import FloatArray
from stablehlo_alpa.cost.streams import HOST_MOVE, SUMS
from stablehlo_alpa.frontend import TracedProgram, TracedValue, link_kernels
from stablehlo_alpa.planning.device_module import DeviceModule
from stablehlo_alpa.planning.mesh_search import Candidate
from stablehlo_alpa.planning.product_rings import (
    ChosenRings,
    choose_rings,
    rings_content,
    write_rings,
)
from stablehlo_alpa.planning.stage import (
    WHOLE,
    PhaseProgram,
    PlannedStage,
    Slot,
    SlotKind,
    StagePlace,
)
from stablehlo_alpa.store import OFF, Record, Store
from stablehlo_alpa.view import Collective, collectives

NEAR = 32
"""Operators that share what was gathered where memory is short (heuristic: those of one operator
and its followers are nearer than that, a layer that is computed again and its backward phase are
not). Products that are to share have one operand; strategies are chosen with what that takes."""


def lower_program(
    candidate: Candidate,
    program: TracedProgram,
    place: StagePlace,
    device: DeviceSpec,
    *,
    reach: int = 0,
    store: Store = OFF,
) -> PlannedStage:
    """A whole step as one program of one mesh.

    Args:
        candidate: the step and its strategies.
        program: the step.
        place: where it runs.
        device: what the devices are.
        reach: operators between the first and the last that share what was gathered; 0: all.
        store: keeps what the compiler makes of it.
    """
    mesh = candidate.mesh

    def made() -> Record:
        return _program_record(candidate, program, device, reach)

    content = (
        *(_content(candidate), reach, device.platform, program.donated, program.trip_count_hint),
        rings_content(mesh),
    )
    found = store.remember("lowered program", content, made)
    module, rings = DeviceModule.from_record(found["module"]), ChosenRings(**found["rings"])
    phase, linked = _whole(candidate, program, module, rings, device)
    return PlannedStage(
        mesh=mesh,
        place=place,
        phases=(phase,),
        priced=candidate.priced,
        solution=candidate.solution,
        texts={
            "traced": program.text,
            "merged": candidate.merged,
            "planned": found["planned"],
            "local": phase.program.text,
        },
        remarks=(*candidate.remarks, *found["remarks"], *module.remarks, *linked),
        done_beside=rings.reasons,
    )


def _whole(
    candidate: Candidate,
    program: TracedProgram,
    module: DeviceModule,
    rings: ChosenRings,
    device: DeviceSpec,
) -> tuple[PhaseProgram, list[str]]:
    """A whole step as the only phase, and remarks."""
    mesh, signature, live = candidate.mesh, module.signature, module.live
    local, linked = _linked(module, program, mesh)
    inputs = tuple(Slot(SlotKind.INPUT, i) for i in range(len(program.inputs)))
    outputs = tuple(Slot(SlotKind.OUTPUT, i) for i in range(len(program.outputs)))
    spmd = SpmdProgram(
        text=local,
        mesh=tuple(mesh.axes),
        # What is fed to the one program comes as the caller has it.
        inputs=_specs(signature.inputs, signature, inputs, program, keeps_weak=True),
        outputs=_specs(signature.outputs, signature, outputs, program, keeps_weak=True),
        donated=program.donated,
        callbacks=program.callbacks,
        name=identifier(program.name),
    )
    compute_s = candidate.solution.compute_s + rings.compute_s
    if not rings.numbers:
        # What is lowered has kernels that strategies do not show.
        compute_s = work_seconds(module.work, device)
    phase = PhaseProgram(
        spmd,
        candidate.solution.objective_s + rings.added_s,
        _inside_bytes(spmd, live.peak_bytes),
        compute_s,
        collectives_in(module.traffic, mesh),
        WHOLE,
        inputs,
        outputs,
        live.tensors,
    )
    return phase, linked


def _program_record(
    candidate: Candidate, program: TracedProgram, device: DeviceSpec, reach: int
) -> Record:
    """What the compiler makes of a whole step."""
    module, remarks = _apply(candidate, reach)
    rings = choose_rings(module, candidate.mesh, device)
    remarks += write_rings(module, rings)
    planned = module.text()
    hint = program.trip_count_hint
    found = DeviceModule.of(module, device, program.donated, hint).record()
    return {"planned": planned, "remarks": remarks, "module": found, "rings": rings.record()}


def lower_stage(
    candidate: Candidate,
    program: TracedProgram,
    place: StagePlace,
    device: DeviceSpec,
    sliced: str,
    *,
    split_backward: bool,
    reach: int = 0,
    store: Store = OFF,
    inside_bytes: InsideBytes | None = None,
) -> PlannedStage:
    """A stage as one program per phase.

    Args:
        candidate: the stage and its strategies.
        program: the step that it was cut from.
        place: where it runs.
        device: what the devices are.
        sliced: the stage as it was cut.
        split_backward: whether gradients of parameters are a phase of their own.
        reach: operators of a phase between the first and the last that share what was gathered; 0:
            all.
        store: keeps what the compiler makes of it.
        inside_bytes: is given the programs of the phases as they are parsed.
    """
    hint = program.trip_count_hint
    parsed: Mapping[str, Module] = {}

    def made() -> Record:
        nonlocal parsed
        record, parsed = _stage_record(
            candidate, device, reach, hint, split_backward=split_backward
        )
        return record

    content = (
        *(_content(candidate), reach, device.platform, split_backward, hint),
        rings_content(candidate.mesh),
    )
    found = store.remember("lowered stage", content, made)
    said, phases = [*candidate.remarks, *found["remarks"]], []
    beside: dict[str, str] = {}
    for name, record in found["phases"].items():
        lowered, more = _phase(name, record, program, candidate.mesh, device)
        phases.append(lowered)
        if inside_bytes is not None and name in parsed:
            inside_bytes.take(lowered.program.text, record["module"]["text"], parsed[name])
        said += more
        beside |= record["rings"]["reasons"]
    return PlannedStage(
        mesh=candidate.mesh,
        place=place,
        phases=tuple(phases),
        priced=candidate.priced,
        solution=candidate.solution,
        texts={
            "traced": program.text,
            "sliced": sliced,
            "merged": candidate.merged,
            "planned": found["planned"],
        }
        | {phase.name: phase.program.text for phase in phases},
        remarks=tuple(dict.fromkeys(said)),
        done_beside=beside,
    )


def _stage_record(
    candidate: Candidate,
    device: DeviceSpec,
    reach: int,
    trip_count_hint: int | None,
    *,
    split_backward: bool,
) -> tuple[Record, Mapping[str, Module]]:
    """What the compiler makes of a stage, and the phases for one device."""
    module, remarks = _apply(candidate, reach)
    planned = module.text()
    more = module.run(f"alpa-split-phases{{split-backward={str(split_backward).lower()}}}")
    phases = module.submodules()
    found = {
        name: _phase_record(phase, candidate.mesh, device, trip_count_hint)
        for name, phase in phases.items()
    }
    return {"planned": planned, "remarks": [*remarks, *more], "phases": found}, phases


def _phase_record(
    phase: Module, mesh: LogicalMesh, device: DeviceSpec, trip_count_hint: int | None
) -> Record:
    """A phase for one device, also as it would be if its products waited for all collectives."""
    rings = choose_rings(phase, mesh, device)
    waiting = phase.clone() if rings.numbers else None
    remarks = write_rings(phase, rings)
    found = DeviceModule.of(phase, device, (), trip_count_hint).record()
    before = waiting and DeviceModule.of(waiting, device, (), trip_count_hint).record()
    return {"module": found, "remarks": remarks, "rings": rings.record(), "waiting": before}


def _phase(
    name: str, record: Record, program: TracedProgram, mesh: LogicalMesh, device: DeviceSpec
) -> tuple[PhaseProgram, list[str]]:
    """A phase of a stage, and remarks; see `_phase_record`."""
    module, rings = DeviceModule.from_record(record["module"]), ChosenRings(**record["rings"])
    # What rings change is known as a difference.
    before = DeviceModule.from_record(record["waiting"]) if record["waiting"] else module
    signature, live = module.signature, module.live
    text, linked = _linked(module, program, mesh)
    inputs = tuple(map(Slot.parse, signature.inputs.kinds))
    outputs = tuple(map(Slot.parse, signature.outputs.kinds))
    spmd = SpmdProgram(
        text=text,
        mesh=tuple(mesh.axes),
        inputs=_specs(signature.inputs, signature, inputs, program),
        outputs=_specs(signature.outputs, signature, outputs, program),
        name=name,
    )
    compute_s = work_seconds(before.work, device)
    phase = PhaseProgram(
        spmd,
        compute_s + communication_seconds(before.traffic, mesh, device) + rings.added_s,
        _inside_bytes(spmd, live.peak_bytes),
        compute_s + rings.compute_s,
        collectives_in(module.traffic, mesh),
        name,
        inputs,
        outputs,
        live.tensors,
    )
    return phase, [*record["remarks"], *module.remarks, *linked]


def _linked(
    module: DeviceModule, program: TracedProgram, mesh: LogicalMesh
) -> tuple[str, list[str]]:
    """The text of a device's module with the kernels in it that it calls, and remarks."""
    return link_kernels(module.text, program.kernels, tuple(mesh.axes), program.platform)


def _apply(candidate: Candidate, reach: int) -> tuple[Module, list[str]]:
    """The module with the chosen shardings and the reshards between them, and remarks."""
    choice = ",".join(map(str, candidate.solution.choice.tolist()))
    options = f"mesh={candidate.mesh.pass_option} solution={choice} reach={reach}"
    module = candidate.module()
    return module, module.run(f"alpa-plan-pipeline{{{options}}}")


def _content(candidate: Candidate) -> tuple[object, ...]:
    """What `_apply` depends on, for the store."""
    return candidate.merged, candidate.mesh.pass_option, candidate.solution.choice


def work_seconds(work: Work, device: DeviceSpec) -> float:
    """Seconds of a per-device program's operators."""
    rows = np.flatnonzero(work.shape[:, 0])
    products = Products(
        rows,
        work.shape[rows],
        work.runs[rows],
        work.bytes[rows],
        work.form[rows],
        work.padding[rows],
    )
    ones = np.ones(len(work.ops), np.int64)
    streams = None if is_measured(device) else _streams(work)
    each = operator_seconds(
        work.ops,
        work.dtypes,
        ones,
        work.flops,
        work.bytes,
        device,
        products,
        work.kernels,
        streams,
    )
    return float(each.sum())


def _streams(work: Work) -> FloatArray:
    """float64[N, 5] bytes of each of `STREAMS` that the operators of a program move."""
    is_sum = np.isin(work.ops, list(SUMS))[:, None]
    is_move = np.asarray(work.ops, np.str_)[:, None] == HOST_MOVE
    wide = np.where(work.shape[:, 0] > 0, 0.0, work.bytes) - work.narrow_bytes
    both = np.stack([wide, work.narrow_bytes], axis=1)
    moved = both.sum(axis=1, keepdims=True) * is_move
    return np.concatenate([both * ~(is_sum | is_move), both * is_sum, moved], axis=1)


def communication_seconds(moved: Traffic, mesh: LogicalMesh, device: DeviceSpec) -> float:
    """Seconds of the collectives of a planned program."""
    count = np.maximum(moved.count, 1e-30)
    each = added_seconds(moved.kind, moved.axes, moved.bytes, moved.beside, mesh, device)
    return float((each * count).sum())


def collectives_in(found: Traffic, mesh: LogicalMesh) -> tuple[Collective, ...]:
    """The collectives of one run of a planned program, per kind and axes, most bytes first."""
    columns = (found.kind, found.axes, found.bytes, found.count)
    rows: Iterator[tuple[int, int, float, float]] = zip(
        *(column.tolist() for column in columns), strict=True
    )
    volumes = ((kind, mask, Volume(size * count, count)) for kind, mask, size, count in rows)
    return collectives(volumes, mesh)


@dataclass(frozen=True, eq=False)
class InsideBytes:
    """Bytes per device that programs need beside their inputs and outputs, each measured once.

    Attributes:
        platform: what jax calls that which runs them.
        store: keeps what was measured.
    """

    platform: str = ""
    store: Store = OFF
    _peaks: dict[tuple[str, tuple[int, ...], str], float] = field(default_factory=dict, repr=False)
    # Programs that are parsed, by their text.
    _parsed: dict[str, Module] = field(default_factory=dict, repr=False)

    def take(self, text: str, own: str, parsed: Module) -> None:
        """Takes the module of a program, to be read in place of its text.

        Args:
            text: of the program.
            own: that of the module: another where kernels were put in.
            parsed: the module; hints are notes on it, and change no bytes.
        """
        if text == own:
            self._parsed[text] = parsed

    def of(self, program: SpmdProgram) -> float:
        """Those of a program."""
        key = program.text, program.donated, self.platform

        def made() -> Record:
            module = self._parsed.get(program.text, program.text)
            return {"peak": Live.of(module, program.donated, self.platform).peak_bytes}

        if key not in self._peaks:
            self._peaks[key] = self.store.remember("peak", key, made)["peak"]
        return _inside_bytes(program, self._peaks[key])


def identifier(name: str) -> str:
    """What a program is called in modules and profiles."""
    return name if name.isidentifier() else "program"


def _inside_bytes(program: SpmdProgram, peak_bytes: float) -> float:
    sizes = program.mesh_sizes
    kept = [v for i, v in enumerate(program.inputs) if i not in program.donated]
    boundary = sum(value.held_bytes(sizes) for value in (*kept, *program.outputs))
    return max(0.0, peak_bytes - boundary)


def _specs(
    values: Values,
    signature: Signature,
    slots: Sequence[Slot],
    program: TracedProgram,
    *,
    keeps_weak: bool = False,
) -> tuple[ValueSpec, ...]:
    """Types and shardings of one side of a program; those of the step keep names and key types.

    Args:
        values: the side.
        signature: that it is of.
        slots: what each value is.
        program: the step.
        keeps_weak: whether inputs are weakly typed where those of the step are; buffers never are.
    """
    specs = []
    found = zip(slots, values.shardings, values.types, values.on_host, strict=True)
    for slot, sharding, type_, is_on_host in found:
        axes, partial = parse_partial_sharding(sharding, signature.mesh_axes)
        shape, dtype = parse_tensor_type(type_)
        value = traced_value(slot, program)
        is_kept = keeps_weak or slot.kind is SlotKind.OUTPUT
        specs.append(
            ValueSpec(
                shape=shape,
                dtype=dtype,
                axes=axes,
                key_impl=value.key_impl if value else None,
                is_weak=bool(value and value.is_weak and is_kept),
                name=value.name if value else str(slot),
                partial=partial,
                is_on_host=value.is_on_host if value else is_on_host,
            )
        )
    return tuple(specs)


def traced_value(slot: Slot, program: TracedProgram) -> TracedValue | None:
    """What the step knows of a slot."""
    match slot.kind:
        case SlotKind.INPUT | SlotKind.BATCH:
            return program.inputs[slot.number]
        case SlotKind.OUTPUT:
            return program.outputs[slot.number]
    return None
