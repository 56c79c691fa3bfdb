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
from often import one_in, seldom

from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.errors import SlowerError
from stablehlo_alpa.inter_op.layer_costs import LayerCosts, Place
from stablehlo_alpa.inter_op.layer_parts import LayerPart, LayerParts
from stablehlo_alpa.inter_op.once_bounds import OnceBounds
from stablehlo_alpa.inter_op.pipeline_search import PipelineSearch, SearchLimits
from stablehlo_alpa.inter_op.range_bounds import RangeBounds, tile
from stablehlo_alpa.inter_op.stage_pricing import Effort, StagePrice
from stablehlo_alpa.inter_op.submeshes import Submesh, submeshes
from stablehlo_alpa.inter_op.windows import Weights, WindowPrices, Windows
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


def layer_costs(rng: np.random.Generator, *, has_once: bool = False) -> LayerCosts:
    """Three nodes in a row; the first and the last can be split in the same ways.

    ``has_once``: of the first and the last what is spent is spent once.
    """
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
    is_once = (np.arange(size) // STRATEGIES != INNER) & has_once
    once = replace(
        costs,
        node_s=np.where(is_once, costs.node_s, 0.0),
        edges=np.zeros((0, 2), np.int64),
        tables=(),
    )
    return LayerCosts(
        costs,
        once,
        once_least=once.node_s,
        once_most=once.node_s,
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
    def random(
        cls, rng: np.random.Generator, num_layers: int, num_kinds: int, *, has_once: bool = False
    ) -> Model:
        """Some layers of fewer kinds."""
        kinds = rng.integers(0, num_kinds, num_layers).tolist()
        costs = [layer_costs(rng, has_once=has_once) for _ in range(num_kinds)]
        parts = LayerParts(tuple(itertools.starmap(layer_part, enumerate(kinds))), 4)
        return cls(parts, tuple(costs[kind] for kind in kinds))

    def plans(self, first: int, last: int) -> np.ndarray:
        """float64[4, plans] seconds, bytes at rest and per micro-batch, and seconds once."""
        found, leaves = np.zeros((4, 1)), np.full(1, -1)
        each = np.array(list(itertools.product(range(STRATEGIES), repeat=3)))
        for number in range(first, last + 1):
            layer = self.layers[number]
            at = layer.costs.start[:-1] + each
            seconds = [layer.costs.value(own) for own in each]
            rest = layer.rest + layer.transient if number == last else layer.rest
            once = [layer.once.value(own) for own in each]
            own = np.stack([seconds, rest[at].sum(1), layer.activation[at].sum(1), once])
            meets = (leaves[:, None] == each[None, :, ARRIVES]) | (leaves[:, None] < 0)
            before, after = np.nonzero(meets)
            found, leaves = found[:, before] + own[:, after], each[after, LEAVES]
        return found


@functools.cache
def tradeoffs(
    model: Model, first: int, last: int, in_flight: int, budget: float
) -> list[tuple[float, float]]:
    """Seconds, and those of them that are spent once, of plans within a budget, fastest first.

    Those that another plan beats in seconds per micro-batch and in those that are spent once are
    not among them.
    """
    seconds, rest, kept, once = model.plans(first, last)
    fits = rest + in_flight * kept <= budget
    found: list[tuple[float, float]] = []
    plans = sorted({(t - o, o) for t, o in zip(seconds[fits], once[fits], strict=True)})
    for often_s, once_s in plans:
        if not found or once_s < found[-1][1]:
            found.append((often_s + once_s, once_s))
    return sorted(found)


def least(model: Model, first: int, last: int, in_flight: int, budget: float) -> float:
    found = tradeoffs(model, first, last, in_flight, budget)
    return found[0][0] if found else np.inf


def bounds_of(model: Model, budget: float) -> RangeBounds:
    return RangeBounds(Windows(model.parts, model.layers), model.layers, budget, 0.1)


@pytest.mark.slow
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


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 3), st.sampled_from([8.0, 20.0, 45.0, 200.0]))
def test_no_plan_that_spends_little_once_costs_less_besides(
    seed: int, kinds: int, budget: float
) -> None:
    model = Model.random(np.random.default_rng(seed), 3, kinds, has_once=True)
    bounds, in_flights = bounds_of(model, budget), (1, 3)
    runs = list(itertools.combinations_with_replacement(range(3), 2))

    def check(once_s: float) -> None:
        often = bounds.often(in_flights, once_s)
        for (first, last), (place, in_flight) in itertools.product(runs, enumerate(in_flights)):
            plans = tradeoffs(model, first, last, in_flight, budget)
            exact = min((t - o for t, o in plans if o <= once_s), default=np.inf)
            assert often[place, first, last] <= exact + 1e-9

    for once_s in (0.0, 5.0, 12.0, 30.0, 200.0):
        check(once_s)
        for first, last in runs:
            for _ in range(20):
                if not bounds.weigh_once(first, last, 3, once_s):
                    break
            else:
                raise AssertionError("weights do not come to an end")
        check(once_s)
        bounds.sharpen(0, 2, 3)
        check(once_s)


