"""The V-shaped schedule with two stages per mesh."""

from __future__ import annotations

from stablehlo_alpa.planning.schedules import Schedule, ScheduleName, Task, TaskKind


def dualpipe_v(num_meshes: int, num_micro_batches: int) -> Schedule:
    """DualPipeV: mesh r has the stages r and 2p - 1 - r, whose micro-batches go opposite ways.

    Every mesh has work as soon as the first micro-batch comes, and the last mesh both ends of the
    V; gradients of parameters fill what is left of the bubble. A mesh keeps at most 2p + 1
    micro-batches of one of its stages or of the other.

    Source: DeepSeek-AI, "DualPipe", 2025, cut in half ("V") as Qi et al. propose; the eight steps
    and their lengths are those of its reference implementation.

    Args:
        num_meshes: p.
        num_micro_batches: m, at least 2p.

    Raises:
        ValueError: there are fewer micro-batches.
    """
    if num_meshes < 1 or num_micro_batches < 2 * num_meshes:
        raise ValueError(
            f"the dualpipe_v schedule needs twice as many micro-batches as meshes, got "
            f"{num_micro_batches} for {num_meshes} meshes"
        )
    meshes = tuple(_Mesh(mesh, num_meshes).run(num_micro_batches) for mesh in range(num_meshes))
    stage_meshes = (*range(num_meshes), *reversed(range(num_meshes)))
    return Schedule(
        ScheduleName.DUALPIPE_V, 2 * num_meshes, num_micro_batches, meshes, stage_meshes
    )


class _Mesh:
    """The tasks of one mesh as they are written; side 0 is the way down the V, 1 the way up."""

    def __init__(self, mesh: int, num_meshes: int) -> None:
        self._mesh, self._num_meshes = mesh, num_meshes
        self._stages = (mesh, 2 * num_meshes - 1 - mesh)
        self._tasks: list[Task] = []
        self._next = {TaskKind.FORWARD: [0, 0], TaskKind.BACKWARD: [0, 0]}
        # Gradients of parameters that are put off, oldest first.
        self._weights: list[Task] = []

    def run(self, num_micro_batches: int) -> tuple[Task, ...]:
        """All tasks, in order."""
        down, up = 0, 1
        behind, ahead = self._num_meshes - self._mesh - 1, self._mesh + 1
        for _ in range(2 * behind):
            self._forward(down)
        for _ in range(ahead):
            self._forward(down)
            self._forward(up)
        for _ in range(behind):
            self._backward(up, puts_off=True)
            self._weight()
            self._forward(up)
        for _ in range(num_micro_batches - 2 * self._num_meshes + ahead):
            self._forward(down)
            self._backward(up)
            self._forward(up)
            self._backward(down)
        for _ in range(behind):
            self._backward(up)
            self._forward(up)
            self._backward(down)
        puts_off = False
        for step in range(ahead):
            is_half = step == ahead // 2
            puts_off = puts_off or (is_half and self._mesh % 2 == 1)
            self._backward(up, puts_off=puts_off)
            puts_off = puts_off or (is_half and self._mesh % 2 == 0)
            self._backward(down, puts_off=puts_off)
        for _ in range(behind):
            self._weight()
            self._backward(down, puts_off=True)
        while self._weights:
            self._weight()
        return tuple(self._tasks)

    def _forward(self, side: int) -> None:
        self._tasks.append(self._task(TaskKind.FORWARD, side))

    def _backward(self, side: int, *, puts_off: bool = False) -> None:
        """The backward pass, the gradients of parameters behind it or put off."""
        task = self._task(TaskKind.BACKWARD, side)
        self._tasks.append(task)
        self._weights.append(Task(TaskKind.WEIGHT, task.stage, task.micro_batch))
        if not puts_off:
            self._tasks.append(self._weights.pop())

    def _weight(self) -> None:
        if self._weights:
            self._tasks.append(self._weights.pop(0))

    def _task(self, kind: TaskKind, side: int) -> Task:
        number = self._next[kind][side]
        self._next[kind][side] += 1
        return Task(kind, self._stages[side], number)
