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
estimates is solved, the stages that the bound is made of are looked at. Where there are several
processors, the next slowest open stages of the same pipeline are solved beside the slowest.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from stablehlo_alpa.errors import SlowerError
from stablehlo_alpa.inter_op.known_stages import KnownStages
from stablehlo_alpa.inter_op.next_cuts import ConsideredStages
from stablehlo_alpa.inter_op.once_bounds import OnceBounds
from stablehlo_alpa.inter_op.stage_bounds import StageBounds
from stablehlo_alpa.inter_op.stage_choices import StageChoice
from stablehlo_alpa.inter_op.stage_pricing import Effort, Stage, StagePrice
from stablehlo_alpa.inter_op.stage_search import StageSearchResult, latency, search_stages
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.inter_op.threads import in_threads
from stablehlo_alpa.planning.bracket import Bracket
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

# Seconds of work for a stage besides solving it: to cut it out, for its strategies, for bounds, and
# to choose stages again (heuristic).
_STAGE_S = 0.5
# Pipelines are looked for that wait for such shares of what stages are charged for receiving, and
# solved, up to so many stages, where they seem to be faster by this part (heuristics).
_RECEIVED_SHARES, _WORTH_SOLVING, _MAX_SETTLING = (0.5, 0.0), 2e-3, 16
# Seconds that are to be undercut are told apart so often in a doubling (heuristic).
_GRAIN = 4


class StepSeconds(Protocol):
    """Seconds of a step."""

    def __call__(self, stages: Sequence[StageChoice]) -> float:
        """See `TransferWaits`."""


