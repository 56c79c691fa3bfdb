"""Schedules of one's own, and the V: what they are held to, and that steps under them equal jit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_schedules import bubble

pytest.importorskip("stablehlo_alpa._core")

from comparing import check
from models import mlp

import stablehlo_alpa as sa
from stablehlo_alpa import OwnSchedule, Task, TaskKind
from stablehlo_alpa.inter_op import dualpipe_v, make_schedule
from stablehlo_alpa.inter_op.rescheduling import reschedule
from stablehlo_alpa.planning.own_schedule import check_schedule, read_order, write_order

F, B, W = TaskKind.FORWARD, TaskKind.BACKWARD, TaskKind.WEIGHT


def last_first(stage_meshes: Sequence[int], num_micro_batches: int) -> list[list[Task]]:
    """All forward passes, then all backward passes, the last micro-batch first."""
    numbers = range(num_micro_batches)
    meshes: list[list[Task]] = [[] for _ in range(max(stage_meshes) + 1)]
    for stage, mesh in enumerate(stage_meshes):
        meshes[mesh] += [Task(F, stage, m) for m in numbers]
    for stage, mesh in reversed(list(enumerate(stage_meshes))):
        meshes[mesh] += [Task(B, stage, m) for m in reversed(numbers)]
    return meshes


LAST_FIRST = OwnSchedule("last first", last_first)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 9), st.integers(0, 20))
def test_the_v_is_a_schedule(meshes: int, more: int) -> None:
    count = 2 * meshes + more
    schedule = dualpipe_v(meshes, count)
    check_schedule(schedule)
    # F, B and W of one unit each, two stages per mesh: a third of the bubble of 1F1B.
    assert bubble(schedule) == Fraction(meshes - 1, 6 * count + meshes - 1)
    in_flight = [schedule.most_in_flight(stage) for stage in range(2 * meshes)]
    assert in_flight == list(reversed(range(1, 2 * meshes + 1)))


def test_the_v_takes_twice_as_many_micro_batches_as_meshes() -> None:
    with pytest.raises(ValueError, match=r"twice as many micro-batches as meshes, got 7 for 4"):
        dualpipe_v(4, 7)
    with pytest.raises(ValueError, match=r"2p - 1 - r on mesh r of p, got .*\(0, 1, 0, 1\)"):
        make_schedule("dualpipe_v", (0, 1, 0, 1), 4)
    with pytest.raises(ValueError, match=r"two stages per mesh, got num_chunks=3"):
        sa.PipeshardParallel(schedule="dualpipe_v", num_chunks=3)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 5))
def test_what_is_written_is_read(stops: list[int], count: int) -> None:
    numbers = {mesh: number for number, mesh in enumerate(dict.fromkeys(stops))}
    schedule = LAST_FIRST.make([numbers[mesh] for mesh in stops], count)
    written = write_order(schedule)
    assert read_order(schedule.name, written, schedule.stage_meshes, count) == schedule


@pytest.mark.parametrize(
    ("meshes", "message"),
    [
        ([[Task(F, 0, 0), Task(B, 0, 0)]], r"tasks of 1 meshes, the stages run on 2"),
        ([["F0"], []], r"mesh 0 has 'F0', must be a Task"),
        (
            [[Task(F, 2, 0)], []],
            r"mesh 0 has forward of micro-batch 0 through stage 2, there are 2",
        ),
        ([[Task(F, 0, 1)], []], r"has forward of micro-batch 1 through stage 0, there are 1 micro"),
        ([[Task(F, 1, 0)], []], r"mesh 0 has forward .* stage 1, stage 1 runs on mesh 1"),
        ([[Task(F, 0, 0)] * 2, []], r"mesh 0 runs forward of micro-batch 0 through stage 0 twice"),
        ([[Task(F, 0, 0)], []], r"mesh 1 never runs forward of micro-batch 0 through stage 1"),
        (
            [[Task(F, 0, 0), Task(B, 0, 0)], [Task(F, 1, 0)]],
            r"mesh 1 never runs backward of micro-batch 0 through stage 1",
        ),
        (
            [[Task(F, 0, 0), Task(W, 0, 0)], [Task(F, 1, 0)]],
            r"mesh 0 never runs backward of micro-batch 0 through stage 0",
        ),
        (
            [[Task(B, 0, 0), Task(F, 0, 0)], [Task(F, 1, 0), Task(B, 1, 0)]],
            r"waits for ever: backward of micro-batch 0 through stage 0 on mesh 0 waits for "
            r"forward of micro-batch 0 through stage 0 on mesh 0$",
        ),
        (
            [[Task(F, 0, 0), Task(B, 0, 0)], [Task(B, 1, 0), Task(F, 1, 0)]],
            r"for ever: backward .* stage 1 on mesh 1 waits for forward .* stage 1 on mesh 1$",
        ),
    ],
)
def test_what_is_no_schedule_is_refused(meshes: Any, message: str) -> None:
    schedule = OwnSchedule("mine", lambda *_: meshes)
    with pytest.raises((ValueError, TypeError), match=message):
        schedule.make((0, 1), 1)


def test_names_and_functions_are_checked() -> None:
    with pytest.raises(ValueError, match=r"has a name that none of gpipe, .* has, got '1f1b'"):
        OwnSchedule("1f1b", last_first)
    with pytest.raises(TypeError, match=r"order of schedule mine must be a function .*, got 3"):
        OwnSchedule("mine", 3)  # type: ignore[arg-type]


def method(schedule: Any, stages: Any, **options: Any) -> Any:
    layers = sa.AutoLayers(num_layers=4)
    return sa.PipeshardParallel(
        schedule=schedule, stages=stages, layers=layers, num_micro_batches=4, **options
    )


FOUR_ON_TWO = sa.ManualStages((1,) * 4, ((1, 4),) * 4, meshes=(0, 1, 1, 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "stages"),
    [
        ("dualpipe_v", sa.UniformStages(4)),
        ("zero_bubble", sa.UniformStages(2)),
        (LAST_FIRST, sa.UniformStages(2)),
        (LAST_FIRST, FOUR_ON_TWO),
    ],
    ids=["the V", "zero bubble", "own", "own, two stages per mesh"],
)
def test_steps_equal_jit(schedule: Any, stages: Any, tmp_path: Path) -> None:
    case = mlp.make()
    plan = check(case.step, case.args, method(schedule, stages))
    assert plan.schedule.name == str(schedule)
    # The norm of all gradients is asked for behind the last micro-batch, and hurries none.
    is_split = {stage.phase("backward_weight") is not None for stage in plan.stages}
    assert is_split == {plan.schedule.splits_backward}
    path = tmp_path / "step.plan"
    plan.save(path)
    saved = sa.read_plan(path)
    assert saved.schedule == plan.schedule
    again, _ = reschedule(saved)
    assert again.step_time_s == plan.step_time_s
    if schedule is LAST_FIRST:
        with pytest.raises(ValueError, match=r"last first of somebody's own for 4 micro-batches"):
            reschedule(saved, num_micro_batches=8)


def test_schedules_go_with_what_the_step_takes() -> None:
    case = mlp.make()
    forward = OwnSchedule(
        "forward",
        lambda meshes, count: [[Task(F, stage, m) for m in range(count)] for stage in meshes],
    )
    step = sa.parallelize(case.step, method=method(forward, sa.UniformStages(2)))
    with pytest.raises(ValueError, match=r"schedule forward has no backward tasks, .* takes grad"):
        step.plan(*case.args)
