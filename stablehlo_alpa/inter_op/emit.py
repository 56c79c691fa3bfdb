"""From planned stages and a schedule to the instructions of every mesh."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from alpa_runtime import Resharding, ValueSpec
from alpa_runtime.plan import (
    Instruction,
    Placement,
    Plan,
    PlanInput,
    PlanMesh,
    PlanOutput,
    Recv,
    Run,
    Send,
)

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.errors import CompileError
from stablehlo_alpa.inter_op.beginnings import numbers_program, zeros_program
from stablehlo_alpa.inter_op.lifetimes import Lifetimes, with_frees
from stablehlo_alpa.inter_op.routing import Priced, Route, Router
from stablehlo_alpa.inter_op.schedules import Schedule, TaskKind
from stablehlo_alpa.inter_op.stage import (
    BACKWARD,
    FORWARD,
    NUMBER,
    PREPARE,
    WEIGHT,
    PhaseProgram,
    PlannedStage,
    Slot,
    as_held,
)

_PHASES = {TaskKind.FORWARD: FORWARD, TaskKind.BACKWARD: BACKWARD, TaskKind.WEIGHT: WEIGHT}

# A buffer of a mesh: stage (-1 where all stages of the mesh share it), slot and micro-batch (-1
# for what is there once per step).
_Key: TypeAlias = tuple[int, Slot, int]

# Inputs of at most so many bytes are fed to every mesh that needs them, unless they are state.
# Heuristic.
_SMALL_BYTES = 1024


@dataclass(frozen=True)
class StepInterface:
    """Flat inputs and outputs of a step.

    Attributes:
        name: of the function.
        inputs: what the caller passes.
        outputs: names of the results.
        donated: inputs whose buffers the step may overwrite, and the outputs that are their next
            values.
    """

    name: str
    inputs: tuple[ValueSpec, ...]
    outputs: tuple[str, ...]
    donated: Mapping[int, int]


@dataclass
class _MeshState:
    """Instructions of a mesh so far, and its buffers."""

    instructions: list[Instruction] = field(default_factory=list)
    numbers: dict[tuple[_Key, ValueSpec], int] = field(default_factory=dict)
    values: list[ValueSpec] = field(default_factory=list)
    filled: set[int] = field(default_factory=set)

    def buffer(self, key: _Key, value: ValueSpec) -> int:
        """The number of a buffer, new when it was not asked for before."""
        value = as_held(value)
        if (key, value) not in self.numbers:
            self.numbers[key, value] = len(self.values)
            self.values.append(value)
        return self.numbers[key, value]


@dataclass(frozen=True)
class EmittedPlan:
    """A plan and what its programs cost.

    Attributes:
        plan: the plan.
        costs: one per program.
    """

    plan: Plan
    costs: tuple[Priced, ...]


def emit(
    stages: Sequence[PlannedStage],
    schedule: Schedule,
    step: StepInterface,
    device: DeviceSpec,
) -> EmittedPlan:
    """Writes the plan of a step.

    Args:
        stages: all stages, in order.
        schedule: of as many stages.
        step: the flat interface.
        device: prices what brings values from sharding to sharding.
    """
    return _Emitter(stages, schedule, step, device).run()


class _Emitter:
    def __init__(
        self,
        stages: Sequence[PlannedStage],
        schedule: Schedule,
        step: StepInterface,
        device: DeviceSpec,
    ) -> None:
        self._stages, self._schedule, self._step = stages, schedule, step
        self._router = Router(device)
        self._lifetimes = Lifetimes(stages, schedule, step.donated)
        # The first stage of each mesh.
        self._firsts = {schedule.mesh_of(n): s for n, s in reversed(list(enumerate(stages)))}
        self._meshes = [_MeshState() for _ in schedule.meshes]
        self._programs: list[Priced] = []
        self._numbers: dict[object, int] = {}
        self._reshardings: dict[Resharding, int] = {}
        self._transfers: dict[tuple[Slot, int, int], int] = {}
        self._placements: dict[int, dict[int, dict[int, int]]] = {}
        # The meshes that need an input or a transfer, and the sharding they first want it in.
        self._needs: dict[Slot, dict[int, ValueSpec]] = {}
        # The stage that keeps an input: the one that makes its next value, or the first user.
        self._keepers: dict[int, int] = {}
        self._outputs: dict[int, tuple[int, int]] = {}
        self._index()

    def run(self) -> EmittedPlan:
        self._send_inputs()
        self._number_micro_batches()
        for number, stage in enumerate(self._stages):
            self._run_zeros(number)
            if prepare := stage.phase(PREPARE):
                self._run_phase(number, prepare, -1)
        for tasks in self._schedule.meshes:
            for task in tasks:
                phase = self._stages[task.stage].phase(_PHASES[task.kind])
                if phase:
                    self._run_phase(task.stage, phase, task.micro_batch)
        once = max((self._last_apply(stage) for stage in self._stages), default=-1)
        for index in range(once + 1):
            for number, stage in enumerate(self._stages):
                if phase := stage.phase(f"apply_{index}"):
                    self._run_phase(number, phase, -1)
        self._check_complete()
        programs = [priced.program for priced in self._programs]
        for mesh, state in enumerate(self._meshes):
            kept = {buffer for at, buffer in self._outputs.values() if at == mesh}
            state.instructions = with_frees(state.instructions, programs, kept)
        return EmittedPlan(self._finish(), tuple(self._programs))

    def _check_complete(self) -> None:
        for number, stage in enumerate(self._stages):
            for phase in stage.phases:
                if (number, phase.name) not in self._numbers:
                    raise CompileError(
                        f"{self._step.name}: schedule {self._schedule.name} never runs phase "
                        f"{phase.name} of stage {number}"
                    )

    @staticmethod
    def _last_apply(stage: PlannedStage) -> int:
        return max((int(p.name.rsplit("_", 1)[1]) for p in stage.phases if p.is_update), default=-1)

    def _index(self) -> None:
        for number, stage in enumerate(self._stages):
            mesh = self._schedule.mesh_of(number)
            for phase in stage.phases:
                for slot, value in zip(phase.inputs, phase.program.inputs, strict=True):
                    if slot.kind in ("transfer", "input"):
                        self._needs.setdefault(slot, {}).setdefault(mesh, as_held(value))
                    if slot.kind in ("input", "batch"):
                        self._keepers.setdefault(slot.number, number)
        for number, stage in reversed(list(enumerate(self._stages))):
            for phase in stage.phases:
                if phase.is_update:
                    inputs = (slot.number for slot in phase.inputs if slot.kind == "input")
                    self._keepers.update(dict.fromkeys(inputs, number))

    def _is_fed(self, number: int) -> bool:
        """Whether the caller gives an input to every mesh that needs it, instead of to one."""
        value = self._step.inputs[number]
        if value.key_impl is not None:
            return True
        return number not in self._step.donated and value.local_bytes({}) <= _SMALL_BYTES

    def _logical_mesh(self, mesh: int) -> LogicalMesh:
        return self._firsts[mesh].mesh

    # Programs

    def _add_program(self, key: object, make: Callable[[], Priced]) -> int:
        """The number of a program, new when it was not asked for before."""
        if key not in self._numbers:
            self._numbers[key] = len(self._programs)
            self._programs.append(make())
        return self._numbers[key]

    def _phase_program(self, stage: int, phase: PhaseProgram) -> Priced:
        """A phase's program, with what it donates filled in."""
        program = dataclasses.replace(
            phase.program,
            donated=self._lifetimes.donated(stage, phase),
            name=f"stage_{stage}_{phase.name}",
        )
        return Priced(program, phase.time_s, phase.inside_bytes)

    def _run_zeros(self, stage: int) -> None:
        """What is joined over the micro-batches starts from zero."""
        planned = self._stages[stage]
        slots: dict[Slot, ValueSpec] = {}
        for phase in planned.phases:
            for slot, value in zip(phase.outputs, phase.program.outputs, strict=True):
                if slot.kind == "accumulator" and slot in phase.inputs:
                    slots[slot] = value
        if not slots:
            return
        program = zeros_program(
            tuple(slots.values()), tuple(planned.mesh.axes), f"stage_{stage}_zeros"
        )
        state = self._meshes[self._schedule.mesh_of(stage)]
        outputs = tuple(state.buffer((stage, slot, -1), value) for slot, value in slots.items())
        number = self._add_program(program.name, lambda: Priced(program))
        state.instructions.append(Run(number, (), outputs, f"stage {stage} zeros"))

    def _number_micro_batches(self) -> None:
        """Meshes on which something depends on it have the number of each micro-batch."""
        counts = range(self._schedule.num_micro_batches)
        for stage, planned in enumerate(self._stages):
            mesh = self._schedule.mesh_of(stage)
            if NUMBER not in (slot for phase in planned.phases for slot in phase.inputs):
                continue
            program = numbers_program(len(counts), tuple(planned.mesh.axes))
            state = self._meshes[mesh]
            outputs = tuple(
                state.buffer((-1, NUMBER, at), value)
                for at, value in zip(counts, program.outputs, strict=True)
            )
            if state.filled.isdisjoint(outputs):
                state.filled.update(outputs)
                number = self._add_program(program, functools.partial(Priced, program))
                state.instructions.append(Run(number, (), outputs, "micro-batches"))

    # Instructions

    def _run_phase(self, stage: int, phase: PhaseProgram, micro_batch: int) -> None:
        mesh = self._schedule.mesh_of(stage)
        state = self._meshes[mesh]
        inputs = tuple(
            self._input(stage, slot, value, micro_batch)
            for slot, value in zip(phase.inputs, phase.program.inputs, strict=True)
        )
        outputs = []
        for slot, value in zip(phase.outputs, phase.program.outputs, strict=True):
            at = -1 if slot.kind in ("accumulator", "output") or phase.runs_once else micro_batch
            outputs.append(state.buffer((stage, slot, at), value))
            if slot.kind == "output":
                self._outputs[slot.number] = (mesh, outputs[-1])
        label = f"stage {stage} {phase.name}"
        if not phase.runs_once:
            label += f" {micro_batch}"
        number = self._add_program((stage, phase.name), lambda: self._phase_program(stage, phase))
        state.instructions.append(Run(number, inputs, tuple(outputs), label))
        for slot, buffer in zip(phase.outputs, outputs, strict=True):
            if slot.kind == "transfer":
                self._send(slot, mesh, buffer, micro_batch)

    def _send_inputs(self) -> None:
        """State that several meshes need goes to the others from the mesh that keeps it."""
        for slot, meshes in self._needs.items():
            if slot.kind == "input" and not self._is_fed(slot.number):
                keeper = self._schedule.mesh_of(self._keepers[slot.number])
                if any(mesh != keeper for mesh in meshes):
                    buffer = self._kept_input(slot, keeper)
                    self._send(slot, keeper, buffer, -1)

    def _send(self, slot: Slot, mesh: int, buffer: int, micro_batch: int) -> None:
        """Sends a buffer to every other mesh that needs it."""
        value = self._meshes[mesh].values[buffer]
        for target, wanted in self._needs.get(slot, {}).items():
            if target != mesh:
                route = self._route(value, mesh, wanted, target)
                transfer, number = self._transfer(slot, micro_batch, target), self._number(route)
                self._meshes[mesh].instructions.append(Send(buffer, target, transfer, number))

    def _route(self, value: ValueSpec, mesh: int, wanted: ValueSpec, target: int) -> Route:
        return self._router.route(
            value, self._logical_mesh(mesh), wanted, self._logical_mesh(target)
        )

    def _number(self, route: Route) -> int:
        return self._reshardings.setdefault(route.resharding, len(self._reshardings))

    def _transfer(self, slot: Slot, micro_batch: int, target: int) -> int:
        return self._transfers.setdefault((slot, micro_batch, target), len(self._transfers))

    def _receive(self, slot: Slot, made: ValueSpec, source: int, mesh: int, at: int) -> int:
        """The buffer that holds what another mesh has sent, received when first asked for."""
        state, wanted = self._meshes[mesh], self._needs[slot][mesh]
        buffer = state.buffer((-1, slot, at), wanted)
        if buffer in state.filled:
            return buffer
        state.filled.add(buffer)
        route = self._route(as_held(made), source, wanted, mesh)
        landing = buffer
        if route.gather:
            landing = state.buffer(
                (-1, Slot(f"landing {slot.kind}", slot.number), at), route.landing
            )
        transfer = self._transfer(slot, at, mesh)
        state.instructions.append(Recv(landing, source, transfer, self._number(route)))
        if route.gather:
            self._run_once(route.gather, landing, buffer, mesh, f"gather {slot}", at)
        return buffer

    def _resharded(self, buffer: int, key: _Key, wanted: ValueSpec, mesh: int) -> int:
        """A buffer of the mesh in the wanted sharding."""
        state = self._meshes[mesh]
        have = state.values[buffer]
        if have == as_held(wanted):
            return buffer
        result = state.buffer(key, wanted)
        if result not in state.filled:
            state.filled.add(result)
            program = self._router.reshard(have, as_held(wanted), self._logical_mesh(mesh))
            self._run_once(program, buffer, result, mesh, f"reshard {key[1]}", key[2])
        return result

    def _run_once(
        self, priced: Priced, source: int, target: int, mesh: int, label: str, at: int
    ) -> None:
        number = self._add_program(priced.program.name, lambda: priced)
        label += f" {at}" if at >= 0 else ""
        self._meshes[mesh].instructions.append(Run(number, (source,), (target,), label))

    def _kept_input(self, slot: Slot, mesh: int) -> int:
        """The buffer of an input on the mesh that keeps it."""
        buffer = self._meshes[mesh].buffer((-1, slot, -1), self._needs[slot][mesh])
        self._placements.setdefault(slot.number, {}).setdefault(mesh, {}).setdefault(buffer, -1)
        return buffer

    def _input(self, stage: int, slot: Slot, value: ValueSpec, micro_batch: int) -> int:
        mesh = self._schedule.mesh_of(stage)
        state = self._meshes[mesh]
        match slot.kind:
            case "input":
                return self._step_input(slot, value, mesh)
            case "batch":
                return self._fed_input(slot, value, max(micro_batch, 0), mesh)
            case NUMBER.kind:
                return state.buffer((-1, slot, max(micro_batch, 0)), value)
            case "transfer":
                maker, made_by = self._lifetimes.makers[slot.number]
                at = -1 if made_by.runs_once else max(micro_batch, 0)
                made = made_by.program.outputs[made_by.outputs.index(slot)]
                source = self._schedule.mesh_of(maker)
                if source == mesh:
                    buffer = state.buffer((maker, slot, at), made)
                else:
                    buffer = self._receive(slot, made, source, mesh, at)
                return self._resharded(buffer, (-1, slot, at), value, mesh)
            case "local":
                is_once = any(
                    slot in phase.outputs and phase.runs_once
                    for phase in self._stages[stage].phases
                )
                return state.buffer((stage, slot, -1 if is_once else max(micro_batch, 0)), value)
        return state.buffer((stage, slot, -1), value)

    def _step_input(self, slot: Slot, value: ValueSpec, mesh: int) -> int:
        """The buffer of an input of the step on a mesh that uses it."""
        if not self._is_fed(slot.number):
            keeper = self._schedule.mesh_of(self._keepers[slot.number])
            if keeper == mesh:
                buffer = self._kept_input(slot, mesh)
            else:
                buffer = self._receive(slot, self._needs[slot][keeper], keeper, mesh, -1)
            return self._resharded(buffer, (-1, slot, -1), value, mesh)
        return self._fed_input(slot, value, -1, mesh)

    def _fed_input(self, slot: Slot, value: ValueSpec, at: int, mesh: int) -> int:
        """The buffer of an input that the caller gives to the mesh, whole (-1) or a part of it."""
        buffer = self._meshes[mesh].buffer((-1, slot, at), value)
        places = self._placements.setdefault(slot.number, {}).setdefault(mesh, {})
        places.setdefault(buffer, at)
        return buffer

    # The plan

    def _finish(self) -> Plan:
        values: dict[ValueSpec, int] = {}
        buffers = tuple(
            tuple(values.setdefault(value, len(values)) for value in state.values)
            for state in self._meshes
        )
        inputs = []
        for index, value in enumerate(self._step.inputs):
            places = self._placements.get(index, {})
            keeper = self._schedule.mesh_of(self._keepers[index]) if places else 0
            order = sorted(places, key=lambda mesh: (mesh != keeper, mesh))
            inputs.append(
                PlanInput(
                    value,
                    index in self._step.donated,
                    tuple(p for mesh in order for p in self._placed(index, mesh, places[mesh])),
                )
            )
        missing = [name for i, name in enumerate(self._step.outputs) if i not in self._outputs]
        if missing:
            raise CompileError(f"{self._step.name}: no stage makes {', '.join(missing)}")
        return Plan(
            name=self._step.name,
            num_micro_batches=self._schedule.num_micro_batches,
            schedule=self._schedule.name,
            meshes=tuple(
                PlanMesh(tuple(self._firsts[mesh].mesh.axes), self._firsts[mesh].devices)
                for mesh in range(len(self._meshes))
            ),
            programs=tuple(priced.program for priced in self._programs),
            reshardings=tuple(self._reshardings),
            values=tuple(values),
            buffers=buffers,
            instructions=tuple(tuple(state.instructions) for state in self._meshes),
            inputs=tuple(inputs),
            outputs=tuple(
                PlanOutput(*self._outputs[index], name)
                for index, name in enumerate(self._step.outputs)
            ),
        )

    def _placed(self, index: int, mesh: int, buffers: dict[int, int]) -> list[Placement]:
        """One placement per sharding in which a mesh needs an input, whole or in parts."""
        whole = [Placement(mesh, (buffer,)) for buffer, at in buffers.items() if at < 0]
        groups: dict[ValueSpec, dict[int, int]] = {}
        for buffer, at in buffers.items():
            if at >= 0:
                groups.setdefault(self._meshes[mesh].values[buffer], {})[at] = buffer
        count = self._schedule.num_micro_batches
        parts = [tuple(group[m] for m in range(count)) for group in groups.values()]
        return whole + [Placement(mesh, part) for part in parts]
