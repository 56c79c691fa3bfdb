"""Schedules: which stage works on which micro-batch when, as tables made from sizes alone."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from stablehlo_alpa.units import micro_batches


class ScheduleName(enum.StrEnum):
    """The schedules that there are, by the names that users give them."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    ZERO_BUBBLE = "zero_bubble"
    INFERENCE = "inference"
    INTERLEAVED = "interleaved"
    DUALPIPE_V = "dualpipe_v"

    @classmethod
    def _missing_(cls, value: object) -> ScheduleName:
        raise ValueError(f"schedule must be one of {', '.join(cls)}, got {value!r}")


class TaskKind(enum.Enum):
    """What a stage does with a micro-batch.

    ``BACKWARD`` is the whole backward pass, or, where the schedule has ``WEIGHT`` tasks, only the
    part that the stage before waits for. ``UPDATE`` is the update of a stage's weights by the
    gradients of some micro-batches, where the schedule says when that is: its number is that of
    the update.
    """

    FORWARD = "forward"
    BACKWARD = "backward"
    WEIGHT = "backward_weight"
    UPDATE = "update"

    @property
    def letter(self) -> str:
        """In tables: F, B, W or U."""
        return "W" if self is TaskKind.WEIGHT else self.value[0].upper()


@dataclass(frozen=True)
class Task:
    """One pass of one micro-batch through one stage, or an update of a stage.

    Attributes:
        kind: what is done.
        stage: number of the stage.
        micro_batch: number of the micro-batch in the step; of an update its own.
    """

    kind: TaskKind
    stage: int
    micro_batch: int

    @property
    def place(self) -> tuple[int, int]:
        """Stage and micro-batch."""
        return self.stage, self.micro_batch

    def __str__(self) -> str:
        """``F3`` for one stage per mesh; the stage is printed by the schedule."""
        return f"{self.kind.letter}{self.micro_batch}"

    @property
    def described(self) -> str:
        """For messages."""
        if self.kind is TaskKind.UPDATE:
            return f"update {self.micro_batch} of stage {self.stage}"
        return f"{self.kind.value} of micro-batch {self.micro_batch} through stage {self.stage}"


