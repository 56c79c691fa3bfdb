"""Schedules of one's own: a function that orders tasks, and what it is held to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stablehlo_alpa.planning.schedules import (
    Schedule,
    ScheduleName,
    Task,
    TaskKind,
    timeline,
)


@dataclass(frozen=True)
class OwnSchedule:
    """A schedule of one's own.

    Attributes:
        name: in plans, tables and messages.
        order: takes the number of the mesh of every stage and the number of micro-batches, and
            returns for every mesh its tasks in the order in which it runs them. Every stage has
            a forward and a backward task for each micro-batch; where there are `TaskKind.WEIGHT`
            tasks, backward tasks leave the gradients of parameters to them.

    Example:
        >>> def order(stage_meshes, num_micro_batches):
        ...     numbers = range(num_micro_batches)
        ...     return [
        ...         [Task(TaskKind.FORWARD, stage, m) for m in numbers]
        ...         + [Task(TaskKind.BACKWARD, stage, m) for m in reversed(numbers)]
        ...         for stage in stage_meshes
        ...     ]
        >>> method = PipeshardParallel(schedule=OwnSchedule("last first", order))
    """

    name: str
    order: Callable[[Sequence[int], int], Sequence[Sequence[Task]]]

    def __post_init__(self) -> None:
        if not self.name or self.name in tuple(ScheduleName):
            raise ValueError(
                f"a schedule of one's own has a name that none of {', '.join(ScheduleName)} has, "
                f"got {self.name!r}"
            )
        if not callable(self.order):
            raise TypeError(
                f"order of schedule {self.name} must be a function of stage_meshes and "
                f"num_micro_batches, got {self.order!r}"
            )

    def __str__(self) -> str:
        """Its name."""
        return self.name

    def make(self, stage_meshes: Sequence[int], num_micro_batches: int) -> Schedule:
        """The schedule of some stages, checked.

        Raises:
            ValueError: a task is missing, twice there, or on a mesh that its stage does not run on;
                or meshes wait for each other.
        """
        meshes = tuple(map(tuple, self.order(tuple(stage_meshes), num_micro_batches)))
        schedule = Schedule(
            self.name, len(stage_meshes), num_micro_batches, meshes, tuple(stage_meshes)
        )
        check_schedule(schedule)
        return schedule


def write_order(schedule: Schedule) -> tuple[str, ...]:
    """Per mesh its tasks as text, ``"F0/1 B0/1"``: the first letter, micro-batch and stage."""
    return tuple(" ".join(f"{task}/{task.stage}" for task in tasks) for tasks in schedule.meshes)


def read_order(
    name: str, order: Sequence[str], stage_meshes: Sequence[int], num_micro_batches: int
) -> Schedule:
    """The schedule that `write_order` wrote, checked.

    Raises:
        ValueError: it is none.
    """
    kinds = {kind.letter: kind for kind in TaskKind}

    def task(text: str) -> Task:
        micro_batch, slash, stage = text[1:].partition("/")
        if text[:1] not in kinds or not (micro_batch + stage).isdecimal() or not slash:
            raise ValueError(f"schedule {name} has the task {text!r}, must be as F0/1")
        return Task(kinds[text[0]], int(stage), int(micro_batch))

    meshes = [[task(text) for text in tasks.split()] for tasks in order]
    return OwnSchedule(name, lambda *_: meshes).make(stage_meshes, num_micro_batches)


def check_schedule(schedule: Schedule) -> None:
    """Refuses a schedule that leaves work out, does some twice, or waits for ever.

    Raises:
        ValueError: it does.
    """
    name, num_meshes = schedule.name, max(schedule.stage_meshes) + 1
    if len(schedule.meshes) != num_meshes:
        raise ValueError(
            f"schedule {name}: tasks of {len(schedule.meshes)} meshes, the stages run on "
            f"{num_meshes}"
        )
    seen: set[Task] = set()
    for mesh, tasks in enumerate(schedule.meshes):
        for task in tasks:
            _check_task(schedule, task, mesh)
            if task in seen:
                raise ValueError(f"schedule {name}: mesh {mesh} runs {task.described} twice")
            seen.add(task)
    kinds = {task.kind for task in seen} | {TaskKind.FORWARD}
    if TaskKind.WEIGHT in kinds:
        kinds.add(TaskKind.BACKWARD)
    for kind in TaskKind:
        for stage in range(schedule.num_stages if kind in kinds else 0):
            for micro_batch in range(schedule.num_micro_batches):
                task = Task(kind, stage, micro_batch)
                if task not in seen:
                    mesh = schedule.mesh_of(stage)
                    raise ValueError(f"schedule {name}: mesh {mesh} never runs {task.described}")
    # Where meshes wait for each other, it says which.
    timeline(schedule)


def _check_task(schedule: Schedule, task: Task, mesh: int) -> None:
    name = schedule.name
    if not isinstance(task, Task):
        raise TypeError(f"schedule {name}: mesh {mesh} has {task!r}, must be a Task")
    if not 0 <= task.stage < schedule.num_stages:
        raise ValueError(
            f"schedule {name}: mesh {mesh} has {task.described}, there are "
            f"{schedule.num_stages} stages"
        )
    if not 0 <= task.micro_batch < schedule.num_micro_batches:
        raise ValueError(
            f"schedule {name}: mesh {mesh} has {task.described}, there are "
            f"{schedule.num_micro_batches} micro-batches"
        )
    if schedule.mesh_of(task.stage) != mesh:
        raise ValueError(
            f"schedule {name}: mesh {mesh} has {task.described}, stage {task.stage} runs on mesh "
            f"{schedule.mesh_of(task.stage)}"
        )
