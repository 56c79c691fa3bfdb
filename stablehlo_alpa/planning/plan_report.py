"""What is shown of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.planning.cut import Cut
from stablehlo_alpa.planning.prediction import Predicted
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import PlannedStage
from stablehlo_alpa.planning.stage_part import stage_part
from stablehlo_alpa.units import format_bytes, format_seconds, micro_batches
from stablehlo_alpa.view import Column, Part, Report, Sheet, memory_text, mesh_text, solution_lines


@dataclass(frozen=True)
class Alternative:
    """A plan that was looked at.

    Attributes:
        num_micro_batches, schedule: what was chosen for it.
        recomputed: what its backward phase computes again: ``"layers"``, ``"attention"``; empty for
            nothing.
        step_time_s: predicted seconds of a step; None where there is no plan.
        cut: into stages; None where none fits, or it is not cut.
        least_s: seconds that a step takes at least, where that is more than another plan takes and
            none was made for it; None where it does not fit the devices.
    """

    num_micro_batches: int
    schedule: str
    step_time_s: float | None
    recomputed: str = ""
    cut: Cut | None = None
    least_s: float | None = None

    @property
    def reason(self) -> str:
        """Why there is no plan; empty where there is."""
        if self.step_time_s is not None:
            return ""
        least_s = self.least_s
        return "does not fit" if least_s is None else f"at least {format_seconds(least_s)}"

    def __str__(self) -> str:
        time = self.reason if self.step_time_s is None else format_seconds(self.step_time_s)
        again = f", {self.recomputed} computed again" if self.recomputed else ""
        return f"{micro_batches(self.num_micro_batches)}, {self.schedule}{again}: {time}"


def plan_report(
    name: str,
    stages: Sequence[PlannedStage],
    schedule: Schedule,
    predicted: Predicted,
    choices: Sequence[str],
    remarks: Sequence[str],
) -> Report:
    """What is shown of a plan.

    Args:
        name: of the step.
        stages: of it.
        schedule: of them.
        predicted: what they cost.
        choices: what it was chosen from, and what was chosen.
        remarks: on it.
    """
    count, peaks = schedule.num_micro_batches, predicted.simulation.peak_bytes
    devices = [stage.mesh.cluster.device for stage in stages]
    held = [peaks[schedule.mesh_of(number)] for number in range(len(stages))]
    parts = tuple(
        stage_part(
            f"stage {number}" if len(stages) > 1 else "",
            stage,
            devices[number],
            held[number],
            schedule,
        )
        for number, stage in enumerate(stages)
    )
    cut = f", {count} micro-batches" if count > 1 else ""
    heading = f"plan of {name} on {mesh_text(parts[0])}{cut}"
    brief = f"plan of {name}: {mesh_text(parts[0])}{cut}"
    if len(stages) > 1:
        heading = brief = (
            f"pipeline of {name}: {len(stages)} stages, {micro_batches(count)}, {schedule.name}"
        )
    step, most = format_seconds(predicted.step_time_s), format_bytes(predicted.peak_bytes)
    lines: tuple[str, ...] = (
        f"step {step} (predicted)",
        memory_text(*max(zip(held, devices, strict=True), key=_fullness)),
    )
    if len(stages) == 1:
        lines = solution_lines(parts[0], predicted.step_time_s)
    return Report(
        heading=heading,
        brief=f"{brief}, {step} per step, {most} per device{' at most' * (len(stages) > 1)}",
        lines=(*lines, *(f"  {one}" for one in choices)),
        parts=parts,
        first=(_stage_sheet(stages, schedule, predicted, parts),) if len(stages) > 1 else (),
        remarks=tuple(remarks),
    )


def _fullness(one: tuple[float, DeviceSpec]) -> float:
    """What is held of what a device has, as a part of it."""
    return one[0] / one[1].memory_bytes


def _stage_sheet(
    stages: Sequence[PlannedStage], schedule: Schedule, predicted: Predicted, parts: Sequence[Part]
) -> Sheet:
    """A row per stage."""
    rows = []
    for number, (stage, part) in enumerate(zip(stages, parts, strict=True)):
        first, last = stage.layers[0], stage.layers[-1]
        rows.append(
            (
                str(number),
                f"{first} to {last}" if last > first else str(first),
                f"{stage.devices[0]} to {stage.devices[-1]}{_kind(stage, predicted)}",
                "x".join(map(str, stage.mesh.shape)),
                format_seconds(sum(p.time_s for p in stage.phases if not p.runs_once)),
                f"{predicted.simulation.bubble(schedule.mesh_of(number)):.0%}",
                format_bytes(part.peak_bytes),
            )
        )
    texts = tuple(Column(head) for head in ("stage", "layers", "devices", "mesh"))
    heads = ("per micro-batch", "bubble", "memory per device")
    numbers = tuple(Column(head, is_number=True) for head in heads)
    return Sheet("stages", (*texts, *numbers), tuple(rows), tuple(stages))


def _kind(stage: PlannedStage, predicted: Predicted) -> str:
    """What the devices of a stage are, where there are others."""
    is_unlike = len(predicted.cluster.parts) > 1
    return f" ({stage.mesh.cluster.device.name})" if is_unlike else ""
