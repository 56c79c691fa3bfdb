"""What a plan says of itself beside what is run: the part of its file that planners read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import alpa_runtime
import numpy as np

from stablehlo_alpa.cluster import Cluster
from stablehlo_alpa.compiler import Signature
from stablehlo_alpa.cost.strategy_graph import Int
from stablehlo_alpa.intra_op import Seconds
from stablehlo_alpa.planning.bracket import Bracket
from stablehlo_alpa.planning.operator_layers import NO_LAYER, operator_layers
from stablehlo_alpa.planning.plan_report import Alternative
from stablehlo_alpa.planning.stage import (
    CostedProgram,
    PhaseProgram,
    PlannedStage,
    Slot,
    SlotKind,
    StageBody,
    StagePlace,
    program_name,
)
from stablehlo_alpa.view import Collective


@dataclass(frozen=True)
class ProgramAccount:
    """What a program of a plan costs; see `CostedProgram`."""

    time_s: float
    inside_bytes: float
    compute_s: float
    collectives: tuple[Collective, ...]


@dataclass(frozen=True)
class PhaseAccount:
    """A phase of a stage.

    Attributes:
        name: of the phase.
        program: its number in the plan.
        inside_bytes: per device what it needs beside its inputs and outputs where it donates
            nothing.
        inputs, outputs: slots as text.
    """

    name: str
    program: int
    inside_bytes: float
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class InputAccount:
    """An input of the step as a stage holds it.

    Attributes:
        number: of the flat input.
        layer: that reads it first, of the stage's; -1 where the step is not cut into layers.
        is_parameter: whether a product or a look-up reads it, or what is made of it, and it is no
            batch.
        bytes: per device; of a batch that is cut, those of a micro-batch.
    """

    number: int
    layer: int
    is_parameter: bool
    bytes: float


@dataclass(frozen=True)
class StageAccount(Seconds):
    """A stage.

    Attributes:
        axes: names and sizes of its logical mesh.
        place: its devices and layers.
        phases: its programs.
        inputs: of the step that it reads.
        compute_s, communication_s, reshard_s: seconds per step of its operators, as it was solved.
    """

    axes: tuple[tuple[str, int], ...]
    place: StagePlace
    phases: tuple[PhaseAccount, ...]
    inputs: tuple[InputAccount, ...]
    compute_s: float
    communication_s: float
    reshard_s: float

    def body(
        self,
        cluster: Cluster,
        programs: tuple[alpa_runtime.SpmdProgram, ...],
        costs: tuple[CostedProgram, ...],
    ) -> StageBody:
        """The stage as it runs.

        Args:
            cluster: all devices.
            programs: of the plan.
            costs: of each.
        """
        names, sizes = tuple(zip(*self.axes, strict=True)) if self.axes else ((), ())
        own = cluster.parts[self.place.part].part(*self.place.submesh)
        mesh = own.logical_mesh(sizes, names)
        phases = tuple(
            PhaseProgram(
                programs[one.program],
                costs[one.program].time_s,
                one.inside_bytes,
                costs[one.program].compute_s,
                costs[one.program].collectives,
                one.name,
                tuple(map(Slot.parse, one.inputs)),
                tuple(map(Slot.parse, one.outputs)),
            )
            for one in self.phases
        )
        return StageBody(mesh, self.place, phases)


@dataclass(frozen=True)
class Account:
    """What a plan says of itself.

    Attributes:
        cluster: that it was made for, as a TOML file.
        schedule: name of the schedule.
        stage_meshes: per stage the number of its mesh.
        order: tasks of every mesh under a schedule of one's own, see `write_order`.
        micro_batches_per_update, delay: see `Schedule`.
        recomputed: see `Plan`.
        bracket: see `Plan`.
        donated: inputs whose buffers the step may overwrite, and the outputs that are their next
            values.
        programs: what each costs.
        stages: in order.
        tried: see `Plan`.
        remarks: see `Plan`.
    """

    cluster: str
    schedule: str
    stage_meshes: tuple[int, ...]
    order: tuple[str, ...]
    micro_batches_per_update: int | None
    delay: int | None
    recomputed: str
    bracket: Bracket | None
    donated: tuple[tuple[int, int], ...]
    programs: tuple[ProgramAccount, ...]
    stages: tuple[StageAccount, ...]
    tried: tuple[Alternative, ...]
    remarks: tuple[str, ...]

    @property
    def next_values(self) -> Mapping[int, int]:
        """By number of an output the input whose next value it is."""
        return {output: index for index, output in self.donated}

    @property
    def parameters(self) -> frozenset[int]:
        """Inputs of the step that are parameters."""
        return frozenset(
            one.number for stage in self.stages for one in stage.inputs if one.is_parameter
        )


def program_account(cost: CostedProgram) -> ProgramAccount:
    """That of a program."""
    collectives = tuple(
        replace(one, bytes=float(one.bytes), count=float(one.count)) for one in cost.collectives
    )
    return ProgramAccount(
        float(cost.time_s), float(cost.inside_bytes), float(cost.compute_s), collectives
    )


def stage_layers(stage: PlannedStage) -> Int:
    """int64[N] the layer of each operator of a stage; -1 where the step is not cut into layers."""
    if not stage.layers:
        return np.full(stage.priced.graph.num_nodes, NO_LAYER, np.int64)
    return operator_layers(stage.texts["merged"], stage.priced.graph)


def stage_account(
    number: int,
    stage: PlannedStage,
    layers: Int,
    runtime: alpa_runtime.Plan,
    batch: frozenset[int],
) -> StageAccount:
    """That of a stage.

    Args:
        number: of the stage.
        stage: the stage.
        layers: int64[N] see `stage_layers`.
        runtime: what is run.
        batch: inputs of the step that are a batch.
    """
    numbers = {program.name: index for index, program in enumerate(runtime.programs)}
    phases = tuple(
        PhaseAccount(
            phase.name,
            0 if runtime.sole_program is not None else numbers[program_name(number, phase.name)],
            float(phase.inside_bytes),
            tuple(map(str, phase.inputs)),
            tuple(map(str, phase.outputs)),
        )
        for phase in stage.phases
    )
    solution = stage.solution
    return StageAccount(
        tuple((name, int(size)) for name, size in stage.mesh.axes),
        StagePlace(
            tuple(map(int, stage.devices)),
            (int(stage.submesh[0]), int(stage.submesh[1])),
            tuple(map(int, stage.layers)),
            int(stage.place.part),
        ),
        phases,
        _inputs(stage, layers, batch),
        float(solution.compute_s),
        float(solution.communication_s),
        float(solution.reshard_s),
    )


def _inputs(stage: PlannedStage, layers: Int, batch: frozenset[int]) -> tuple[InputAccount, ...]:
    """Inputs of the step that a stage reads, as its first phase to do so holds them."""
    graph, sizes = stage.priced.graph, stage.mesh.axes
    held: dict[int, float] = {}
    for phase in stage.phases:
        for slot, value in zip(phase.inputs, phase.program.inputs, strict=True):
            if slot.kind in (SlotKind.INPUT, SlotKind.BATCH):
                held.setdefault(slot.number, float(value.held_bytes(dict(sizes))))
    found = []
    for position, number in enumerate(input_numbers(stage)):
        if number is None or number not in held:
            continue
        node = int(graph.input_node[position])
        layer = int(layers[node]) if node >= 0 else -1
        is_parameter = bool(graph.input_is_parameter[position]) and number not in batch
        found.append(InputAccount(number, layer, is_parameter, held[number]))
    return tuple(found)


def input_numbers(stage: PlannedStage) -> list[int | None]:
    """Per argument of a stage's module the input of the step that it is."""
    kinds = Signature.of(stage.texts["merged"]).inputs.kinds
    if not any(kinds):
        # A whole step takes them as they are.
        return list(range(len(kinds)))
    slots = (Slot.parse(kind) for kind in kinds)
    of_step = (SlotKind.INPUT, SlotKind.BATCH)
    return [slot.number if slot.kind in of_step else None for slot in slots]
