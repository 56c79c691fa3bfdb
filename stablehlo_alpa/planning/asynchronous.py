"""1F1B without a flush: stages update their weights while other micro-batches are on their way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_alpa.planning.own_schedule import OwnSchedule
from stablehlo_alpa.planning.schedules import Task, TaskKind, one_f_one_b


def pipedream(micro_batches_per_update: int = 1) -> OwnSchedule:
    """1F1B that updates a stage as soon as it has gradients, and keeps the weights still needed.

    Backward passes read the weights that their forward passes have read. With an update per
    micro-batch, stage ``s`` of ``n`` takes the gradient of update ``t`` at the weights that are
    ``n - 1 - s`` updates older, or at those that the step begins with:

        w_s(t + 1) = w_s(t) - lr * grad_s f(w_0(t - n + 1), ..., w_s(t - n + 1 + s), ..., w_n-1(t))

    Source: Harlap et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP
    2019, section 3.3 (weight stashing, without vertical sync).

    Args:
        micro_batches_per_update: whose gradients are added up.
    """
    name, count = "pipedream", micro_batches_per_update
    return OwnSchedule(name, _order(name, count, is_uniform=False), count)


def pipedream_2bw(micro_batches_per_update: int) -> OwnSchedule:
    """1F1B with two versions of the weights: all gradients are one update late.

        w(t + 1) = w(t) - lr * grad f(w(t - 1))

    and w(0) in place of w(-1). Source: Narayanan et al., "Memory-efficient pipeline-parallel DNN
    training", ICML 2021, section 3.1 (PipeDream-2BW).

    Args:
        micro_batches_per_update: whose gradients are added up, at least as many as stages less
            one: that many micro-batches are on their way as the update before is made.
    """
    name, count = "pipedream_2bw", micro_batches_per_update
    return OwnSchedule(name, _order(name, count, is_uniform=True), count, delay=1)


_Order = Callable[[Sequence[int], int], list[list[Task]]]


def _order(name: str, per_update: int, is_uniform: bool) -> _Order:
    """1F1B with the update of a stage behind the last backward pass that is for it."""

    def order(stage_meshes: Sequence[int], num_micro_batches: int) -> list[list[Task]]:
        num_stages = len(stage_meshes)
        if tuple(stage_meshes) != tuple(range(num_stages)):
            raise ValueError(
                f"schedule {name} has one stage per mesh, got stages on meshes "
                f"{tuple(stage_meshes)}"
            )
        if is_uniform and per_update < num_stages - 1:
            raise ValueError(
                f"schedule {name} takes at least {num_stages - 1} micro-batches per update with "
                f"{num_stages} stages, got {per_update}: with fewer, micro-batches would wait for "
                "an update that is still on its way"
            )
        meshes = []
        for tasks in one_f_one_b(num_stages, num_micro_batches).meshes:
            own: list[Task] = []
            for task in tasks:
                own.append(task)
                update, rest = divmod(task.micro_batch + 1, per_update)
                if task.kind is TaskKind.BACKWARD and not rest:
                    own.append(Task(TaskKind.UPDATE, task.stage, update - 1))
            meshes.append(own)
        return meshes

    return order
