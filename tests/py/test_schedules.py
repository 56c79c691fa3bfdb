"""Schedules: dependencies, each task once, memory, and the bubbles of the textbook."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablehlo_alpa.inter_op import (
    Schedule,
    Task,
    TaskKind,
    gpipe,
    inference,
    interleaved,
    make_schedule,
    one_f_one_b,
    zero_bubble,
)
from stablehlo_alpa.planning.schedules import dependencies, timeline


def forward(stages: int, micro_batches: int) -> Schedule:
    """Every stage on a mesh of its own."""
    return inference(range(stages), micro_batches)


PLAIN = [gpipe, one_f_one_b, zero_bubble, forward]


def most_live(schedule: Schedule, mesh: int) -> int:
    """Micro-batches whose activations a mesh keeps at once, summed over its stages."""
    end = TaskKind.WEIGHT if schedule.splits_backward else TaskKind.BACKWARD
    live = most = 0
    for task in schedule.meshes[mesh]:
        live += (task.kind is TaskKind.FORWARD) - (task.kind is end)
        most = max(most, live)
    return most


def bubble(schedule: Schedule) -> Fraction:
    """Idle part of the time in which each mesh has work, tasks taking one unit each."""
    rows = timeline(schedule)
    total = max(len(row) for row in rows)
    work = len(schedule.meshes[0])
    return Fraction(total - work, total)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 8), st.integers(1, 20), st.sampled_from(PLAIN))
def test_every_task_runs_once_behind_what_it_needs(
    stages: int, micro_batches: int, make: Any
) -> None:
    schedule = make(stages, micro_batches)
    kinds = {task.kind for tasks in schedule.meshes for task in tasks}
    wanted = {
        Task(kind, stage, m)
        for kind in kinds
        for stage in range(stages)
        for m in range(micro_batches)
    }
    assert Counter(t for tasks in schedule.meshes for t in tasks) == Counter(wanted)
    _assert_in_order(schedule)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 4))
def test_interleaved_tasks_run_once_behind_what_they_need(
    meshes: int, rounds: int, chunks: int
) -> None:
    schedule = interleaved(meshes, rounds * meshes, chunks)
    tasks = Counter(t for own in schedule.meshes for t in own)
    assert len(tasks) == 2 * meshes * chunks * rounds * meshes
    assert set(tasks.values()) == {1}
    for mesh, own in enumerate(schedule.meshes):
        assert {schedule.mesh_of(task.stage) for task in own} == {mesh}
    _assert_in_order(schedule)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.integers(1, 7))
def test_forward_passes_visit_meshes_in_any_order(stops: list[int], micro_batches: int) -> None:
    numbers = {mesh: number for number, mesh in enumerate(dict.fromkeys(stops))}
    stage_meshes = tuple(numbers[mesh] for mesh in stops)
    schedule = make_schedule("inference", stage_meshes, micro_batches)
    tasks = Counter(t for own in schedule.meshes for t in own)
    assert set(tasks.values()) == {1}
    assert len(tasks) == len(stops) * micro_batches
    assert len(schedule.meshes) == len(numbers)
    for mesh, own in enumerate(schedule.meshes):
        assert all(stage_meshes[task.stage] == schedule.mesh_of(task.stage) == mesh for task in own)
    _assert_in_order(schedule)


def _assert_in_order(schedule: Schedule) -> None:
    begins = {
        task: time
        for row in timeline(schedule)
        for time, task in enumerate(row)
        if task is not None
    }
    for task, time in begins.items():
        assert all(begins[before] < time for before in dependencies(task, schedule.num_stages))


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("micro_batches", [8, 16, 21])
def test_bubbles_are_the_textbooks(stages: int, micro_batches: int) -> None:
    p, m = stages, micro_batches
    # Forward and backward of one unit each: 2 (p - 1) idle of 2 (m + p - 1).
    assert bubble(gpipe(p, m)) == Fraction(p - 1, m + p - 1)
    assert bubble(one_f_one_b(p, m)) == Fraction(p - 1, m + p - 1)
    # F, B and W of one unit each: (p - 1) (F + B - W) idle, against (p - 1) (F + B + W) of 1F1B.
    assert bubble(zero_bubble(p, m)) == Fraction(p - 1, 3 * m + p - 1)


@pytest.mark.parametrize("chunks", [2, 3])
@pytest.mark.parametrize("meshes", [2, 4])
def test_interleaving_divides_the_bubble(meshes: int, chunks: int) -> None:
    p, m, v = meshes, 4 * meshes, chunks
    # In units of one chunk: 2 (p - 1) idle beside 2 m v of work.
    assert bubble(interleaved(p, m, v)) == Fraction(p - 1, m * v + p - 1)


@pytest.mark.parametrize("make", [one_f_one_b, zero_bubble])
def test_no_more_activations_than_stages(make: Any) -> None:
    for stages in (2, 3, 5):
        schedule = make(stages, 17)
        assert max(most_live(schedule, mesh) for mesh in range(stages)) == stages
    assert most_live(gpipe(3, 17), 0) == 17


def test_printing_gives_a_table() -> None:
    assert str(one_f_one_b(2, 3)).splitlines() == [
        "1f1b: 2 stages, 3 micro-batches",
        "mesh 0 | F0 F1    B0 F2 B1    B2",
        "mesh 1 |    F0 B0 F1 B1 F2 B2",
    ]
    assert "F0/2" in str(interleaved(2, 2, 2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fast", (0, 1), 2), "schedule must be one of gpipe, 1f1b, .*, got 'fast'"),
        (("1f1b", (0, 1, 0, 1), 2), "one stage per mesh, got 4 stages on 2 meshes"),
        (("interleaved", (0, 1, 0), 2), "in multiples of its meshes, got 3 stages on 2"),
        (("interleaved", (0, 1, 0, 1), 3), "in multiples of its meshes, got 3 for 2 meshes"),
        (("1f1b", (1, 0), 2), r"trains with stage s on mesh s % 2, got stages on meshes \(1, 0\)"),
        (("gpipe", (0, 1), 0), "at least one stage and one micro-batch, got 2 and 0"),
    ],
)
def test_impossible_sizes_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_schedule(*arguments)
