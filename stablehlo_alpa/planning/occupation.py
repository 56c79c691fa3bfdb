"""How busy the stages of a plan are over a step, and how much they keep."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from alpa_runtime.plan import Run

from stablehlo_alpa.planning.prediction import Predicted
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import BACKWARD, FORWARD, WEIGHT, program_name
from stablehlo_alpa.units import format_bytes, format_seconds, micro_batches
from stablehlo_alpa.view import Column, Sheet

_NAMED = re.compile(r"stage_(\d+)_(\w+)")


@dataclass(frozen=True)
class StageOccupation:
    """A stage over a step.

    Attributes:
        stage: its number.
        mesh: number of the mesh that it runs on.
        busy_s: seconds in which its own programs run.
        converting_s: seconds in which its mesh brings values from sharding to sharding.
        idle_s: seconds in which nothing runs on its mesh.
        bubble: ``idle_s`` as a part of the step.
        in_flight: micro-batches that have gone forward and not yet backward, at most.
        peak_bytes: per device of its mesh.
    """

    stage: int
    mesh: int
    busy_s: float
    converting_s: float
    idle_s: float
    bubble: float
    in_flight: int
    peak_bytes: float


@dataclass(frozen=True)
class Occupation:
    """All stages over a step. Printing it shows a table.

    Attributes:
        name: of the step.
        schedule: its name.
        num_micro_batches: of a step.
        step_s: predicted seconds of a step.
        stages: in order.
    """

    name: str
    schedule: str
    num_micro_batches: int
    step_s: float
    stages: tuple[StageOccupation, ...]

    @classmethod
    def of(cls, predicted: Predicted, schedule: Schedule) -> Occupation:
        """That of a simulated step.

        Args:
            predicted: programs, instructions and what they cost.
            schedule: that the instructions follow.
        """
        return cls(
            predicted.runtime.name,
            str(schedule.name),
            schedule.num_micro_batches,
            predicted.step_time_s,
            tuple(_stage(predicted, schedule, n) for n in range(schedule.num_stages)),
        )

    def sheet(self) -> Sheet:
        """The table; ``records`` of it are ``stages``."""
        heads = (
            "stage",
            "mesh",
            "busy",
            "converting",
            "idle",
            "bubble",
            "most in flight",
            "memory per device",
        )
        rows = tuple(
            (
                str(one.stage),
                str(one.mesh),
                format_seconds(one.busy_s),
                format_seconds(one.converting_s),
                format_seconds(one.idle_s),
                f"{one.bubble:.0%}",
                str(one.in_flight),
                format_bytes(one.peak_bytes),
            )
            for one in self.stages
        )
        title = (
            f"a step of {self.name}: {format_seconds(self.step_s)} (simulated), "
            f"{micro_batches(self.num_micro_batches)}, schedule {self.schedule}"
        )
        return Sheet(
            title, tuple(Column(head, is_number=True) for head in heads), rows, self.stages
        )

    def __str__(self) -> str:
        return self.sheet().text()


def _stage(predicted: Predicted, schedule: Schedule, stage: int) -> StageOccupation:
    mesh, simulation = schedule.mesh_of(stage), predicted.simulation
    phases = [_phase(predicted, program) for program in range(len(predicted.runtime.programs))]
    runs = [one for one in predicted.runtime.instructions[mesh] if isinstance(one, Run)]
    own = [one.program for one in runs if phases[one.program][0] == stage]
    others = [one.program for one in runs if phases[one.program][0] < 0]
    return StageOccupation(
        stage,
        mesh,
        sum(predicted.costs[program].time_s for program in own),
        sum(predicted.costs[program].time_s for program in others),
        simulation.step_s - simulation.busy_s(mesh),
        simulation.bubble(mesh),
        _most_in_flight([phases[program][1] for program in own]),
        simulation.peak_bytes[mesh],
    )


def _phase(predicted: Predicted, program: int) -> tuple[int, str]:
    """Stage and phase of a program; of what belongs to no stage -1."""
    if predicted.runtime.sole_program is not None:
        return 0, FORWARD
    match = _NAMED.fullmatch(predicted.runtime.programs[program].name)
    if match is None or program_name(int(match[1]), match[2]) != match[0]:
        return -1, ""
    return int(match[1]), match[2]


def _most_in_flight(phases: Sequence[str]) -> int:
    """Micro-batches whose activations are there at most, by the phases that a stage runs."""
    last = next((name for name in (WEIGHT, BACKWARD) if name in phases), None)
    if last is None:
        return 1
    count = most = 0
    for phase in phases:
        count += (phase == FORWARD) - (phase == last)
        most = max(most, count)
    return most
