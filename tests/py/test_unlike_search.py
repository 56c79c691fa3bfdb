"""The programme over stages on parts of unlike machines against exhaustive search."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_stage_bounds import Model, Table, bounds_of, least

from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.inter_op.pipeline_search import PipelineSearch, SearchLimits
from stablehlo_alpa.inter_op.stage_choices import FIRST, StageChoice, StageChoices
from stablehlo_alpa.inter_op.stage_pricing import Effort, StagePrice
from stablehlo_alpa.inter_op.stage_search import latency, search_stages
from stablehlo_alpa.inter_op.submeshes import Submesh, submeshes

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
                        StageChoice(first, last, size, own_s, most, variant, once_s, part, source)
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


@pytest.mark.slow
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
    whole = [replace(one, part=0, source=FIRST) for one in random_choices(rng, num_layers, 1, True)]
    parts = [
        replace(one, part=part, source=source)
        for one in whole
        for part in range(2)
        for source in (range(2) if one.first else (FIRST,))
    ]
    for count in (1, 8):
        one = search_stages(StageChoices.of(whole), num_layers, 8, count)
        two = search_stages(StageChoices.of(parts), num_layers, (4, 4), count)
        assert (one is None) == (two is None)
        if one is not None and two is not None:
            assert two.latency_s == pytest.approx(one.latency_s, rel=1e-12)


def test_parts_alternate_where_that_is_fastest() -> None:
    """Each part is good at other layers; which comes first is free."""
    choices = []
    for layer, part in itertools.product(range(4), range(2)):
        time_s = 1.0 if layer % 2 != part else 10.0
        for source in range(2) if layer else (FIRST,):
            choices.append(StageChoice(layer, layer, 1, time_s, 9, None, 0.0, part, source))
    found = search_stages(StageChoices.of(choices), 4, (2, 2), 8)
    assert found is not None
    assert [one.part for one in found.stages] == [1, 0, 1, 0]


def test_a_dear_link_is_crossed_once() -> None:
    choices = [
        StageChoice(
            layer, layer, 1, 1.0 + 5.0 * (source not in (part, FIRST)), 9, None, 0.0, part, source
        )
        for layer, part in itertools.product(range(4), range(2))
        for source in (range(2) if layer else (FIRST,))
    ]
    found = search_stages(StageChoices.of(choices), 4, (2, 2), 8)
    assert found is not None
    assert found.latency_s == pytest.approx(4 + 5 + 7 * 6)
    assert sorted([one.part for one in found.stages]) == [0, 0, 1, 1]


# The search.


class PartsTable(Table):
    """Bounds and exact prices of a model whose stages lie on two parts of unlike devices."""

    def __init__(self, seed: int, budgets: tuple[float, float]) -> None:
        """``budgets``: bytes per device of each part."""
        rng = np.random.default_rng(seed)
        self.num_layers, self.num_parts, self.count = 3, 2, 4
        self.together = 1 + seed % 3
        sizes = rng.permutation([4, 2]) if rng.random() < 0.5 else [2, 2]
        clusters = [ClusterSpec(preset_for("cpu"), 1, int(size)) for size in sizes]
        self.devices = tuple(one.num_devices for one in clusters)
        self.submeshes = tuple(
            submesh for part, one in enumerate(clusters) for submesh in submeshes(one, part)
        )
        self.models = {one: Model.random(rng, self.num_layers, 2) for one in self.submeshes}
        self.budgets = budgets
        self.bounds = {
            one: bounds_of(model, budgets[one.part]) for one, model in self.models.items()
        }
        shape = 2, 2, self.num_layers, self.num_layers
        self.received = rng.integers(0, 6, shape).astype(float)
        # What begins the step receives nothing.
        self.received[:, :, 0] = 0.0

    def received_s(self, submesh: Submesh, source: int) -> np.ndarray:
        """See `StageBounds.received_s`."""
        found: np.ndarray = self.received[source, submesh.part]
        return found

    def price(
        self,
        first: int,
        last: int,
        submesh: Submesh,
        in_flight: int,
        effort: Effort | None = None,
    ) -> StagePrice | None:
        """See `StagePricing.price`."""
        budget = self.budgets[submesh.part]
        found = least(self.models[submesh], first, last, in_flight, budget) / self.count
        return StagePrice(found, found) if np.isfinite(found) else None

    def exhaustive(self) -> float:
        """The least latency over all cuts, parts, submeshes and strategies."""

        def every(layer: int, left: tuple[int, ...]) -> Iterator[list[tuple[int, int, Submesh]]]:
            if layer == self.num_layers:
                if not any(left):
                    yield []
                return
            for last, one in itertools.product(range(layer, self.num_layers), self.submeshes):
                rest = list(left)
                rest[one.part] -= one.num_devices
                if rest[one.part] >= 0:
                    for others in every(last + 1, tuple(rest)):
                        yield [(layer, last, one), *others]

        best = np.inf
        for stages in every(0, self.devices):
            times, source = [], stages[0][2].part
            for number, (first, last, one) in enumerate(stages):
                price = self.price(first, last, one, min(len(stages) - number, self.count))
                own_s = np.inf if price is None else price.time_s
                times.append(own_s + self.received[source, one.part, first, last])
                source = one.part
            best = min(best, sum(times) + (self.count - 1) * max(times))
        return float(best)


BUDGETS = (9.0, 14.0, 25.0, 200.0)


@pytest.mark.matrix
@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(BUDGETS), st.sampled_from(BUDGETS))
def test_search_brackets_the_optimum(seed: int, first: float, second: float) -> None:
    table: Any = PartsTable(seed, (first, second))
    found = PipelineSearch(table, table, table.devices, table.count).run(SearchLimits(gap=0.0))
    best = table.exhaustive()
    if found is None:
        assert not np.isfinite(best)
        return
    assert found.bracket.bound_s <= best * (1 + 1e-9)
    assert found.bracket.latency_s == pytest.approx(best, rel=found.bracket.gap + 1e-9)
    assert found.bracket.latency_s >= best * (1 - 1e-9)
    # Of other cuts of what was priced none takes less, and each has all devices of both parts.
    for cut, latency_s in itertools.islice(found.considered.cuts(), 10):
        assert latency_s >= found.bracket.latency_s * (1 - 1e-9)
        parts = cut.parts or (0,) * len(cut.layers)
        for part, devices in enumerate(table.devices):
            own = [size for size, one in zip(cut.submeshes, parts, strict=True) if one == part]
            assert sum(hosts * per_host for hosts, per_host in own) == devices


@pytest.mark.slow
def test_the_gap_is_closed_when_it_is_asked_for() -> None:
    gaps = []
    for seed in range(30):
        table: Any = PartsTable(seed, (25.0, 45.0))
        search = PipelineSearch(table, table, table.devices, table.count)
        found = search.run(SearchLimits(gap=0.0))
        gaps += [] if found is None else [found.bracket.gap]
    assert len(gaps) > 10
    assert max(gaps) < 1e-9
