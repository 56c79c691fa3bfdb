"""Bounds of runs of layers, and the search that lives on them, against brute force."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.inter_op.layer_costs import LayerCosts, Place
from stablehlo_alpa.inter_op.layer_parts import LayerPart, LayerParts
from stablehlo_alpa.inter_op.pipeline_search import PipelineSearch, SearchLimits
from stablehlo_alpa.inter_op.range_bounds import RangeBounds, tile
from stablehlo_alpa.inter_op.stage_pricing import Effort, StagePrice
from stablehlo_alpa.inter_op.submeshes import Submesh, submeshes
from stablehlo_alpa.inter_op.windows import MemoryPrice, WindowPrices, Windows
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.planning.stage import Slot, SlotKind

STRATEGIES = 3
# What arrives, what a layer does, what leaves it.
ARRIVES, INNER, LEAVES = range(3)


def layer_part(number: int, kind: int) -> LayerPart:
    """A layer that takes transfer ``number`` and makes the next."""
    return LayerPart(
        merged="",
        digest=str(kind),
        inputs=(Slot(SlotKind.TRANSFER, number),),
        outputs=(Slot(SlotKind.TRANSFER, number + 1),),
        input_types=("8xf32",),
        is_once=(False,),
        is_owned=(False,),
    )


def layer_costs(rng: np.random.Generator) -> LayerCosts:
    """Three nodes in a row; the first and the last can be split in the same ways."""
    size = 3 * STRATEGIES
    costs = Costs(
        rows=np.arange(size),
        sizes=np.full(3, STRATEGIES),
        node_s=rng.integers(0, 20, size).astype(float),
        edges=np.array([[ARRIVES, INNER], [INNER, LEAVES]]),
        tables=tuple(rng.integers(0, 20, (2, STRATEGIES, STRATEGIES)).astype(float)),
        first=STRATEGIES * np.arange(3),
    )
    rows = np.arange(STRATEGIES)[:, None]
    # Of the first and the last node what is spent is spent once.
    once = replace(
        costs,
        node_s=np.where(np.arange(size) // STRATEGIES == INNER, 0.0, costs.node_s),
        edges=np.zeros((0, 2), np.int64),
        tables=(),
    )
    return LayerCosts(
        costs,
        once,
        rest=rng.integers(0, 10, size).astype(float),
        activation=rng.integers(0, 4, size).astype(float),
        transient=rng.integers(0, 6, size).astype(float),
        inputs=(Place(ARRIVES, rows),),
        outputs=(Place(LEAVES, rows),),
    )


@dataclass(frozen=True, eq=False)
class Model:
    """Layers, some of them equal."""

    parts: LayerParts
    layers: tuple[LayerCosts, ...]

    @classmethod
    def random(cls, rng: np.random.Generator, num_layers: int, num_kinds: int) -> Model:
        """Some layers of fewer kinds."""
        kinds = rng.integers(0, num_kinds, num_layers).tolist()
        costs = [layer_costs(rng) for _ in range(num_kinds)]
        parts = LayerParts(tuple(itertools.starmap(layer_part, enumerate(kinds))), 4)
        return cls(parts, tuple(costs[kind] for kind in kinds))

    def plans(self, first: int, last: int) -> np.ndarray:
        """float64[3, plans] seconds and bytes, at rest and per micro-batch, of all plans."""
        found, leaves = np.zeros((3, 1)), np.full(1, -1)
        each = np.array(list(itertools.product(range(STRATEGIES), repeat=3)))
        for number in range(first, last + 1):
            layer = self.layers[number]
            at = layer.costs.start[:-1] + each
            seconds = [layer.costs.value(own) for own in each]
            rest = layer.rest + layer.transient if number == last else layer.rest
            own = np.stack([seconds, rest[at].sum(1), layer.activation[at].sum(1)])
            meets = (leaves[:, None] == each[None, :, ARRIVES]) | (leaves[:, None] < 0)
            before, after = np.nonzero(meets)
            found, leaves = found[:, before] + own[:, after], each[after, LEAVES]
        return found


@functools.cache
def least(model: Model, first: int, last: int, in_flight: int, budget: float) -> float:
    seconds, rest, kept = model.plans(first, last)
    return float(seconds[rest + in_flight * kept <= budget].min(initial=np.inf))


def bounds_of(model: Model, budget: float) -> RangeBounds:
    return RangeBounds(Windows(model.parts, model.layers), model.layers, budget, 0.1)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3), st.sampled_from([8.0, 20.0, 45.0, 200.0]))
@example(4689, 2, 20.0)  # memory that is met exactly: its price rises to 1e9
def test_no_run_of_layers_costs_less_than_its_bound(seed: int, kinds: int, budget: float) -> None:
    model = Model.random(np.random.default_rng(seed), 3, kinds)
    bounds = bounds_of(model, budget)
    for first, last in itertools.combinations_with_replacement(range(3), 2):
        for in_flight in (1, 3):
            exact = least(model, first, last, in_flight, budget)
            assert bounds.seconds(in_flight)[0, first, last] <= exact + 1e-9
            bounds.sharpen(first, last, in_flight)
            assert bounds.seconds(in_flight)[0, first, last] <= exact + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31))
def test_one_and_two_layers_are_exact(seed: int) -> None:
    model = Model.random(np.random.default_rng(seed), 3, 3)
    found = tile(Windows(model.parts, model.layers).prices(MemoryPrice(), with_pairs=True))[0]
    for first, last in ((0, 0), (1, 1), (0, 1), (1, 2)):
        assert found[first, last] == pytest.approx(least(model, first, last, 1, np.inf))


@pytest.mark.parametrize("lacking", range(6))
def test_a_pair_without_a_plan_concerns_the_runs_that_hold_it(lacking: int) -> None:
    rng = np.random.default_rng(lacking)
    columns = [rng.random((5, count)) for count in (7, 6, 7, 6)]
    whole = tile(WindowPrices(*columns))
    for pairs in (columns[1], columns[3]):
        pairs[:, lacking] = np.inf
    found = tile(WindowPrices(*columns))
    for first, last in itertools.combinations_with_replacement(range(7), 2):
        if first <= lacking < last:
            # One of the two tilings meets it, and is the dearer.
            assert np.isinf(found[0, first, last])
        else:
            np.testing.assert_allclose(found[:, first, last], whole[:, first, last])


def test_a_price_of_memory_raises_the_bound() -> None:
    raised = 0
    for seed in range(20):
        model = Model.random(np.random.default_rng(seed), 3, 2)
        budget = 0.6 * float(model.plans(0, 2)[1:].sum(axis=0).max())
        bounds = bounds_of(model, budget)
        before = bounds.seconds(1)[0, 0, 2]
        bounds.sharpen(0, 2, 1)
        assert bounds.is_sharp(0, 2, 1)
        raised += bounds.seconds(1)[0, 0, 2] > before
    assert raised > 5


def test_equal_layers_are_solved_once() -> None:
    rng = np.random.default_rng(0)
    one = layer_costs(rng)
    parts = LayerParts(tuple(layer_part(number, 0) for number in range(200)), 4)
    windows = Windows(parts, [one] * 200)
    windows.prices(MemoryPrice(), with_pairs=True)
    assert len(windows._solved) == 2
    # Within a run of layers, and at its end, where more is held.
    windows.prices(MemoryPrice(1.0, 1.0), with_pairs=True)
    assert len(windows._solved) == 6


# The search.


class Table:
    """Bounds and exact prices of a model whose stages share submeshes of a cluster."""

    def __init__(self, seed: int, budget: float, once: float = 0.0) -> None:
        """``once``: what share of the seconds of a stage is spent once, at most."""
        self.together = 1 + seed % 3
        rng = np.random.default_rng(seed)
        self.num_layers = 3
        self.submeshes = tuple(submeshes(ClusterSpec(preset_for("cpu"), 1, 4)))
        self.models = {one: Model.random(rng, self.num_layers, 2) for one in self.submeshes}
        self.bounds = {one: bounds_of(model, budget) for one, model in self.models.items()}
        received = rng.integers(0, 3, (self.num_layers, self.num_layers)).astype(float)
        self.received, self.budget = received, budget
        self.count, self.once = 4, once
        self.num_parts = 1

    def of(self, submesh: Submesh) -> RangeBounds:
        """See `StageBounds.of`."""
        return self.bounds[submesh]

    def sharpen(
        self, submesh: Submesh, first: int, last: int, in_flight: int, *, with_pairs: bool = True
    ) -> bool:
        """See `StageBounds.sharpen`."""
        if self.bounds[submesh].is_sharp(first, last, in_flight, with_pairs=with_pairs):
            return False
        self.bounds[submesh].sharpen(first, last, in_flight, with_pairs=with_pairs)
        return True

    def received_s(self, submesh: Submesh, source: int) -> np.ndarray:
        """See `StageBounds.received_s`."""
        return self.received

    def memory_price_s(self, submesh: Submesh, first: int, last: int, in_flight: int) -> None:
        """See `StageBounds.memory_price_s`."""

    def prepare(self, ranges: Any) -> None:
        """See `StagePricing.prepare`."""

    def at_once(self, stages: Any) -> Any:
        """See `StagePricing.at_once`."""
        return stages[: self.together]

    def price(
        self,
        first: int,
        last: int,
        submesh: Submesh,
        in_flight: int,
        effort: Effort | None = None,
    ) -> StagePrice | None:
        """See `StagePricing.price`."""
        found = least(self.models[submesh], first, last, in_flight, self.budget) / self.count
        share = self.once * np.random.default_rng([first, last, submesh.num_devices]).random()
        return StagePrice(found, found, share * found) if np.isfinite(found) else None

    def exhaustive(self) -> float:
        """The least latency over all cuts, submeshes and strategies."""

        def partitions(layer: int, devices: int) -> Iterator[list[tuple[int, int, Submesh]]]:
            if layer == self.num_layers:
                if devices == 0:
                    yield []
                return
            for last, submesh in itertools.product(range(layer, self.num_layers), self.submeshes):
                if submesh.num_devices <= devices:
                    for rest in partitions(last + 1, devices - submesh.num_devices):
                        yield [(layer, last, submesh), *rest]

        best = np.inf
        for stages in partitions(0, 4):
            times = []
            for number, (first, last, submesh) in enumerate(stages):
                price = self.price(first, last, submesh, min(len(stages) - number, self.count))
                own = np.inf if price is None else price.time_s
                times.append(own + self.received[first, last])
            best = min(best, sum(times) + (self.count - 1) * max(times))
        return float(best)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("budget", [9.0, 14.0, 25.0, 200.0])
def test_search_brackets_the_optimum(seed: int, budget: float) -> None:
    table: Any = Table(seed, budget)
    found = PipelineSearch(table, table, 4, table.count).run(SearchLimits(gap=0.0))
    best = table.exhaustive()
    if found is None:
        assert not np.isfinite(best)
        return
    assert found.bracket.bound_s <= best * (1 + 1e-9)
    assert found.bracket.latency_s == pytest.approx(best, rel=found.bracket.gap + 1e-9)
    assert found.bracket.latency_s >= best * (1 - 1e-9)


class Hurried(Table):
    """Of a third of the stages no plan is found in time, whether there is one or not."""

    def price(
        self,
        first: int,
        last: int,
        submesh: Submesh,
        in_flight: int,
        effort: Effort | None = None,
    ) -> StagePrice | None:
        """See `StagePricing.price`."""
        found = super().price(first, last, submesh, in_flight, effort)
        # The exhaustive search asks for no effort and has all the time.
        is_late = hash((first, last, submesh.num_devices, in_flight)) % 3 == 0
        return StagePrice(np.inf, 0.0) if effort is not None and is_late else found


def test_what_is_not_found_in_time_bounds_nothing() -> None:
    gaps = []
    for seed in range(40):
        table: Any = Hurried(seed, 45.0)
        best = table.exhaustive()
        found = PipelineSearch(table, table, 4, table.count).run(SearchLimits(gap=0.0))
        if found is None:
            continue
        assert found.bracket.bound_s <= best * (1 + 1e-9)
        assert np.isfinite(found.bracket.latency_s)
        assert found.bracket.latency_s >= best * (1 - 1e-9)
        gaps.append(found.bracket.latency_s / best - 1)
    # Without the stages that are late the best is often missed, and the bound knows.
    assert sum(gap > 1e-6 for gap in gaps) >= 5


@pytest.mark.parametrize("seed", range(20))
def test_what_runs_once_is_not_shared_out(seed: int) -> None:
    """Steps take what their stages are simulated to; what bounds them shares updates out."""
    table: Any = Table(seed, 45.0, once=0.8)
    found = PipelineSearch(table, table, 4, table.count).run(SearchLimits(gap=0.0))
    assert found is not None
    assert found.bracket.bound_s <= table.exhaustive() * (1 + 1e-9)
    often = max(one.time_s - one.once_s for one in found.stages)
    once = max(one.once_s for one in found.stages)
    expected = sum(one.time_s for one in found.stages) + (table.count - 1) * (often + once)
    assert found.bracket.latency_s == pytest.approx(expected)
    # No other cut of the stages that were priced takes less.
    for cut in itertools.islice(found.considered.cuts(), 20):
        assert cut[1] >= found.bracket.latency_s * (1 - 1e-9)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_what_windows_spend_once_is_part_of_what_they_spend(share: float) -> None:
    model = Model.random(np.random.default_rng(3), 5, 3)
    price = MemoryPrice(share, share)
    windows = Windows(model.parts, model.layers)
    prices = windows.prices(price, with_pairs=True)
    assert (prices.singles[4] <= prices.singles[1]).all()
    assert (prices.singles[4] > 0).any()
    tiles = tile(prices)
    assert (tiles[4] <= tiles[1] + 1e-9).all()


def test_the_gap_is_closed_when_it_is_asked_for() -> None:
    gaps = []
    for seed in range(20):
        table: Any = Table(seed, 25.0)
        found = PipelineSearch(table, table, 4, table.count).run(SearchLimits(gap=0.0))
        gaps += [] if found is None else [found.bracket.gap]
    assert len(gaps) > 10
    assert max(gaps) < 1e-9
