"""The order of a pipeline's tasks: a schedule by name, or one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from stablehlo_alpa.planning.dualpipe import dualpipe_v
from stablehlo_alpa.planning.own_schedule import OwnSchedule
from stablehlo_alpa.planning.schedules import (
    Schedule,
    ScheduleName,
    gpipe,
    inference,
    interleaved,
    one_f_one_b,
    zero_bubble,
)

ScheduleKind: TypeAlias = str | OwnSchedule
"""The name of a schedule, or one's own."""

SEVERAL_STAGES = (ScheduleName.INTERLEAVED, ScheduleName.DUALPIPE_V)
"""Schedules that train several stages per mesh."""


def schedule_kind(schedule: ScheduleKind) -> ScheduleName | OwnSchedule:
    """One's own as it is, a name as the schedule of it.

    Raises:
        ValueError: there is none of the name.
    """
    return schedule if isinstance(schedule, OwnSchedule) else ScheduleName(schedule)


def is_asynchronous(schedule: ScheduleKind | None) -> bool:
    """Whether stages update their weights by themselves."""
    return isinstance(schedule, OwnSchedule) and schedule.micro_batches_per_update is not None


def num_updates(schedule: ScheduleKind | None, num_micro_batches: int) -> int:
    """Updates of the weights in a step.

    Raises:
        ValueError: the micro-batches do not divide into them.
    """
    return schedule.num_updates(num_micro_batches) if isinstance(schedule, OwnSchedule) else 1


def usual_meshes(schedule: ScheduleKind, num_stages: int, num_chunks: int) -> tuple[int, ...]:
    """Per stage the mesh that it runs on, where nobody says otherwise.

    Args:
        schedule: of the stages.
        num_stages: of all meshes.
        num_chunks: stages per mesh.

    Raises:
        ValueError: the stages do not divide.
    """
    num_meshes, rest = divmod(num_stages, num_chunks)
    if rest:
        raise ValueError(f"{num_stages} stages do not divide into {num_chunks} per mesh")
    if schedule == ScheduleName.DUALPIPE_V:
        return (*range(num_meshes), *reversed(range(num_meshes)))
    return tuple(stage % num_meshes for stage in range(num_stages))


_ONE_STAGE_PER_MESH: Mapping[ScheduleName, Callable[[int, int], Schedule]] = MappingProxyType(
    {
        ScheduleName.GPIPE: gpipe,
        ScheduleName.ONE_F_ONE_B: one_f_one_b,
        ScheduleName.ZERO_BUBBLE: zero_bubble,
    }
)


def make_schedule(
    schedule: ScheduleKind, stage_meshes: Sequence[int], num_micro_batches: int
) -> Schedule:
    """The schedule of some stages.

    Args:
        schedule: its name, or one's own; those of several stages per mesh are ``"interleaved"``,
            ``"dualpipe_v"`` and ``"inference"``.
        stage_meshes: per stage the mesh that it runs on.
        num_micro_batches: of a step.

    Raises:
        ValueError: the name is not known, the schedule does not take these sizes, or one's own is
            none: see `OwnSchedule.make`.
    """
    kind = schedule_kind(schedule)
    if isinstance(kind, OwnSchedule):
        return kind.make(stage_meshes, num_micro_batches)
    if kind is ScheduleName.INFERENCE:
        return inference(stage_meshes, num_micro_batches)
    num_stages, num_meshes = len(stage_meshes), max(stage_meshes, default=-1) + 1
    if kind is ScheduleName.DUALPIPE_V:
        if tuple(stage_meshes) != usual_meshes(kind, num_stages, 2):
            raise ValueError(
                "the dualpipe_v schedule has the stages r and 2p - 1 - r on mesh r of p, got "
                f"stages on meshes {tuple(stage_meshes)}"
            )
        return dualpipe_v(num_meshes, num_micro_batches)
    if any(mesh != stage % num_meshes for stage, mesh in enumerate(stage_meshes)):
        raise ValueError(
            f"schedule {kind.value!r} trains with stage s on mesh s % {num_meshes}, got stages on "
            f"meshes {tuple(stage_meshes)}"
        )
    if kind is ScheduleName.INTERLEAVED:
        if num_stages % num_meshes:
            raise ValueError(
                f"the interleaved schedule needs stages in multiples of its meshes, got "
                f"{num_stages} stages on {num_meshes} meshes"
            )
        return interleaved(num_meshes, num_micro_batches, num_stages // num_meshes)
    if num_stages != num_meshes:
        raise ValueError(
            f"schedule {kind.value!r} has one stage per mesh, got {num_stages} stages on "
            f"{num_meshes} meshes; the interleaved and dualpipe_v schedules have several"
        )
    return _ONE_STAGE_PER_MESH[kind](num_stages, num_micro_batches)