@dataclass(frozen=True)
class Schedule:
    """Tasks in the order in which each mesh runs them. Printing it gives a table.

    Attributes:
        name: of the schedule; ``"none"`` where there is nothing to order.
        num_stages: stages in all.
        num_micro_batches: micro-batches of a step.
        meshes: per mesh its tasks.
        stage_meshes: per stage the mesh that it runs on; by default mesh ``s % len(meshes)``.
        micro_batches_per_update: micro-batches whose gradients make one update of the weights;
            None where one update behind the last task is all.
        delay: micro-batches of update ``t`` read the weights that update ``t - delay`` begins
            with, in all stages; None where they read those that a stage has as they go forward.
    """

    name: str
    num_stages: int
    num_micro_batches: int
    meshes: tuple[tuple[Task, ...], ...]
    stage_meshes: tuple[int, ...] = ()
    micro_batches_per_update: int | None = None
    delay: int | None = None

    @property
    def is_asynchronous(self) -> bool:
        """Whether it says when each stage updates its weights."""
        return self.micro_batches_per_update is not None

    @property
    def num_updates(self) -> int:
        """Updates of the weights in a step."""
        return self.num_micro_batches // (self.micro_batches_per_update or self.num_micro_batches)

    def update_of(self, micro_batch: int) -> int:
        """The update that the gradients of a micro-batch are for."""
        return micro_batch // (self.micro_batches_per_update or self.num_micro_batches)

    def version(self, stage: int, micro_batch: int) -> int:
        """The weights that a micro-batch reads in a stage: those behind so many updates."""
        if self.delay is not None:
            return max(0, self.update_of(micro_batch) - self.delay)
        return self._versions.get((stage, micro_batch), 0)

    def staleness(self, stage: int) -> int:
        """Updates that are made between weights and the gradients at them, at most."""
        each = range(self.num_micro_batches)
        return max(self.update_of(m) - self.version(stage, m) for m in each)

    @cached_property
    def _versions(self) -> Mapping[tuple[int, int], int]:
        """By stage and micro-batch the updates before its forward pass."""
        made: Counter[int] = Counter()
        found: dict[tuple[int, int], int] = {}
        for task in (task for tasks in self.meshes for task in tasks):
            if task.kind is TaskKind.FORWARD:
                found[task.stage, task.micro_batch] = made[task.stage]
            made[task.stage] += task.kind is TaskKind.UPDATE
        return found

    def dependencies(self, task: Task) -> list[Task]:
        """The tasks that have to end before a task can start."""
        if task.kind is not TaskKind.UPDATE:
            before = dependencies(task, self.num_stages)
            if task.kind is TaskKind.FORWARD and (version := self.version(*task.place)):
                before.append(Task(TaskKind.UPDATE, task.stage, version - 1))
            return before
        last = TaskKind.WEIGHT if self.splits_backward else TaskKind.BACKWARD
        each = range(self.num_micro_batches)
        own = [m for m in each if self.update_of(m) == task.micro_batch]
        before = [Task(last, task.stage, m) for m in own]
        if task.micro_batch:
            before.append(Task(TaskKind.UPDATE, task.stage, task.micro_batch - 1))
        return before

    @cached_property
    def splits_backward(self) -> bool:
        """Whether gradients of parameters are computed in tasks of their own."""
        return any(task.kind is TaskKind.WEIGHT for tasks in self.meshes for task in tasks)

    @property
    def has_backward(self) -> bool:
        """Whether it trains."""
        return any(task.kind is TaskKind.BACKWARD for tasks in self.meshes for task in tasks)

    def most_in_flight(self, stage: int) -> int:
        """Micro-batches that have gone forward through a stage and not yet backward, at most.

        The one that runs is counted; without backward passes nothing waits for any.
        """
        count = most = 0
        for task in self.meshes[self.mesh_of(stage)]:
            if task.stage != stage or not self.has_backward:
                continue
            last = TaskKind.WEIGHT if self.splits_backward else TaskKind.BACKWARD
            count += (task.kind is TaskKind.FORWARD) - (task.kind is last)
            most = max(most, count)
        return max(most, 1)

    def mesh_of(self, stage: int) -> int:
        """The mesh that a stage runs on."""
        return self.stage_meshes[stage] if self.stage_meshes else stage % len(self.meshes)

    def __str__(self) -> str:
        """One row per mesh, one column per unit of time in which each task takes one."""
        rows = timeline(self)
        chunks = self.num_stages > len(self.meshes)
        cells = [
            [
                "" if task is None else f"{task}/{task.stage}" if chunks else str(task)
                for task in row
            ]
            for row in rows
        ]
        width = max((len(cell) for row in cells for cell in row), default=1)
        lines = [f"{self.name}: {self.num_stages} stages, {micro_batches(self.num_micro_batches)}"]
        for mesh, row in enumerate(cells):
            lines.append(f"mesh {mesh} | " + " ".join(cell.ljust(width) for cell in row).rstrip())
        return "\n".join(lines)


def dependencies(task: Task, num_stages: int) -> list[Task]:
    """The tasks that have to end before a pass of a micro-batch can start."""
    before: list[Task] = []
    match task.kind:
        case TaskKind.FORWARD:
            if task.stage:
                before.append(Task(TaskKind.FORWARD, task.stage - 1, task.micro_batch))
        case TaskKind.BACKWARD:
            before.append(Task(TaskKind.FORWARD, task.stage, task.micro_batch))
            if task.stage + 1 < num_stages:
                before.append(Task(TaskKind.BACKWARD, task.stage + 1, task.micro_batch))
        case TaskKind.WEIGHT:
            before.append(Task(TaskKind.BACKWARD, task.stage, task.micro_batch))
    return before