def test_weights_raise_the_bound_of_what_is_spent_per_micro_batch() -> None:
    """Of single layers without a budget to what the best mixture of two plans spends."""
    raised = 0
    for seed in range(20):
        model = Model.random(np.random.default_rng(seed), 1, 1, has_once=True)
        bounds = bounds_of(model, 1e9)
        plans = tradeoffs(model, 0, 0, 1, 1e9)
        once_s = (plans[0][1] + min(o for _, o in plans)) / 2
        before = float(bounds.often((1,), once_s)[0, 0, 0])
        while bounds.weigh_once(0, 0, 1, once_s):
            pass
        after = float(bounds.often((1,), once_s)[0, 0, 0])
        mixed = min(
            (1 - share) * (t - o) + share * (u - p)
            for (t, o), (u, p) in itertools.product(plans, repeat=2)
            for share in ([(once_s - o) / (p - o)] if p != o else [0.0])
            if 0 <= share <= 1 and (1 - share) * o + share * p <= once_s + 1e-9
        )
        assert after <= mixed + 1e-9
        # Weights are rounded.
        assert after >= 0.9 * mixed
        raised += after > before + 1e-9
    assert raised > 5


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31))
def test_one_and_two_layers_are_exact(seed: int) -> None:
    model = Model.random(np.random.default_rng(seed), 3, 3)
    found = tile(Windows(model.parts, model.layers).prices(Weights(), with_pairs=True))[0]
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
        budget = 0.6 * float(model.plans(0, 2)[1:3].sum(axis=0).max())
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
    windows.prices(Weights(), with_pairs=True)
    assert len(windows._solved) == 2
    # Within a run of layers, and at its end, where more is held.
    windows.prices(Weights(1.0, 1.0), with_pairs=True)
    assert len(windows._solved) == 6


# The search.


class Table:
    """Bounds and exact prices of a model whose stages share submeshes of a cluster."""

    def __init__(self, seed: int, budget: float, *, has_once: bool = False) -> None:
        """``has_once``: whether layers spend something once."""
        self.together = 1 + seed % 3
        rng = np.random.default_rng(seed)
        self.num_layers = 3
        self.submeshes = tuple(submeshes(ClusterSpec(preset_for("cpu"), 1, 4)))
        self.models = {
            one: Model.random(rng, self.num_layers, 2, has_once=has_once) for one in self.submeshes
        }
        self.bounds = {one: bounds_of(model, budget) for one, model in self.models.items()}
        received = rng.integers(0, 3, (self.num_layers, self.num_layers)).astype(float)
        self.received, self.budget = received, budget
        self.count = 4
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

    @property
    def work_s(self) -> float:
        """See `StagePricing.work_s`."""
        return 0.0

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
        found = tradeoffs(self.models[submesh], first, last, in_flight, self.budget)
        if not found:
            return None
        time_s, once_s = np.array(found[0]) / self.count
        return StagePrice(time_s, time_s, once_s)

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
            plans = []
            for number, (first, last, submesh) in enumerate(stages):
                in_flight = min(len(stages) - number, self.count)
                own = tradeoffs(self.models[submesh], first, last, in_flight, self.budget)
                received = self.received[first, last]
                plans.append([(t / self.count + received, o / self.count) for t, o in own])
            for chosen in itertools.product(*plans):
                slowest = max(t - o for t, o in chosen) + max(o for _, o in chosen)
                best = min(best, sum(t for t, _ in chosen) + (self.count - 1) * slowest)
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


