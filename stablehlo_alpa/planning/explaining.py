"""Why a plan is as it is: of an operator, of a layer, of a stage."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.intra_op import Explanation, Seconds, explain
from stablehlo_alpa.planning.explaining_modules import module_examples
from stablehlo_alpa.planning.memory_kinds import MemoryKind, memory_by_kind
from stablehlo_alpa.planning.operator_seconds import (
    SHOWN,
    OperatorSeconds,
    dearest_first,
    operator_sheet,
    split_text,
    sums,
)
from stablehlo_alpa.planning.saved_plan import SavedPlan
from stablehlo_alpa.units import format_bytes, format_seconds


@dataclass(frozen=True, repr=False)
class LayerExplanation(Seconds):
    """Where a layer lies and what it costs. Printing it shows a table.

    Attributes:
        number: of the layer.
        stage: that runs it.
        devices: positions in the cluster.
        mesh: axes of the stage's mesh and their sizes.
        num_operators: of the layer, its inputs among them.
        compute_s, communication_s, reshard_s: seconds per step.
        share: of the seconds of its stage.
        parameter_bytes, state_bytes: per device, of inputs that it is the first to read.
        operators: those that take longest, first.
    """

    number: int
    stage: int
    devices: tuple[int, ...]
    mesh: Mapping[str, int]
    num_operators: int
    compute_s: float
    communication_s: float
    reshard_s: float
    share: float
    parameter_bytes: float
    state_bytes: float
    operators: tuple[OperatorSeconds, ...]

    def __str__(self) -> str:
        head = (
            f"layer {self.number}: in stage {self.stage}, on devices {_range(self.devices)}, mesh "
            f"{_mesh(self.mesh)}\n"
            f"{format_seconds(self.total_s)} per step, {self.share:.0%} of its stage: "
            f"{split_text(self)}\n"
            f"{format_bytes(self.parameter_bytes)} of parameters and "
            f"{format_bytes(self.state_bytes)} of other state per device"
        )
        return f"{head}\n\n{operator_sheet(self.operators, self.num_operators).text()}"

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class StageExplanation(Seconds):
    """What a stage is and what it costs. Printing it shows a table.

    Attributes:
        number: of the stage.
        layers: that it runs; empty where the step is not cut.
        devices: positions in the cluster.
        submesh: hosts, and devices of each.
        mesh: axes and sizes.
        in_flight: micro-batches whose activations it keeps at most.
        micro_batch_s: predicted seconds of a micro-batch.
        phases: seconds of one run of each phase, by name.
        busy_s: seconds of a step in which its mesh works.
        bubble: part of the step in which it waits.
        compute_s, communication_s, reshard_s: seconds per step of its operators.
        peak_bytes: per device of its mesh.
        budget_bytes: that a device has.
        memory: bytes per device at the peak by kind; their sum is the peak.
        operators: those that take longest, first.
        num_operators: of the stage, its inputs among them.
    """

    number: int
    layers: tuple[int, ...]
    devices: tuple[int, ...]
    submesh: tuple[int, int]
    mesh: Mapping[str, int]
    in_flight: int
    micro_batch_s: float
    phases: Mapping[str, float]
    busy_s: float
    bubble: float
    compute_s: float
    communication_s: float
    reshard_s: float
    peak_bytes: float
    budget_bytes: float
    memory: Mapping[MemoryKind, float]
    operators: tuple[OperatorSeconds, ...]
    num_operators: int

    def __str__(self) -> str:
        hosts, per_host = self.submesh
        which = "layers" if len(self.layers) > 1 else "layer"
        layers = f"{which} {_range(self.layers)}" if self.layers else "the whole step"
        phases = ", ".join(f"{name} {format_seconds(s)}" for name, s in self.phases.items())
        memory = ", ".join(f"{kind} {format_bytes(size)}" for kind, size in self.memory.items())
        lines = [
            f"stage {self.number}: {layers}, on devices {_range(self.devices)} "
            f"({hosts} x {per_host}), mesh {_mesh(self.mesh)}",
            f"{format_seconds(self.micro_batch_s)} per micro-batch, at most {self.in_flight} in "
            "flight"
            if self.micro_batch_s
            else "one program is all of the step",
            f"phases: {phases}",
            f"busy for {format_seconds(self.busy_s)} of a step, waits {self.bubble:.0%} of it",
            f"operators of a step: {split_text(self)}",
            f"memory {format_bytes(self.peak_bytes)} of {format_bytes(self.budget_bytes)} per "
            f"device at the peak: {memory}",
        ]
        return "\n".join([*lines, "", operator_sheet(self.operators, self.num_operators).text()])

    __repr__ = __str__


def explain_operator(plan: SavedPlan, name: str, stage: int | None = None) -> Explanation:
    """The strategies of an operator, what each costs, and why one was chosen.

    Args:
        plan: the plan.
        name: of the operator, or a part of it that no other operator has.
        stage: that has it, where several do.

    Raises:
        ShardingError: no operator, or more than one, has the name.
    """
    if stage is not None:
        return explain([plan.tables[_checked("stage", stage, range(len(plan.tables)))]], name)
    having = [number for number, table in enumerate(plan.tables) if name in table.name]
    if len(having) > 1:
        raise ShardingError(
            f"{name} is an operator of the stages {', '.join(map(str, having))}: say which"
        )
    return explain(plan.tables, name)


def explain_layer(plan: SavedPlan, number: int) -> LayerExplanation:
    """Where a layer lies and what it costs.

    Args:
        plan: the plan.
        number: of the layer.

    Raises:
        ShardingError: the step is not cut into layers, or has no such layer.
    """
    of_stage = [stage.place.layers for stage in plan.account.stages]
    every = list(itertools.chain.from_iterable(of_stage))
    if not every:
        raise ShardingError(
            f"{plan.runtime.name} is one stage that is not cut into layers, as a pipeline is "
            f"(method pipeshard): name one of its modules instead{module_examples(plan)}"
        )
    _checked("layer", number, every)
    stage = next(n for n, layers in enumerate(of_stage) if number in layers)
    account, table = plan.account.stages[stage], plan.tables[stage]
    operators = dearest_first(table, np.flatnonzero(plan.layers[stage] == number).tolist())
    compute_s, communication_s, reshard_s = sums(operators)
    total_s = compute_s + communication_s + reshard_s
    whole = account.total_s
    inputs = [one for one in account.inputs if one.layer == number]
    donated = dict(plan.account.donated)
    return LayerExplanation(
        number,
        stage,
        account.place.devices,
        dict(account.axes),
        len(operators),
        compute_s,
        communication_s,
        reshard_s,
        total_s / whole if whole else 0.0,
        sum(one.bytes for one in inputs if one.is_parameter),
        sum(one.bytes for one in inputs if not one.is_parameter and one.number in donated),
        tuple(operators[:SHOWN]),
    )


def explain_stage(plan: SavedPlan, number: int) -> StageExplanation:
    """What a stage is and what it costs.

    Args:
        plan: the plan.
        number: of the stage.

    Raises:
        ShardingError: there is no such stage.
    """
    stages = plan.stages
    _checked("stage", number, range(len(stages)))
    stage, account, table = stages[number], plan.account.stages[number], plan.tables[number]
    mesh = plan.schedule.mesh_of(number)
    operators = dearest_first(table, range(len(table.name)))
    return StageExplanation(
        number=number,
        layers=stage.layers,
        devices=stage.devices,
        submesh=stage.submesh,
        mesh=dict(account.axes),
        in_flight=plan.schedule.most_in_flight(number),
        micro_batch_s=stage.micro_batch_s,
        phases={phase.name: phase.time_s for phase in stage.phases},
        busy_s=plan.simulation.busy_s(mesh),
        bubble=plan.simulation.bubble(mesh),
        compute_s=account.compute_s,
        communication_s=account.communication_s,
        reshard_s=account.reshard_s,
        peak_bytes=plan.simulation.peak_bytes[mesh],
        budget_bytes=plan.cluster.parts[stage.place.part].device.memory_bytes,
        memory=memory_by_kind(plan, mesh),
        operators=tuple(operators[:SHOWN]),
        num_operators=len(operators),
    )


def _checked(what: str, number: int, numbers: Sequence[int]) -> int:
    if number not in numbers:
        raise ShardingError(
            f"there is no {what} {number}, {what}s are {numbers[0]} to {numbers[-1]}"
        )
    return number


def _mesh(mesh: Mapping[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in mesh.items()) or "one device"


def _range(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    return f"{first} to {last}" if last > first else str(first)