class Pricing(Protocol):
    """Solves a stage exactly."""

    @property
    def work_s(self) -> float:
        """See `StagePricing.work_s`."""

    def prepare(self, ranges: Sequence[tuple[int, int]]) -> None:
        """See `StagePricing.prepare`."""

    def at_once(self, stages: Sequence[Stage]) -> list[Stage]:
        """See `StagePricing.at_once`."""

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
        patience_s: seconds of work that are spent on a better pipeline, once there is one, for
            every ``gap`` that it may be off: counted, so that a busy machine finds the same.
        most_s: seconds of a step that must be undercut.
    """

    gap: float = 0.01
    max_solved: int = 128
    patience_s: float = 10.0
    most_s: float = np.inf


@dataclass(frozen=True)
class FoundStages:
    """The best pipeline found.

    Attributes:
        stages: in order; the key of each is its `Submesh`.
        in_flight: of each the micro-batches whose activations it keeps.
        received_s: in which each receives its input, per micro-batch.
        bracket: its latency, and what was proved.
        considered: what it was chosen from.
    """

    stages: tuple[StageChoice, ...]
    in_flight: tuple[int, ...]
    received_s: tuple[float, ...]
    bracket: Bracket
    considered: ConsideredStages


class _Patience:
    """Says when to look on is no longer worth it."""

    def __init__(self, limits: SearchLimits, pricing: Pricing, known: KnownStages) -> None:
        self._limits, self._pricing, self._known = limits, pricing, known
        self._begin: float | None = None
        self._end = np.inf

    def is_over(self, gap: float) -> bool:
        """To be asked for each pipeline; what is done counts from the first one on."""
        spent_s, limits = self._spent_s(), self._limits
        if gap <= limits.gap:
            return True
        worth_s = limits.patience_s * gap / limits.gap if limits.gap else np.inf
        self._begin = spent_s if self._begin is None else self._begin
        self._end = self._begin + worth_s
        return spent_s > self._end

    def _spent_s(self) -> float:
        """Seconds of work so far."""
        return self._pricing.work_s + _STAGE_S * len(self._known.solved)

    def left_s(self) -> float:
        """Seconds of work, rounded so that many stages are solved under the same limit."""
        left_s = self._end - self._spent_s()
        return 2.0 ** math.floor(math.log2(left_s)) if 0 < left_s < np.inf else max(0.0, left_s)


class PipelineSearch:
    """Searches the stages of one step on one cluster."""

    def __init__(
        self,
        bounds: StageBounds,
        pricing: Pricing,
        num_devices: int | tuple[int, ...],
        num_micro_batches: int,
        *,
        keeps_all: bool = False,
        step_s: StepSeconds | None = None,
        say: Say = _log.debug,
    ) -> None:
        """Nothing is solved yet.

        Args:
            bounds: of all stages.
            pricing: solves stages.
            num_devices: see `search_stages`.
            num_micro_batches: B.
            keeps_all: see `search_stages`.
            step_s: knows more of what a pipeline takes than its stages say one by one.
            say: is told what is being done.
        """
        self._bounds, self._pricing, self._say, self._step_s = bounds, pricing, say, step_s
        self._devices, self._count, self._keeps_all = num_devices, num_micro_batches, keeps_all
        most = min(bounds.num_layers, num_micro_batches)
        in_flight = (num_micro_batches,) if keeps_all else range(1, most + 1)
        self._known = KnownStages(bounds, num_micro_batches, in_flight, say)
        self._once = OnceBounds(
            num_micro_batches,
            lambda once_s: self._search(is_estimate=False, once_s=once_s),
            self._weigh_once,
        )

    def run(self, limits: SearchLimits = SearchLimits()) -> FoundStages | None:
        """The best pipeline; None where none was found that fits the memory.

        Raises:
            SlowerError: none takes less than asked for.
        """
        self._check_bound(limits.most_s)
        patience = _Patience(limits, self._pricing, self._known)
        while True:
            found = self._search(is_estimate=True)
            if found is None:
                # Stages that were not solved to the end bound the step all the same.
                self._check_bound(limits.most_s)
                return None
            open_ = self._open(found)
            if self._sharpen(open_, with_pairs=False):
                continue
            best = self._search(is_estimate=True, is_solved=True) if self._known.solved else None
            is_over = len(self._known.solved) >= limits.max_solved
            if best is not None:
                bracket, of_bound = self._bracket(best, limits.gap, limits.most_s)
                # What is estimated to be better, what bounds it, what could be better itself.
                is_better = found.latency_s < best.latency_s * (1 - limits.gap)
                looked_at = (
                    (found, open_ or (self._loose_of(found) if is_better else [])),
                    (of_bound, self._open(of_bound)),
                    (best, self._loose_of(best)),
                )
                found, open_ = next((one for one in looked_at if one[1]), (best, []))
                if is_over or not open_ or patience.is_over(bracket.gap):
                    best = self._settled(best, limits)
                    in_flight = tuple(one[-1] for one in self._stages(best))
                    considered = ConsideredStages(
                        self._known.choices(is_estimate=True),
                        self._bounds.num_layers,
                        self._devices,
                        self._count,
                        self._keeps_all,
                    )
                    received_s = tuple(self._known.received_by(best.stages))
                    return FoundStages(best.stages, in_flight, received_s, bracket, considered)
            elif is_over:
                _log.warning("%d stages are solved, the search ends", len(self._known.solved))
                return None
            most_s = limits.most_s if best is None else min(limits.most_s, best.latency_s)
            self._solve(found, open_, limits.gap, patience.left_s(), most_s)

    def _settled(self, best: StageSearchResult, limits: SearchLimits) -> StageSearchResult:
        """The fastest of pipelines that are best if less of what stages receive is waited for.

        Those are not found by what is charged to each stage alone. It takes no longer than the one
        that is, whose latency the bracket has.
        """
        if self._step_s is None:
            return best
        least_s = _placed_s(best, 1.0, self._known, self._step_s)
        most = min(limits.max_solved, len(self._known.solved) + _MAX_SETTLING)
        for share in _RECEIVED_SHARES:
            while len(self._known.solved) < most:
                found = self._search(is_estimate=True, received_share=share)
                assert found is not None
                found_s = _placed_s(found, share, self._known, self._step_s)
                if found_s >= (1 - _WORTH_SOLVING) * least_s:
                    break
                open_ = self._open(found)
                if not open_:
                    _log.info("%.6g s for %.6g s: %s", found_s, least_s, self._stages(found))
                    best, least_s = found, found_s
                    break
                self._solve(found, open_, limits.gap, limits.patience_s, least_s)
        return best

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
        stages = tuple(one for one, _ in pipeline)
        for one, bound_s in pipeline:
            assert isinstance(one.key, Submesh)
            price = StagePrice(one.time_s, bound_s, one.once_s)
            self._known.solved[one.first, one.last, one.key, one.most_in_flight] = price
        moved = [
            replace(one, time_s=one.time_s + received_s)
            for one, received_s in zip(stages, self._known.received_by(stages), strict=True)
        ]
        latency_s = latency(moved, self._count)
        whole = StageSearchResult(stages, latency_s, 0)
        patience = _Patience(limits, self._pricing, self._known)
        while True:
            found, of_bound = self._bracket(whole, limits.gap)
            open_ = self._open(of_bound)
            is_over = len(self._known.solved) - len(pipeline) >= limits.max_solved
            if not open_ or is_over or patience.is_over(found.gap):
                return found
            self._solve(of_bound, open_, limits.gap, patience.left_s(), latency_s)

    def _check_bound(self, most_s: float) -> None:
        """Sharpens the bound of all pipelines as long as it is below what is to be undercut.

        Pairs, which take longest, are solved where the price of memory alone does not do.

        Raises:
            SlowerError: it is not.
        """
        while np.isfinite(most_s):
            bound = self._search(is_estimate=False)
            if bound is None:
                return
            _check_undercuts(bound, most_s, self._count)
            stages = self._stages(bound)
            if not self._sharpen(stages, with_pairs=False) and not self._sharpen(stages):
                return

    def _open(self, found: StageSearchResult) -> list[Stage]:
        """The stages of a pipeline that are not solved."""
        return [one for one in self._stages(found) if one not in self._known.solved]

    def _loose_of(self, found: StageSearchResult) -> list[Stage]:
        """The stages of a pipeline that were not solved to the end."""
        return [one for one in self._stages(found) if one in self._known.loose]

    def _bracket(
        self, best: StageSearchResult, gap: float, most_s: float = np.inf
    ) -> tuple[Bracket, StageSearchResult]:
        """What is proved of a pipeline, and what bounds it, sharpened until the gap is small.

        Raises:
            SlowerError: the bound is not below what is to be undercut.
        """
        while True:
            bound = self._search(is_estimate=False)
            assert bound is not None
            _check_undercuts(bound, most_s, self._count)
            bound_s = min(bound.latency_s, best.latency_s)
            bracket = Bracket(best.latency_s, bound_s, len(self._known.solved))
            self._say(f"stages within {bracket.gap:.1%} of the best possible")
            _log.info("bound %.6g s: %s", bound_s, self._stages(bound))
            open_ = self._open(bound)
            small = [one for one in open_ if not _is_large(one, self._bounds.num_layers)]
            if bracket.gap > gap and self._shares_once(bound, gap):
                enough_s = (1 - gap) * best.latency_s
                bound_s = self._once.bound_s(bound_s, best.latency_s, enough_s)
                bracket = replace(bracket, bound_s=bound_s)
                _log.info("bound %.6g s, what is spent once told apart", bound_s)
            if bracket.gap <= gap or not (
                self._sharpen(open_, with_pairs=False) or self._sharpen(small)
            ):
                return bracket, bound

    def _shares_once(self, bound: StageSearchResult, gap: float) -> bool:
        """Whether a pipeline that bounds all is so fast for sharing out what is spent once.

        That is more than half of a gap of its latency, as windows' plans spend it.
        """
        apart = []
        for stage, choice in zip(self._stages(bound), bound.stages, strict=True):
            first, last, submesh, in_flight = stage
            place = self._known.in_flight.index(in_flight)
            once_s = float(self._known.ranges(submesh)[2, place, first, last])
            apart.append(replace(choice, once_s=min(once_s, choice.time_s)))
        return latency(apart, self._count) > (1 + gap / 2) * bound.latency_s

    def _weigh_once(self, found: StageSearchResult, once_s: float) -> bool:
        """Makes bounds of stages better where so much at most is spent once; False where they were.

        Those of other stages on the same submeshes become better as well.
        """
        is_new = False
        for first, last, submesh, most in self._stages(found):
            in_flight, total_s = _power(most), once_s * self._count
            is_new |= self._bounds.of(submesh).weigh_once(first, last, in_flight, total_s)
        return is_new

    def _stages(self, found: StageSearchResult) -> list[Stage]:
        """The stages of a pipeline with what they have in flight."""
        stages = []
        for number, choice in enumerate(found.stages):
            assert isinstance(choice.key, Submesh)
            in_flight = len(found.stages) - number
            in_flight = self._count if self._keeps_all else min(in_flight, self._count)
            stages.append((choice.first, choice.last, choice.key, in_flight))
        return stages

    def _sharpen(self, stages: list[Stage], *, with_pairs: bool = True) -> bool:
        """Makes bounds of stages as good as they get; False where they were."""
        is_new = False
        for first, last, submesh, most in stages:
            in_flight = _power(most)
            self._say(f"bound of layers {first} to {last} on {submesh.mesh_shape}")
            if self._bounds.sharpen(submesh, first, last, in_flight, with_pairs=with_pairs):
                self._known.forget(submesh)
                is_new = True
        return is_new

    def _solve(
        self,
        found: StageSearchResult,
        open_: list[Stage],
        gap: float,
        limit_s: float,
        most_s: float,
    ) -> None:
        """Solves the slowest open stages of a pipeline, as far as that pipeline needs them.

        A step takes as long as all micro-batches take any of its stages: one in which that is more
        than what is to be undercut is not solved to the end.
        """
        stages = self._stages(found)
        times = {stage: one.time_s for stage, one in zip(stages, found.stages, strict=True)}
        self._pricing.prepare([one[:2] for one in stages])
        chosen = self._pricing.at_once(sorted(open_, key=times.__getitem__, reverse=True))
        efforts = []
        for first, last, submesh, in_flight in chosen:
            self._say(f"layers {first} to {last} on {submesh.mesh_shape}, {in_flight} in flight")
            stage = first, last, submesh, in_flight
            efforts.append(
                Effort(
                    0.0 if stage in self._known.loose else self._enough_s(found, stage, gap),
                    self._bounds.memory_price_s(submesh, first, last, _power(in_flight)),
                    limit_s,
                    _rounded_up(most_s) / self._count,
                )
            )
        prices = in_threads(
            lambda one: self._pricing.price(*one[0], one[1]), zip(chosen, efforts, strict=True)
        )
        for stage, effort, price in zip(chosen, efforts, prices, strict=True):
            _log.info("%s: %s", stage, price)
            self._known.solved[stage] = price
            self._known.loose.discard(stage)
            if price is not None and price.time_s <= effort.enough_s:
                self._known.loose.add(stage)

    def _enough_s(self, found: StageSearchResult, stage: Stage, gap: float) -> float:
        """Seconds at which a stage of a pipeline is good enough.

        It must not be slower than the slowest that is solved. All that are faster may be so much
        dearer than their bounds that this makes half of the gap.
        """
        first, last, submesh, in_flight = stage
        stages = self._stages(found)
        number = stages.index(stage)
        solved = [
            one.time_s
            for other, one in zip(stages, found.stages, strict=True)
            if other in self._known.solved
        ]
        slowest_s = max(solved, default=0.0) - self._known.received_by(found.stages)[number]
        slack = gap / 2 * (self._count + len(stages) - 1) / max(1, len(stages) - 1)
        lower_s = float(
            self._known.ranges(submesh)[0, self._known.in_flight.index(in_flight), first, last]
        )
        return min(slowest_s, (1 + slack) * lower_s)

    def _search(
        self,
        *,
        is_estimate: bool,
        is_solved: bool = False,
        once_s: float | None = None,
        received_share: float = 1.0,
    ) -> StageSearchResult | None:
        """The least of bounds or of estimates; of the latter, of solved stages alone.

        With ``once_s``, the least of bounds where so much at most is spent once; see `OnceBounds`.
        So much of what stages receive is counted.
        """
        if once_s is None:
            choices = self._known.choices(
                is_estimate=is_estimate, is_solved=is_solved, received_share=received_share
            )
        else:
            choices = self._known.bounds_within(once_s)
        return search_stages(
            choices,
            self._bounds.num_layers,
            self._devices,
            self._count,
            keeps_all=self._keeps_all,
            adds_once=once_s is None,
        )


def _placed_s(
    found: StageSearchResult, share: float, known: KnownStages, step_s: StepSeconds
) -> float:
    """Seconds of a step of stages that were charged with a share of what they receive."""
    received = known.received_by(found.stages)
    return step_s(
        [
            replace(one, time_s=one.time_s - share * received_s)
            for one, received_s in zip(found.stages, received, strict=True)
        ]
    )


def _check_undercuts(bound: StageSearchResult, most_s: float, count: int) -> None:
    """Raises ``SlowerError`` where what bounds all pipelines is not below what is asked for."""
    if bound.latency_s >= most_s:
        raise SlowerError(
            f"a step of {count} micro-batches takes {bound.latency_s:.4g} s at least, "
            f"{most_s:.4g} s was to be undercut",
            bound.latency_s,
        )


def _is_large(stage: Stage, num_layers: int) -> bool:
    """Whether few stages are as large, so that solving them bounds more than pairs do."""
    first, last, *_ = stage
    return 2 * (last - first + 1) >= num_layers


def _rounded_up(seconds: float) -> float:
    """Seconds that many stages are asked to undercut, to be found again in the store."""
    if not 0 < seconds < np.inf:
        return seconds
    return 2.0 ** (math.ceil(_GRAIN * math.log2(seconds)) / _GRAIN)


def _power(in_flight: int) -> int:
    """The largest power of two: bounds for fewer in flight hold for more, and few suffice."""
    return 1 << (in_flight.bit_length() - 1)
