"""The search for stages: lower bounds of all of them, exact prices of those that matter.

Every run of layers on every submesh has a lower bound for each number of micro-batches in flight
(`range_bounds`). The dynamic programme over stages (`stage_search`) takes bounds for times and
yields a bound on the latency of every pipeline. It also takes *estimates*, which are exact where a
stage was solved and elsewhere what windows' plans cost, scaled by what solved stages on the same
submesh cost over that. Of the stages that it chooses by estimates the slowest that is not solved
is, with its micro-batches in flight under the memory budget, and the programme runs again. The
slowest stage counts as often as there are micro-batches, so that of faster ones any plan will do
that is not slower, and not far from its bound.

The best pipeline of solved stages and the bound bracket the optimum. The search ends when they are
close, or when to look on takes more than the rest of the gap is worth. Where all that is chosen by
estimates is solved, the stages that the bound is made of are looked at.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from stablehlo_alpa.cost.strategy_graph import Float
from stablehlo_alpa.inter_op.next_cuts import ConsideredStages
from stablehlo_alpa.inter_op.stage_bounds import StageBounds
from stablehlo_alpa.inter_op.stage_pricing import Effort, StagePrice
from stablehlo_alpa.inter_op.stage_search import StageChoice, StageSearchResult, search_stages
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.planning.bracket import Bracket
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

# What a bound and a price may differ by before it is looked at as equal.
_RELATIVE = 1e-9


class Pricing(Protocol):
    """Solves a stage exactly."""

    def prepare(self, ranges: Sequence[tuple[int, int]]) -> None:
        """See `StagePricing.prepare`."""

    def price(
        self, first: int, last: int, submesh: Submesh, in_flight: int, effort: Effort
    ) -> StagePrice | None:
        """See `StagePricing.price`."""


@dataclass(frozen=True)
class SearchLimits:
    """When the search ends.

    Attributes:
        gap: relative distance of latency and bound that is good enough.
        max_solved: stages that are solved exactly.
        patience_s: seconds that are spent on a better pipeline, once there is one, for every
            ``gap`` that it may be off.
    """

    gap: float = 0.01
    max_solved: int = 128
    patience_s: float = 10.0


@dataclass(frozen=True)
class FoundStages:
    """The best pipeline found.

    Attributes:
        stages: in order; the key of each is its `Submesh`.
        in_flight: of each the micro-batches whose activations it keeps.
        bracket: its latency, and what was proved.
        considered: what it was chosen from.
    """

    stages: tuple[StageChoice, ...]
    in_flight: tuple[int, ...]
    bracket: Bracket
    considered: ConsideredStages


_Stage: TypeAlias = tuple[int, int, Submesh, int]
"""First and last layer, submesh, micro-batches in flight."""


class _Patience:
    """Says when to look on is no longer worth it."""

    def __init__(self, limits: SearchLimits) -> None:
        self._limits = limits
        self._begin: float | None = None
        self._end = np.inf

    def is_over(self, gap: float) -> bool:
        """To be asked for each pipeline; the clock runs from the first one on."""
        now, limits = time.monotonic(), self._limits
        if gap <= limits.gap:
            return True
        worth_s = limits.patience_s * gap / limits.gap if limits.gap else np.inf
        self._begin = now if self._begin is None else self._begin
        self._end = self._begin + worth_s
        return now > self._end

    def left_s(self) -> float:
        """Seconds."""
        return max(0.0, self._end - time.monotonic())


class PipelineSearch:
    """Searches the stages of one step on one cluster."""

    def __init__(
        self,
        bounds: StageBounds,
        pricing: Pricing,
        num_devices: int,
        num_micro_batches: int,
        *,
        keeps_all: bool = False,
        say: Say = _log.debug,
    ) -> None:
        """Nothing is solved yet.

        Args:
            bounds: of all stages.
            pricing: solves stages.
            num_devices: all of which are used.
            num_micro_batches: B.
            keeps_all: see `search_stages`.
            say: is told what is being done.
        """
        self._bounds, self._pricing, self._say = bounds, pricing, say
        self._devices, self._count, self._keeps_all = num_devices, num_micro_batches, keeps_all
        most = min(bounds.num_layers, num_micro_batches)
        self._in_flight = (num_micro_batches,) if keeps_all else tuple(range(1, most + 1))
        self._solved: dict[_Stage, StagePrice | None] = {}
        # Of these, which were not solved to the end, as another stage is slower.
        self._loose: set[_Stage] = set()
        self._seconds: dict[Submesh, Float] = {}
        self._received = {one: bounds.received_s(one) for one in bounds.submeshes}

    def run(self, limits: SearchLimits = SearchLimits()) -> FoundStages | None:
        """The best pipeline; None where none was found that fits the memory."""
        clock = _Patience(limits)
        while True:
            found = self._search(is_estimate=True)
            if found is None:
                return None
            open_ = self._open(found)
            if self._sharpen(open_):
                continue
            best = self._search(is_estimate=True, is_solved=True) if self._solved else None
            is_over = len(self._solved) >= limits.max_solved
            if best is not None:
                bracket, of_bound = self._bracket(best, limits.gap)
                loose = [one for one in self._stages(best) if one in self._loose]
                # What is estimated to be better, what bounds it, what could be better itself.
                looked_at = ((found, open_), (of_bound, self._open(of_bound)), (best, loose))
                found, open_ = next((one for one in looked_at if one[1]), (best, []))
                if is_over or not open_ or clock.is_over(bracket.gap):
                    in_flight = tuple(one[-1] for one in self._stages(best))
                    choices = self._all_choices(is_estimate=True)
                    considered = ConsideredStages(
                        tuple(choices),
                        self._bounds.num_layers,
                        self._devices,
                        self._count,
                        self._keeps_all,
                    )
                    return FoundStages(best.stages, in_flight, bracket, considered)
            elif is_over:
                _log.warning("%d stages are solved, the search ends", len(self._solved))
                return None
            self._solve(found, open_, limits.gap, clock.left_s())

    def bracket(
        self, pipeline: Sequence[tuple[StageChoice, float]], limits: SearchLimits
    ) -> Bracket:
        """What a pipeline takes, and what no other takes less than.

        Bounds are sharpened, and stages that the bound is made of are solved, until the gap is
        small or all that may be spent on it is.

        Args:
            pipeline: its stages, the key of each its `Submesh`, without what it receives, and the
                bound of each. Seconds per micro-batch.
            limits: of the gap and of stages to solve.
        """
        times = []
        for one, bound_s in pipeline:
            assert isinstance(one.key, Submesh)
            price = StagePrice(one.time_s, bound_s)
            self._solved[one.first, one.last, one.key, one.most_in_flight] = price
            times.append(one.time_s + float(self._received[one.key][one.first, one.last]))
        latency_s = sum(times) + (self._count - 1) * max(times)
        whole = StageSearchResult(tuple(one for one, _ in pipeline), latency_s, 0)
        clock = _Patience(limits)
        while True:
            found, of_bound = self._bracket(whole, limits.gap)
            open_ = self._open(of_bound)
            is_over = len(self._solved) - len(pipeline) >= limits.max_solved
            if not open_ or is_over or clock.is_over(found.gap):
                return found
            self._solve(of_bound, open_, limits.gap, clock.left_s())

    def _open(self, found: StageSearchResult) -> list[_Stage]:
        """The stages of a pipeline that are not solved."""
        return [one for one in self._stages(found) if one not in self._solved]

    def _bracket(self, best: StageSearchResult, gap: float) -> tuple[Bracket, StageSearchResult]:
        """What is proved of a pipeline, and what bounds it, sharpened until the gap is small."""
        while True:
            bound = self._search(is_estimate=False)
            assert bound is not None
            bound_s = min(bound.latency_s, best.latency_s)
            bracket = Bracket(best.latency_s, bound_s, len(self._solved))
            self._say(f"stages within {bracket.gap:.1%} of the best possible")
            _log.info("bound %.6g s: %s", bound_s, self._stages(bound))
            if bracket.gap <= gap or not self._sharpen(self._open(bound)):
                return bracket, bound

    def _stages(self, found: StageSearchResult) -> list[_Stage]:
        """The stages of a pipeline with what they have in flight."""
        stages = []
        for number, choice in enumerate(found.stages):
            assert isinstance(choice.key, Submesh)
            in_flight = len(found.stages) - number
            in_flight = self._count if self._keeps_all else min(in_flight, self._count)
            stages.append((choice.first, choice.last, choice.key, in_flight))
        return stages

    def _sharpen(self, stages: list[_Stage]) -> bool:
        """Makes bounds of stages as good as they get; False where they were."""
        is_new = False
        for first, last, submesh, most in stages:
            in_flight = _power(most)
            self._say(f"bound of layers {first} to {last} on {submesh.mesh_shape}")
            if self._bounds.sharpen(submesh, first, last, in_flight):
                self._seconds.pop(submesh, None)
                is_new = True
        return is_new

    def _solve(
        self, found: StageSearchResult, open_: list[_Stage], gap: float, limit_s: float
    ) -> None:
        """Solves the slowest open stage of a pipeline, as far as that pipeline needs it."""
        stages = self._stages(found)
        times = {stage: one.time_s for stage, one in zip(stages, found.stages, strict=True)}
        stage = max(open_, key=times.__getitem__)
        first, last, submesh, in_flight = stage
        self._say(f"layers {first} to {last} on {submesh.mesh_shape}, {in_flight} in flight")
        self._pricing.prepare([one[:2] for one in stages])
        effort = Effort(
            0.0 if stage in self._loose else self._enough_s(found, stage, gap),
            self._bounds.memory_price_s(submesh, first, last, _power(in_flight)),
            limit_s,
        )
        price = self._pricing.price(first, last, submesh, in_flight, effort)
        _log.info("%s: %s", stage, price)
        self._solved[stage] = price
        self._loose.discard(stage)
        if price is not None and price.time_s <= effort.enough_s:
            self._loose.add(stage)

    def _enough_s(self, found: StageSearchResult, stage: _Stage, gap: float) -> float:
        """Seconds at which a stage of a pipeline is good enough.

        It must not be slower than the slowest that is solved. All that are faster may be so much
        dearer than their bounds that this makes half of the gap.
        """
        first, last, submesh, in_flight = stage
        stages = self._stages(found)
        solved = [
            one.time_s
            for other, one in zip(stages, found.stages, strict=True)
            if other in self._solved
        ]
        slowest_s = max(solved, default=0.0) - float(self._received[submesh][first, last])
        slack = gap / 2 * (self._count + len(stages) - 1) / max(1, len(stages) - 1)
        lower_s = float(self._ranges(submesh)[0, self._in_flight.index(in_flight), first, last])
        return min(slowest_s, (1 + slack) * lower_s)

    def _ranges(self, submesh: Submesh) -> Float:
        """float64[2, numbers in flight, L, L] bounds, and what windows' plans cost there.

        Seconds per micro-batch; what holds for fewer in flight holds for more.
        """
        if submesh not in self._seconds:
            self._say(f"bounds on {submesh.mesh_shape}")
            ranges = self._bounds.of(submesh)
            both = [
                np.stack([of(in_flight) for in_flight in self._in_flight])
                for of in (ranges.lower, ranges.expected)
            ]
            self._seconds[submesh] = np.maximum.accumulate(np.stack(both), axis=1) / self._count
        return self._seconds[submesh]

    def _known(self, submesh: Submesh) -> Iterator[tuple[int, int, int, StagePrice | None, bool]]:
        """Solved stages of a submesh: place of the number in flight, layers, price, is loose."""
        for stage, price in self._solved.items():
            first, last, other, in_flight = stage
            if other == submesh:
                place = self._in_flight.index(in_flight)
                yield place, first, last, price, stage in self._loose

    def _ratio(self, submesh: Submesh) -> float:
        """What solved stages cost over what was expected, of this submesh where there are any."""
        own, others = [], []
        for one, seconds in self._seconds.items():
            found = [
                price.time_s / seconds[1, place, first, last]
                for place, first, last, price, is_loose in self._known(one)
                if price is not None and not is_loose
            ]
            others += found
            own += found if one == submesh else []
        return float(np.median(own or others or [1.0]))

    def _times(self, submesh: Submesh, is_estimate: bool, is_solved: bool) -> Float:
        """float64[numbers in flight, L, L] bounds or estimates, what is received included."""
        lower, expected = self._ranges(submesh)
        times = expected * self._ratio(submesh) if is_estimate else lower.copy()
        if is_solved:
            times[:] = np.inf
        for place, first, last, price, is_loose in self._known(submesh):
            more = times[place:, first, last]
            if price is None:
                more[:] = np.inf
            elif not is_estimate:
                np.maximum(more, price.bound_s, out=more)
            else:
                if not is_loose:
                    np.maximum(more, price.time_s, out=more)
                fewer = times[: place + 1, first, last]
                np.minimum(fewer, price.time_s, out=fewer)
        return times + self._received[submesh]

    def _search(self, *, is_estimate: bool, is_solved: bool = False) -> StageSearchResult | None:
        """The least of bounds or of estimates; of the latter, of solved stages alone."""
        return search_stages(
            self._all_choices(is_estimate, is_solved),
            self._bounds.num_layers,
            self._devices,
            self._count,
            keeps_all=self._keeps_all,
        )

    def _all_choices(self, is_estimate: bool, is_solved: bool = False) -> list[StageChoice]:
        """Of all runs of layers and submeshes, with bounds or with estimates."""
        sizes: dict[tuple[int, int], list[Submesh]] = {}
        times_of = {one: self._times(one, is_estimate, is_solved) for one in self._bounds.submeshes}
        self._say("choosing stages")
        for submesh in self._bounds.submeshes:
            sizes.setdefault((submesh.hosts, submesh.devices_per_host), []).append(submesh)
        choices: list[StageChoice] = []
        for group in sizes.values():
            times = np.stack([times_of[one] for one in group])
            choices += _choices(group, times, self._in_flight)
        return choices


def _choices(
    group: list[Submesh], times: Float, in_flights: Sequence[int]
) -> Iterator[StageChoice]:
    """The least of submeshes of one size; where fewer in flight cost as much, the most.

    Args:
        group: the submeshes.
        times: float64[submeshes, numbers in flight, L, L] seconds per micro-batch.
        in_flights: numbers of micro-batches in flight, ascending.
    """
    which, least = np.argmin(times, axis=0), np.min(times, axis=0)
    num_layers = least.shape[-1]
    for first in range(num_layers):
        for last in range(first, num_layers):
            for place, in_flight in enumerate(in_flights):
                time_s = float(least[place, first, last])
                is_last = place + 1 == len(in_flights)
                more_s = np.inf if is_last else float(least[place + 1, first, last])
                if np.isfinite(time_s) and more_s > time_s * (1 + _RELATIVE):
                    submesh = group[int(which[place, first, last])]
                    size = submesh.num_devices
                    yield StageChoice(first, last, size, time_s, in_flight, submesh)


def _power(in_flight: int) -> int:
    """The largest power of two: bounds for fewer in flight hold for more, and few suffice."""
    return 1 << (in_flight.bit_length() - 1)
