r"""The dynamic programme over stages: which layers run together, on how many devices.

Minimised is the latency of a step with B micro-batches over all partitions of the layers into
stages and all assignments of submeshes that use every device (paper, Eq. 2)::

    T = sum_s lat_s + (B - 1) max_s t_s

Eq. 3 for a bound t_max on the slowest stage, s stages from layer k on and d devices::

    F(s, k, d; t_max) = min_{i, mesh of z devices} { t(k..i, mesh, s) + F(s - 1, i + 1, d - z) }

with ``t <= t_max``, where a plan whose memory does not hold ``mem_stage + s mem_act`` (Eq. 5) costs
infinitely much: it may be at most ``s_max = floor((mem_device - mem_stage) / mem_act)`` stages away
from the end. Without s (``F(k, d)``) the programme is a lower bound, exact where its solution keeps
``s_max``; the full one runs only where it does not.

States are left out that cannot be part of a solution: stages of at most t_max seconds need at
least as many devices as their device-seconds divided by t_max.

Instead of trying all t_max, intervals of candidates are bisected: the least sum ``g(t_max)`` falls
with t_max, so an interval that begins at candidate a, and whose upper end has the sum g, holds
nothing better than ``(B - 1) a + g``. This is exact; the paper skips candidates closer than an
epsilon.

References:
    Zheng et al., "Alpa", OSDI 2022, section 5.1, Eq. 2-5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.compiler.stage_sums import Float, Int, StageTable, stage_sums

# Sums of device-seconds are compared with this slack (floating-point noise).
_RELATIVE = 1e-9


@dataclass(frozen=True)
class StageChoice:
    """One way to run a run of layers.

    Attributes:
        first, last: layers, both included.
        devices: how many the submesh has.
        time_s: seconds per micro-batch, the receive of its input included.
        most_in_flight: micro-batches whose activations fit beside the stage's own memory; 0 when
            not even one does.
        key: what the caller knows the choice by.
    """

    first: int
    last: int
    devices: int
    time_s: float
    most_in_flight: int
    key: object = None


@dataclass(frozen=True)
class StageSearchResult:
    """The best partition.

    Attributes:
        stages: the choices, in order of layers.
        latency_s: seconds of a step.
        num_passes: how often the dynamic programme ran.
    """

    stages: tuple[StageChoice, ...]
    latency_s: float
    num_passes: int


def search_stages(
    choices: Sequence[StageChoice],
    num_layers: int,
    num_devices: int,
    num_micro_batches: int,
    *,
    keeps_all: bool = False,
) -> StageSearchResult | None:
    """Finds the partition of least latency.

    Args:
        choices: of all runs of layers and submeshes, at least one per pair that may be used.
        num_layers: layers, all of which are covered once.
        num_devices: devices, all of which are used.
        num_micro_batches: B.
        keeps_all: whether every stage keeps the activations of all micro-batches (GPipe), instead
            of as many as there are stages from it to the end (1F1B).

    Returns:
        the best, or None when there is no partition.
    """
    table = _Table(choices, num_layers, num_devices, num_micro_batches, keeps_all)
    return _IntervalSearch(table, num_micro_batches).run()


class _Table:
    """Choices as arrays, by descending first layer, dominated ones left out."""

    def __init__(
        self,
        choices: Sequence[StageChoice],
        num_layers: int,
        num_devices: int,
        num_micro_batches: int,
        keeps_all: bool,
    ) -> None:
        self.num_layers, self.num_devices = num_layers, num_devices
        kept = []
        for choice in choices:
            most = choice.most_in_flight
            if most >= num_micro_batches:
                most = num_layers
            elif keeps_all:
                most = 0
            if most > 0 and choice.devices <= num_devices and np.isfinite(choice.time_s):
                kept.append((choice, min(most, num_layers)))
        kept = sorted(_undominated(kept), key=lambda entry: -entry[0].first)
        self.choices = [choice for choice, _ in kept]
        self.times = np.array([choice.time_s for choice in self.choices])
        self.lasts = np.array([choice.last for choice in self.choices], np.int64)
        self.firsts = np.array([choice.first for choice in self.choices], np.int64)
        self.sizes = np.array([choice.devices for choice in self.choices], np.int64)
        self.limits = np.array([limit for _, limit in kept], np.int64)
        self.after, self.before = self._device_seconds()
        limited = self.limits[self.limits < num_layers]
        self.most = int(limited.max(initial=0))

    def _device_seconds(self) -> tuple[Float, Float]:
        """float64[L + 1] least sums of seconds times devices from each layer on, and before it."""
        after = np.full(self.num_layers + 1, np.inf)
        before = np.full(self.num_layers + 1, np.inf)
        after[self.num_layers] = before[0] = 0.0
        cost = self.times * self.sizes
        for layer in range(self.num_layers - 1, -1, -1):
            rows = np.flatnonzero(self.firsts == layer)
            if rows.size:
                after[layer] = (cost[rows] + after[self.lasts[rows] + 1]).min()
        for layer in range(1, self.num_layers + 1):
            rows = np.flatnonzero(self.lasts == layer - 1)
            if rows.size:
                before[layer] = (cost[rows] + before[self.firsts[rows]]).min()
        return after, before

    def sums(self, bound: float, most: int) -> Float:
        """float64[L + 1, most + 2, D + 1] least sum with exactly s stages.

        The last entry stands for all numbers of stages above ``most``, which only choices without a
        limit are part of; with ``most = -1`` for all numbers.
        """
        lows, highs = self._bands(bound)
        table = StageTable(
            self.firsts,
            self.lasts,
            self.sizes,
            self.limits,
            self.times,
            self.num_layers,
            self.num_devices,
        )
        return stage_sums(table, most, bound, lows, highs)

    def _bands(self, bound: float) -> tuple[Int, Int]:
        """Per layer the numbers of devices from it on that can be part of a solution, end excluded.

        Stages of at most ``bound`` seconds need at least (device-seconds / bound) devices, both
        from the layer on and before it.
        """
        scale = (1 - _RELATIVE) / bound if bound > 0 else 0.0
        is_usable = np.isfinite(self.after + self.before)
        after, before = np.where(is_usable, [self.after, self.before], 0.0)
        lows = np.ceil(after * scale).astype(np.int64)
        highs = np.floor(self.num_devices - before * scale).astype(np.int64) + 1
        return lows, np.where(is_usable, highs, 0)

    def solution(self, bound: float, most: float) -> list[int] | None:
        """Rows of the least sum under a bound; None when there is none of less than ``most``."""
        relaxed = self.sums(bound, -1)[:, 0]
        if not relaxed[0, self.num_devices] < most:
            return None
        rows = self._walk_relaxed(relaxed, bound)
        if all(len(rows) - at <= self.limits[row] for at, row in enumerate(rows)):
            return rows
        full = self.sums(bound, self.most)
        if not np.isfinite(full[0, :, self.num_devices]).any():
            return None
        return self._walk_full(full, bound)

    def _walk_relaxed(self, best: Float, bound: float) -> list[int]:
        rows: list[int] = []
        layer, devices = 0, self.num_devices
        while layer < self.num_layers:
            at = np.flatnonzero(
                (self.firsts == layer) & (self.sizes <= devices) & (self.times <= bound)
            )
            total = best[self.lasts[at] + 1, devices - self.sizes[at]] + self.times[at]
            row = int(at[np.argmin(total)])
            rows.append(row)
            layer, devices = int(self.lasts[row]) + 1, devices - int(self.sizes[row])
        return rows

    def _walk_full(self, best: Float, bound: float) -> list[int]:
        rows: list[int] = []
        layer, devices, most = 0, self.num_devices, self.most
        count = int(np.argmin(best[0, :, devices]))
        while layer < self.num_layers:
            at = np.flatnonzero(
                (self.firsts == layer)
                & (self.sizes <= devices)
                & (self.times <= bound)
                & (self.limits >= count)
            )
            ends, left = self.lasts[at] + 1, devices - self.sizes[at]
            total = best[ends, count - 1, left] + self.times[at]
            if count > most:
                more = best[ends, count, left] + self.times[at]
                if more.min(initial=np.inf) < total.min(initial=np.inf):
                    total, count = more, count + 1
            row = int(at[np.argmin(total)])
            rows.append(row)
            layer, devices = int(self.lasts[row]) + 1, devices - int(self.sizes[row])
            count -= 1
        return rows


class _IntervalSearch:
    """Bisects the candidates for the slowest stage."""

    def __init__(self, table: _Table, num_micro_batches: int) -> None:
        self._table, self._weight = table, num_micro_batches - 1
        self._best: list[int] | None = None
        self._latency = np.inf
        self._passes = 0

    def run(self) -> StageSearchResult | None:
        table = self._table
        candidates = np.unique(table.times)
        if not candidates.size:
            return None
        whole = self._evaluate(float(candidates[-1]))
        if whole is None:
            return None
        # Candidates below the slowest stage found; the interval's upper end has this sum.
        total, slowest = whole
        end = int(np.searchsorted(candidates, slowest))
        intervals = [(0, end, total)] if self._weight else []
        while intervals:
            start, end, total = intervals.pop()
            if start >= end or self._weight * candidates[start] + total >= self._latency:
                continue
            # What cannot be better at the upper side is left out.
            limit = (self._latency - total) / self._weight
            end = min(end, int(np.searchsorted(candidates, limit)))
            if start >= end:
                continue
            middle = (start + end - 1) // 2
            # A sum from here on makes nothing better in the lower half.
            most = self._latency - self._weight * float(candidates[start])
            found = self._evaluate(float(candidates[middle]), most)
            upper = (middle + 1, end, total)
            if found is None:
                intervals.append(upper)
                continue
            below = int(np.searchsorted(candidates, found[1]))
            # From the slowest stage found up to the middle the sum is the same.
            intervals += [upper, (start, below, found[0])]
        assert self._best is not None
        return StageSearchResult(
            tuple(table.choices[row] for row in self._best), self._latency, self._passes
        )

    def _evaluate(self, bound: float, most: float = np.inf) -> tuple[float, float] | None:
        """Least sum under a bound, if below ``most``, and its slowest stage; keeps the best."""
        self._passes += 1
        rows = self._table.solution(bound, most)
        if rows is None:
            return None
        times = self._table.times[rows]
        total, slowest = float(times.sum()), float(times.max())
        latency = total + self._weight * slowest
        if latency < self._latency:
            self._latency, self._best = latency, rows
        return total, slowest


def _undominated(kept: list[tuple[StageChoice, int]]) -> list[tuple[StageChoice, int]]:
    """Per run of layers and number of devices the choices that no other beats in both."""
    groups: dict[tuple[int, int, int], list[tuple[StageChoice, int]]] = {}
    for choice, limit in kept:
        groups.setdefault((choice.first, choice.last, choice.devices), []).append((choice, limit))
    result = []
    for group in groups.values():
        most = 0
        for choice, limit in sorted(group, key=lambda entry: (entry[0].time_s, -entry[1])):
            if limit > most:
                result.append((choice, limit))
                most = limit
    return result
