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
        micro_batches_per_update: micro-batches whose gradients make one update of the weights. A
            step then makes as many updates as its batch has such parts, each what the function
            does to one part, and every stage has a `TaskKind.UPDATE` task for each. None: the
            step makes one update, behind all tasks.
        delay: micro-batches of update ``t`` read the weights that update ``t - delay`` begins
            with, in all stages; None: those that a stage has as they go forward.

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
    micro_batches_per_update: int | None = None
    delay: int | None = None

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
        per_update, delay = self.micro_batches_per_update, self.delay
        if per_update is not None and per_update < 1:
            raise ValueError(
                f"micro_batches_per_update of schedule {self.name} must be None or >= 1, got "
                f"{per_update}"
            )
        if delay is not None and (per_update is None or delay < 0):
            raise ValueError(
                f"delay of schedule {self.name} is in updates, None or >= 0, and takes "
                f"micro_batches_per_update, got {delay}"
            )

    def num_updates(self, num_micro_batches: int) -> int:
        """Updates of the weights in a step.

        Raises:
            ValueError: the micro-batches do not divide into them.
        """
        count, rest = divmod(num_micro_batches, self.micro_batches_per_update or num_micro_batches)
        if rest:
            raise ValueError(
                f"schedule {self.name} updates weights after every "
                f"{self.micro_batches_per_update} micro-batches, which {num_micro_batches} do not "
                "divide into"
            )
        return count

    def __str__(self) -> str:
        """Its name."""
        return self.name

    def make(self, stage_meshes: Sequence[int], num_micro_batches: int) -> Schedule:
        """The schedule of some stages, checked.

        Raises:
            ValueError: a task is missing, twice there, or on a mesh that its stage does not run on;
                meshes wait for each other, or the micro-batches do not divide into updates.
        """
        self.num_updates(num_micro_batches)
        meshes = tuple(map(tuple, self.order(tuple(stage_meshes), num_micro_batches)))
        schedule = Schedule(
            self.name,
            len(stage_meshes),
            num_micro_batches,
            meshes,
            tuple(stage_meshes),
            self.micro_batches_per_update,
            self.delay,
        )
        check_schedule(schedule)
        return schedule


def write_order(schedule: Schedule) -> tuple[str, ...]:
    """Per mesh its tasks as text, ``"F0/1 B0/1"``: the first letter, micro-batch and stage."""
    return tuple(" ".join(f"{task}/{task.stage}" for task in tasks) for tasks in schedule.meshes)


def read_order(
    name: str,
    order: Sequence[str],
    stage_meshes: Sequence[int],
    num_micro_batches: int,
    micro_batches_per_update: int | None = None,
    delay: int | None = None,
) -> Schedule:
    """The schedule that `write_order` wrote, checked; other arguments are its attributes.

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
    own = OwnSchedule(name, lambda *_: meshes, micro_batches_per_update, delay)
    return own.make(stage_meshes, num_micro_batches)


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
    if TaskKind.WEIGHT in kinds or schedule.is_asynchronous:
        kinds.add(TaskKind.BACKWARD)
    if schedule.is_asynchronous:
        kinds.add(TaskKind.UPDATE)
    for kind in TaskKind:
        for stage in range(schedule.num_stages if kind in kinds else 0):
            for number in range(_count(schedule, kind)):
                task = Task(kind, stage, number)
                if task not in seen:
                    mesh = schedule.mesh_of(stage)
                    raise ValueError(f"schedule {name}: mesh {mesh} never runs {task.described}")
    # Where meshes wait for each other, it says which.
    timeline(schedule)


def _count(schedule: Schedule, kind: TaskKind) -> int:
    """Tasks of a kind that a stage has."""
    is_update = kind is TaskKind.UPDATE
    return schedule.num_updates if is_update else schedule.num_micro_batches


def _check_task(schedule: Schedule, task: Task, mesh: int) -> None:
    name = schedule.name
    if not isinstance(task, Task):
        raise TypeError(f"schedule {name}: mesh {mesh} has {task!r}, must be a Task")
    if not 0 <= task.stage < schedule.num_stages:
        raise ValueError(
            f"schedule {name}: mesh {mesh} has {task.described}, there are "
            f"{schedule.num_stages} stages"
        )
    if task.kind is TaskKind.UPDATE and not schedule.is_asynchronous:
        raise ValueError(
            f"schedule {name}: mesh {mesh} has {task.described}: pass micro_batches_per_update, "
            "or leave updates out (one is made behind all tasks)"
        )
    if not 0 <= task.micro_batch < (count := _count(schedule, task.kind)):
        what = "updates" if task.kind is TaskKind.UPDATE else "micro-batches"
        raise ValueError(
            f"schedule {name}: mesh {mesh} has {task.described}, there are {count} {what}"
        )
    if schedule.mesh_of(task.stage) != mesh:
        raise ValueError(
            f"schedule {name}: mesh {mesh} has {task.described}, stage {task.stage} runs on mesh "
            f"{schedule.mesh_of(task.stage)}"
        )
