"""The programme over stages on parts of unlike machines against exhaustive search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablehlo_alpa.inter_op.stage_choices import FIRST, StageChoice, StageChoices
from stablehlo_alpa.inter_op.stage_search import latency, search_stages

SIZES = (1, 2, 4)


def random_choices(
    rng: np.random.Generator, num_layers: int, num_parts: int, runs_once: bool
) -> list[StageChoice]:
    """Up to two choices per run of layers, submesh and part, behind each other part."""
    work = rng.integers(1, 6, num_layers).astype(float)
    rates = rng.integers(1, 4, num_parts).astype(float)
    choices = []
    for first, part, size in itertools.product(range(num_layers), range(num_parts), SIZES):
        for last in range(first, num_layers):
            for variant in range(int(rng.integers(0, 3))):
                time_s = work[first : last + 1].sum() / rates[part] / size ** rng.uniform(0.5, 1.0)
                most = int(rng.integers(0, 6)) if rng.random() < 0.5 else 100
                share = float(rng.integers(0, 3)) / 4 if runs_once else 0.0
                for source in range(num_parts) if first else (FIRST,):
                    received_s = 0.0 if source in (part, FIRST) else float(rng.integers(0, 4)) / 2
                    # Few values, so that there are ties.
                    own_s = float(np.round(time_s * (1 + variant), 1)) + received_s
                    once_s = share * own_s
                    choices.append(
                        StageChoice(
                            first, last, size, own_s, most, variant, once_s, part, source
                        )
                    )
    return choices


def pipelines(
    choices: list[StageChoice],
    num_layers: int,
    left: tuple[int, ...],
    layer: int = 0,
    source: int = FIRST,
) -> Iterator[list[StageChoice]]:
    """All that cover the layers from one on and use all devices that are left."""
    if layer == num_layers:
        if not any(left):
            yield []
        return
    for one in choices:
        if one.first != layer or one.source != source or one.devices > left[one.part]:
            continue
        rest = list(left)
        rest[one.part] -= one.devices
        for others in pipelines(choices, num_layers, tuple(rest), one.last + 1, one.part):
            yield [one, *others]


def fits(stages: list[StageChoice], count: int, keeps_all: bool) -> bool:
    in_flight = [count if keeps_all else min(count, len(stages) - n) for n in range(len(stages))]
    return all(one.most_in_flight >= kept for one, kept in zip(stages, in_flight, strict=True))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(2, 3), st.booleans())
def test_search_equals_exhaustive_search(
    seed: int, num_layers: int, num_parts: int, runs_once: bool
) -> None:
    rng = np.random.default_rng(seed)
    devices = tuple(int(one) for one in rng.integers(1, 5 if num_parts == 2 else 3, num_parts))
    choices = random_choices(rng, num_layers, num_parts, runs_once)
    everything = list(pipelines(choices, num_layers, devices))
    for count, keeps_all in itertools.product((1, 3, 32), (False, True)):
        found = search_stages(
            StageChoices.of(choices), num_layers, devices, count, keeps_all=keeps_all
        )
        least_s = min(
            (latency(one, count) for one in everything if fits(one, count, keeps_all)),
            default=np.inf,
        )
        if found is None:
            assert least_s == np.inf
            continue
        stages = list(found.stages)
        assert found.latency_s == pytest.approx(least_s, rel=1e-12)
        assert latency(stages, count) == pytest.approx(least_s, rel=1e-12)
        assert fits(stages, count, keeps_all)
        used = [sum(one.devices for one in stages if one.part == p) for p in range(num_parts)]
        assert tuple(used) == devices
        assert [one.first for one in stages[1:]] == [one.last + 1 for one in stages[:-1]]
        assert [one.source for one in stages] == [FIRST, *(one.part for one in stages[:-1])]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5))
def test_equal_parts_are_their_sum(seed: int, num_layers: int) -> None:
    """Where nothing is lost between them: submeshes of one part of four devices are in both."""
    rng = np.random.default_rng(seed)
    own = [one for one in random_choices(rng, num_layers, 1, True)]
    whole = [StageChoice(o.first, o.last, o.devices, o.time_s, o.most_in_flight, o.key, o.once_s)
             for o in own]
    parts = [
        StageChoice(o.first, o.last, o.devices, o.time_s, o.most_in_flight, o.key, o.once_s, p, s)
        for o in whole
        for p in range(2)
        for s in (range(2) if o.first else (FIRST,))
    ]
    for count in (1, 8):
        one = search_stages(StageChoices.of(whole), num_layers, 8, count)
        two = search_stages(StageChoices.of(parts), num_layers, (4, 4), count)
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            assert two.latency_s == pytest.approx(one.latency_s, rel=1e-12)
