"""The dynamic programme over stages against brute force."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from stablehlo_alpa.inter_op.stage_choices import StageChoice, StageChoices
from stablehlo_alpa.inter_op.stage_search import StageSearchResult
from stablehlo_alpa.inter_op.stage_search import latency as predicted
from stablehlo_alpa.inter_op.stage_search import search_stages as search_arrays

SIZES = (1, 2, 4)


def search_stages(
    choices: list[StageChoice], layers: int, devices: int, count: int, **options: bool
) -> StageSearchResult | None:
    return search_arrays(StageChoices.of(choices), layers, devices, count, **options)


def random_choices(seed: int, runs_once: bool = False) -> tuple[list[StageChoice], int, int]:
    """Up to two choices per run of layers and submesh, some missing, some short of memory."""
    rng = np.random.default_rng(seed)
    layers, devices = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    work = rng.integers(1, 6, layers).astype(float)
    choices = []
    for first in range(layers):
        for last in range(first, layers):
            for size in SIZES:
                for variant in range(int(rng.integers(0, 3))):
                    time = work[first : last + 1].sum() / size ** rng.uniform(0.5, 1.0)
                    # Few values, so that there are ties.
                    time = float(np.round(time * (1 + variant), int(rng.integers(0, 3))))
                    most = int(rng.integers(0, 6)) if rng.random() < 0.5 else 100
                    share = float(rng.integers(0, 3)) / 4 if runs_once else 0.0
                    choice = StageChoice(first, last, size, time, most, variant, share * time)
                    choices.append(choice)
    return choices, layers, devices


def partitions(
    choices: list[StageChoice], layer: int, devices: int, layers: int
) -> Iterator[list[StageChoice]]:
    if layer == layers:
        if devices == 0:
            yield []
        return
    for choice in choices:
        if choice.first == layer and choice.devices <= devices:
            for rest in partitions(choices, choice.last + 1, devices - choice.devices, layers):
                yield [choice, *rest]


def latency(stages: list[StageChoice], count: int) -> float:
    """What is slowest of micro-batches, behind them what is dearest of what runs once."""
    often = max(stage.time_s - stage.once_s for stage in stages)
    once = max(stage.once_s for stage in stages)
    return sum(stage.time_s for stage in stages) + (count - 1) * (often + once)


def fits(stages: list[StageChoice], count: int, keeps_all: bool) -> bool:
    """Eq. 5: stage s from the end keeps the activations of s micro-batches, B at most."""
    for index, stage in enumerate(stages):
        in_flight = count if keeps_all else min(count, len(stages) - index)
        if stage.most_in_flight < in_flight:
            return False
    return True


@pytest.mark.parametrize("seed", range(400))
def test_search_equals_brute_force(seed: int) -> None:
    choices, layers, devices = random_choices(seed, runs_once=seed % 2 == 1)
    everything = list(partitions(choices, 0, devices, layers))
    for count, keeps_all in itertools.product((1, 2, 4, 32), (False, True)):
        found = search_stages(choices, layers, devices, count, keeps_all=keeps_all)
        values = [latency(p, count) for p in everything if fits(p, count, keeps_all)]
        if not values:
            assert found is None
            continue
        assert found is not None
        assert found.latency_s == pytest.approx(min(values), rel=1e-12)
        assert found.latency_s == pytest.approx(latency(list(found.stages), count), rel=1e-12)
        assert found.latency_s == pytest.approx(predicted(found.stages, count), rel=1e-12)
        assert fits(list(found.stages), count, keeps_all)
        assert sum(stage.devices for stage in found.stages) == devices
        assert [s.first for s in found.stages[1:]] == [s.last + 1 for s in found.stages[:-1]]


def enumerated(choices: list[StageChoice], layers: int, devices: int, count: int) -> float:
    """The paper's algorithm: Eq. 3 and 4 for every candidate of t_max, with s."""
    best = np.inf
    for bound in sorted({choice.time_s for choice in choices}):
        table = {(0, layers, 0): 0.0}

        def least(s: int, k: int, d: int, bound: float = bound, table: dict = table) -> float:
            if (s, k, d) not in table:
                table[s, k, d] = min(
                    (
                        choice.time_s + least(s - 1, choice.last + 1, d - choice.devices)
                        for choice in choices
                        if s > 0
                        and choice.first == k
                        and choice.devices <= d
                        and choice.time_s <= bound
                        and choice.most_in_flight >= min(s, count)
                    ),
                    default=np.inf,
                )
            return table[s, k, d]

        total = min(least(s, 0, devices) for s in range(1, layers + 1))
        best = min(best, total + (count - 1) * bound)
    return float(best)


@pytest.mark.parametrize("seed", range(100))
def test_search_equals_the_papers_enumeration(seed: int) -> None:
    choices, layers, devices = random_choices(1000 + seed)
    for count in (1, 8):
        found = search_stages(choices, layers, devices, count)
        expected = enumerated(choices, layers, devices, count)
        assert (found.latency_s if found else np.inf) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(50))
def test_a_step_takes_no_less_than_its_updates_shared_out(seed: int) -> None:
    """Eq. 2 of the paper is a bound, and the same where one stage has most of both."""
    rng = np.random.default_rng(seed)
    once = [float(rng.random()) for _ in range(3)]
    stages = [
        StageChoice(i, i, 1, once[i] + float(rng.random()), 9, once_s=once[i]) for i in (0, 1, 2)
    ]
    shared_out = sum(one.time_s for one in stages) + 7 * max(one.time_s for one in stages)
    assert predicted(stages, 8) >= shared_out * (1 - 1e-12)
    assert predicted(stages[:1], 8) == pytest.approx(8 * stages[0].time_s)


def test_no_choice_is_no_partition() -> None:
    assert search_stages([], 2, 4, 8) is None
    assert search_stages([StageChoice(0, 0, 4, 1.0, 9)], 2, 4, 8) is None


def test_few_passes_are_needed() -> None:
    rng = np.random.default_rng(0)
    work = rng.uniform(1, 3, 24)
    choices = [
        StageChoice(i, k, size, float(work[i : k + 1].sum() / size**0.9 + 0.01), 100)
        for i in range(24)
        for k in range(i, 24)
        for size in (1, 2, 4, 8)
    ]
    found = search_stages(choices, 24, 16, 32)
    assert found is not None
    assert found.num_passes < 60