def timeline(schedule: Schedule) -> list[list[Task | None]]:
    """Per mesh the task of every unit of time, when every task takes one and sends take none.

    Raises:
        ValueError: meshes wait for each other.
    """
    position = [0] * len(schedule.meshes)
    done: set[Task] = set()
    rows: list[list[Task | None]] = [[] for _ in schedule.meshes]
    while any(at < len(tasks) for at, tasks in zip(position, schedule.meshes, strict=True)):
        started: list[Task] = []
        for mesh, tasks in enumerate(schedule.meshes):
            task = tasks[position[mesh]] if position[mesh] < len(tasks) else None
            if task and not all(t in done for t in schedule.dependencies(task)):
                task = None
            rows[mesh].append(task)
            if task:
                started.append(task)
                position[mesh] += 1
        if not started:
            raise ValueError(
                f"schedule {schedule.name} waits for ever: {_standstill(schedule, done)}"
            )
        done.update(started)
    for row in rows:
        while row and row[-1] is None:
            row.pop()
    return rows


def _standstill(schedule: Schedule, done: Set[Task]) -> str:
    """Which tasks wait for each other where no mesh can go on."""
    mesh_of = {task: mesh for mesh, tasks in enumerate(schedule.meshes) for task in tasks}
    waits: dict[int, str] = {}
    # Each that waits waits for one that waits: sooner or later the same mesh comes again.
    mesh = next(mesh for task, mesh in mesh_of.items() if task not in done)
    while mesh not in waits:
        task = next(task for task in schedule.meshes[mesh] if task not in done)
        before = schedule.dependencies(task)
        needed = next(one for one in before if one not in done)
        said = f"{task.described} on mesh {mesh} waits for {needed.described}"
        if needed not in mesh_of:
            return f"{said}, which no mesh runs"
        waits[mesh] = f"{said} on mesh {mesh_of[needed]}"
        mesh = mesh_of[needed]
    order = list(waits)
    return "; ".join(waits[one] for one in order[order.index(mesh) :])


def gpipe(num_stages: int, num_micro_batches: int) -> Schedule:
    """All forward passes, then all backward passes (Huang et al., GPipe, 2019)."""
    _check(num_stages, num_micro_batches)
    micro_batches = range(num_micro_batches)
    return Schedule(
        ScheduleName.GPIPE,
        num_stages,
        num_micro_batches,
        tuple(
            tuple(Task(TaskKind.FORWARD, stage, m) for m in micro_batches)
            + tuple(Task(TaskKind.BACKWARD, stage, m) for m in micro_batches)
            for stage in range(num_stages)
        ),
    )


def one_f_one_b(num_stages: int, num_micro_batches: int) -> Schedule:
    """Forward and backward passes in turn: at most as many activations as stages are kept.

    Source: Narayanan et al., "PipeDream-Flush" in "Memory-efficient pipeline-parallel DNN
    training", 2021.
    """
    _check(num_stages, num_micro_batches)
    meshes = []
    for stage in range(num_stages):
        warm_up = min(num_stages - stage - 1, num_micro_batches)
        tasks = [Task(TaskKind.FORWARD, stage, m) for m in range(warm_up)]
        for m in range(num_micro_batches):
            if m + warm_up < num_micro_batches:
                tasks.append(Task(TaskKind.FORWARD, stage, m + warm_up))
            tasks.append(Task(TaskKind.BACKWARD, stage, m))
        meshes.append(tuple(tasks))
    return Schedule(ScheduleName.ONE_F_ONE_B, num_stages, num_micro_batches, tuple(meshes))