class Undercutting(Table):
    """Stages are told to be too slow where they are."""

    too_slow = 0

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
        if found is None or effort is None or found.time_s < effort.most_s:
            return found
        self.too_slow += 1
        return StagePrice(np.inf, found.time_s)


@pytest.mark.parametrize("share", [0.7, 0.9, 1.2])
@pytest.mark.parametrize("seeds", [range(12), seldom(range(25))], ids=["", "more"])
def test_stages_that_take_longer_than_a_step_may_are_not_solved(share: float, seeds: range) -> None:
    too_slow = 0
    for seed, has_once in itertools.product(seeds, (False, True)):
        table: Any = Undercutting(seed, 25.0, has_once=has_once)
        best = table.exhaustive()
        if not np.isfinite(best):
            continue
        least_s, found = None, None
        try:
            limits = SearchLimits(gap=0.0, most_s=share * best)
            found = PipelineSearch(table, table, 4, table.count).run(limits)
        except SlowerError as error:
            least_s = error.least_s
        too_slow += table.too_slow
        if least_s is not None:
            assert share < 1
            assert share * best <= least_s <= best * (1 + 1e-9)
            continue
        # Not that nothing fits, which is not so.
        assert found is not None
        assert share > 1 or found.bracket.latency_s > share * best
        assert found.bracket.bound_s <= best * (1 + 1e-9)
        assert found.bracket.latency_s == pytest.approx(best, rel=found.bracket.gap + 1e-9)
    assert too_slow > 0 or share > 0.7


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


@pytest.mark.slow
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


@pytest.mark.parametrize("seed", one_in(2, range(40)))
@pytest.mark.parametrize("budget", [14.0, 45.0, 200.0])
def test_what_runs_once_is_not_shared_out(seed: int, budget: float) -> None:
    """Steps take what their stages are simulated to, and no pipeline of any plans takes less."""
    table: Any = Table(seed, budget, has_once=True)
    best = table.exhaustive()
    found = PipelineSearch(table, table, 4, table.count).run(SearchLimits(gap=0.0))
    if found is None:
        assert not np.isfinite(best)
        return
    assert found.bracket.bound_s <= best * (1 + 1e-9)
    often = max(one.time_s - one.once_s for one in found.stages)
    once = max(one.once_s for one in found.stages)
    expected = sum(one.time_s for one in found.stages) + (table.count - 1) * (often + once)
    assert found.bracket.latency_s == pytest.approx(expected)
    assert expected >= best * (1 - 1e-9)
    # No other cut of the stages that were priced takes less.
    for cut in itertools.islice(found.considered.cuts(), 20):
        assert cut[1] >= found.bracket.latency_s * (1 - 1e-9)


@pytest.mark.slow
def test_what_runs_once_is_told_apart_in_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the same pipelines are further from what is proved."""

    def gaps() -> list[float]:
        found = []
        for seed in range(20):
            table: Any = Table(seed, 200.0, has_once=True)
            result = PipelineSearch(table, table, 4, table.count).run(SearchLimits(gap=0.0))
            assert result is not None
            found.append(result.bracket.gap)
        return found

    apart = gaps()
    monkeypatch.setattr(OnceBounds, "bound_s", lambda self, least_s, best_s, enough_s: least_s)
    together = gaps()
    assert all(one <= other + 1e-9 for one, other in zip(apart, together, strict=True))
    assert sum(apart) < 0.7 * sum(together)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_what_windows_spend_once_is_part_of_what_they_spend(share: float) -> None:
    model = Model.random(np.random.default_rng(3), 5, 3, has_once=True)
    price = Weights(share, share)
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
