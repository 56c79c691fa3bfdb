"""What a search for stages knows of all stages: bounds, estimates, and prices of some."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from stablehlo_alpa.cost.strategy_graph import Float
from stablehlo_alpa.inter_op.stage_bounds import StageBounds
from stablehlo_alpa.inter_op.stage_choices import FIRST, StageChoice, StageChoices
from stablehlo_alpa.inter_op.stage_pricing import Stage, StagePrice
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.view import Say

# What a bound and a price may differ by before it is looked at as equal.
_RELATIVE = 1e-9


class KnownStages:
    """Runs of layers on submeshes, in seconds per micro-batch.

    Attributes:
        in_flight: numbers of micro-batches in flight that are told apart, ascending.
        solved: prices; None where a stage does not fit, infinite seconds where nothing that fits
            was found: that is no bound.
        loose: of these, which were not solved to the end, as another stage is slower.
    """

    def __init__(
        self, bounds: StageBounds, num_micro_batches: int, in_flight: Sequence[int], say: Say
    ) -> None:
        """Nothing is solved yet.

        Args:
            bounds: of all stages.
            num_micro_batches: B.
            in_flight: see above.
            say: is told what is being done.
        """
        self._bounds, self._count, self._say = bounds, num_micro_batches, say
        self.in_flight = tuple(in_flight)
        self.solved: dict[Stage, StagePrice | None] = {}
        self.loose: set[Stage] = set()
        self._received: dict[tuple[Submesh, int], Float] = {}
        self._seconds: dict[Submesh, Float] = {}

    def received(self, submesh: Submesh, source: int | None = None) -> Float:
        """float64[L, L] seconds in which each run of layers receives its input.

        Args:
            submesh: that receives.
            source: part of the cluster that the stage before is in; None for the same.
        """
        key = submesh, submesh.part if source is None else source
        if key not in self._received:
            self._received[key] = self._bounds.received_s(*key)
        return self._received[key]

    def received_by(self, stages: Sequence[StageChoice]) -> list[float]:
        """Seconds in which each stage of a pipeline receives its input from the one before.

        What begins the step is in its own part of the cluster.
        """
        found = []
        for number, one in enumerate(stages):
            assert isinstance(one.key, Submesh)
            source = stages[max(0, number - 1)].key
            assert isinstance(source, Submesh)
            found.append(float(self.received(one.key, source.part)[one.first, one.last]))
        return found

    def forget(self, submesh: Submesh) -> None:
        """To be told of a bound that was sharpened."""
        self._seconds.pop(submesh, None)

    def ranges(self, submesh: Submesh) -> Float:
        """float64[3, numbers in flight, L, L] as `RangeBounds.seconds`.

        Seconds per micro-batch; what holds for fewer in flight holds for more.
        """
        if submesh not in self._seconds:
            self._say(f"bounds on {submesh.mesh_shape}")
            ranges = self._bounds.of(submesh)
            every = [ranges.seconds(in_flight) for in_flight in self.in_flight]
            lower, expected, once = np.stack(every, axis=1) / self._count
            lower, expected = (np.maximum.accumulate(one) for one in (lower, expected))
            self._seconds[submesh] = np.stack([lower, expected, np.minimum(once, expected)])
        return self._seconds[submesh]

    def _known(self, submesh: Submesh) -> Iterator[tuple[int, int, int, StagePrice | None, bool]]:
        """Solved stages of a submesh: place of the number in flight, layers, price, is loose."""
        for stage, price in self.solved.items():
            first, last, other, in_flight = stage
            if other == submesh:
                place = self.in_flight.index(in_flight)
                yield place, first, last, price, stage in self.loose

    def _ratio(self, submesh: Submesh) -> float:
        """What solved stages cost over what was expected, of this submesh where there are any."""
        own, others = [], []
        for one, seconds in self._seconds.items():
            found = [
                price.time_s / seconds[1, place, first, last]
                for place, first, last, price, is_loose in self._known(one)
                if price is not None and np.isfinite(price.time_s) and not is_loose
            ]
            others += found
            own += found if one == submesh else []
        return float(np.median(own or others or [1.0]))

    def _times(self, submesh: Submesh, is_estimate: bool, is_solved: bool) -> Float:
        """float64[2, numbers in flight, L, L] bounds or estimates, without what is received.

        Of estimates the second are what of that is spent once per step; what a bound is made of is
        not known, and to share out what there is between the micro-batches bounds the latency.
        """
        lower, expected, once = self.ranges(submesh)
        ratio = self._ratio(submesh) if is_estimate else 1.0
        times = expected * ratio if is_estimate else lower.copy()
        once = once * ratio if is_estimate else np.zeros_like(lower)
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
                once[times[:, first, last] >= price.time_s, first, last] = price.once_s
        return np.stack([times, np.minimum(once, times)])

    def _times_within(self, submesh: Submesh, once_s: float) -> Float:
        """float64[2, numbers in flight, L, L] bounds where so much at most is spent once.

        The second are what of the first need not be spent per micro-batch.
        """
        lower, _ = self._times(submesh, is_estimate=False, is_solved=False)
        ranges = self._bounds.of(submesh)
        often = ranges.often(self.in_flight, once_s * self._count) / self._count
        often = np.maximum.accumulate(np.maximum(often, lower - once_s))
        times = np.maximum(lower, often)
        # What is hardly more than nothing is rounding.
        often[often < _RELATIVE * times] = 0.0
        more = np.subtract(times, often, out=np.zeros_like(times), where=np.isfinite(times))
        return np.stack([times, more])

    def bounds_within(self, once_s: float) -> StageChoices:
        """Of all runs of layers and submeshes, where so much at most is spent once.

        Args:
            once_s: seconds of a step, shared out over its micro-batches.
        """
        times_of = {one: self._times_within(one, once_s) for one in self._bounds.submeshes}
        return self._choices_of(times_of)

    def choices(
        self, *, is_estimate: bool, is_solved: bool = False, received_share: float = 1.0
    ) -> StageChoices:
        """Of all runs of layers and submeshes, with bounds or with estimates.

        So much of what they receive is counted with them.
        """
        times_of = {one: self._times(one, is_estimate, is_solved) for one in self._bounds.submeshes}
        self._say("choosing stages")
        return self._choices_of(times_of, received_share)

    def _choices_of(
        self, times_of: Mapping[Submesh, Float], received_share: float = 1.0
    ) -> StageChoices:
        """Of seconds per micro-batch, and what of that is spent once per step; see `_choices`."""
        sizes: dict[tuple[int, int, int], list[Submesh]] = {}
        for submesh in self._bounds.submeshes:
            size = submesh.part, submesh.hosts, submesh.devices_per_host
            sizes.setdefault(size, []).append(submesh)
        found = []
        for group in sizes.values():
            for source in range(self._bounds.num_parts):
                times = np.stack([times_of[one] for one in group])
                received = np.stack([self.received(one, source) for one in group])
                times[:, 0] += received_share * received[:, None]
                own = _choices(group, times, self.in_flight)
                found.append(own if self._bounds.num_parts == 1 else _behind(own, group[0], source))
        return StageChoices.joined(found)


def _choices(group: list[Submesh], times: Float, in_flights: Sequence[int]) -> StageChoices:
    """Of submeshes of one size, without what another, or more in flight, makes as good.

    Args:
        group: the submeshes.
        times: float64[submeshes, 2, numbers in flight, L, L] seconds per micro-batch, and what of
            that is spent once per step.
        in_flights: numbers of micro-batches in flight, ascending.
    """
    first, last = np.triu_indices(times.shape[-1])
    total, once = np.moveaxis(times[..., first, last], 1, 0)
    is_kept = np.isfinite(total)
    once = np.where(is_kept, once, 0.0)
    prices = np.stack([total, once, total - once])
    close = prices[0, :, :-1] * (1 + _RELATIVE)
    is_better = (prices[1:, :, 1:] <= prices[1:, :, :-1]).all(axis=0)
    is_kept[:, :-1] &= ~((prices[0, :, 1:] <= close) & is_better)
    for one, other in itertools.permutations(range(len(group)), 2):
        is_as_good = (prices[:, other] <= prices[:, one]).all(axis=0)
        is_equal = (prices[:, other] == prices[:, one]).all(axis=0)
        # Of equal ones the first.
        is_kept[one] &= ~(is_as_good & (~is_equal | (other < one)))
    which, place, run = np.nonzero(is_kept)
    return StageChoices(
        first[run],
        last[run],
        np.full(len(run), group[0].num_devices),
        np.array(in_flights)[place],
        total[is_kept],
        once[is_kept],
        tuple(group),
        which,
    )


def _behind(choices: StageChoices, submesh: Submesh, source: int) -> StageChoices:
    """Choices of a part behind a stage of another; what begins the step is behind none."""
    begins = choices.firsts == 0
    sources = np.where(begins, FIRST, source)
    sides = np.stack([np.full_like(sources, submesh.part), sources])
    return replace(choices, sides=sides).take(~begins | (source == submesh.part))