def interleaved(num_meshes: int, num_micro_batches: int, num_chunks: int) -> Schedule:
    """1F1B with several stages per mesh, mesh r having the stages r, r + p, r + 2p ...

    Source: Narayanan et al., "Efficient large-scale language model training on GPU clusters using
    Megatron-LM", 2021, section 2.2.

    Args:
        num_meshes: p.
        num_micro_batches: m, a multiple of p.
        num_chunks: v, stages per mesh.
    """
    _check(num_meshes, num_micro_batches)
    if num_chunks < 1:
        raise ValueError(f"num_chunks must be >= 1, got {num_chunks}")
    if num_micro_batches % num_meshes:
        raise ValueError(
            f"the interleaved schedule needs micro-batches in multiples of its meshes, got "
            f"{num_micro_batches} for {num_meshes} meshes"
        )
    total = num_micro_batches * num_chunks

    def task(kind: TaskKind, mesh: int, step: int) -> Task:
        chunk = step // num_meshes % num_chunks
        if kind is TaskKind.BACKWARD:
            chunk = num_chunks - 1 - chunk
        group = step // (num_meshes * num_chunks)
        micro_batch = group * num_meshes + step % num_meshes
        return Task(kind, chunk * num_meshes + mesh, micro_batch)

    meshes = []
    for mesh in range(num_meshes):
        warm_up = min(total, 2 * (num_meshes - mesh - 1) + (num_chunks - 1) * num_meshes)
        tasks = [task(TaskKind.FORWARD, mesh, step) for step in range(warm_up)]
        for step in range(total):
            if step + warm_up < total:
                tasks.append(task(TaskKind.FORWARD, mesh, step + warm_up))
            tasks.append(task(TaskKind.BACKWARD, mesh, step))
        meshes.append(tuple(tasks))
    return Schedule(
        ScheduleName.INTERLEAVED, num_meshes * num_chunks, num_micro_batches, tuple(meshes)
    )


def zero_bubble(num_stages: int, num_micro_batches: int) -> Schedule:
    """ZB-H1: gradients of parameters fill the bubble, within the memory of 1F1B.

    Source: Qi et al., "Zero bubble pipeline parallelism", 2024, section 2.3.

    As 1F1B, but stage r lags r micro-batches behind with the gradients of its parameters. So the
    last stages, which wait the least at the start, keep work for the end.
    """
    _check(num_stages, num_micro_batches)
    meshes = []
    for stage in range(num_stages):
        warm_up = min(num_stages - stage, num_micro_batches)
        tasks = [Task(TaskKind.FORWARD, stage, m) for m in range(warm_up)]
        for m in range(num_micro_batches):
            tasks.append(Task(TaskKind.BACKWARD, stage, m))
            if m >= stage:
                tasks.append(Task(TaskKind.WEIGHT, stage, m - stage))
            if m + warm_up < num_micro_batches:
                tasks.append(Task(TaskKind.FORWARD, stage, m + warm_up))
        for m in range(max(0, num_micro_batches - stage), num_micro_batches):
            tasks.append(Task(TaskKind.WEIGHT, stage, m))
        meshes.append(tuple(tasks))
    return Schedule(ScheduleName.ZERO_BUBBLE, num_stages, num_micro_batches, tuple(meshes))


def inference(stage_meshes: Sequence[int], num_micro_batches: int) -> Schedule:
    """Forward passes only.

    Where a mesh has several stages, as many micro-batches as there are meshes go through all
    stages before the next do, as in `interleaved`.

    Args:
        stage_meshes: per stage the mesh that it runs on.
        num_micro_batches: of a step.
    """
    _check(len(stage_meshes), num_micro_batches)
    num_meshes = max(stage_meshes) + 1
    # Tasks run in the order of (group, stage, micro-batch) on every mesh, and wait for tasks that
    # come before them in that order: nothing waits for ever.
    order = [
        Task(TaskKind.FORWARD, stage, m)
        for first in range(0, num_micro_batches, num_meshes)
        for stage in range(len(stage_meshes))
        for m in range(first, min(first + num_meshes, num_micro_batches))
    ]
    meshes = tuple(
        tuple(task for task in order if stage_meshes[task.stage] == mesh)
        for mesh in range(num_meshes)
    )
    return Schedule(
        ScheduleName.INFERENCE, len(stage_meshes), num_micro_batches, meshes, tuple(stage_meshes)
    )


def single() -> Schedule:
    """One stage, one micro-batch, one program that is all of a step."""
    return Schedule("none", 1, 1, ((Task(TaskKind.FORWARD, 0, 0),),))


def _check(num_stages: int, num_micro_batches: int) -> None:
    if num_stages < 1 or num_micro_batches < 1:
        raise ValueError(
            f"a schedule has at least one stage and one micro-batch, got {num_stages} and "
            f"{num_micro_batches}"
        )
