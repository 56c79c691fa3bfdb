r"""The dynamic programme over stages: which layers run together, on how many devices.

Minimised is the latency of a step with B micro-batches over all partitions of the layers into
stages and all assignments of submeshes that use every device::

    T = sum_s t_s + (B - 1) (max_s f_s + max_s o_s),    t_s = f_s + o_s

A stage takes ``f`` seconds for a micro-batch, and ``B o`` seconds for what runs once per step: the
reduction of its gradients and the update of its parameters, which stand behind its last
micro-batch. Where the slowest stage has the dearest update as well this is Eq. 2 of the paper,
``sum t + (B - 1) max t``, and elsewhere it is more: there updates that are shared out over the
micro-batches seem to fill the bubbles of a stage that is otherwise fast, and do not.

Eq. 3 for a bound f_max on the slowest stage, s stages from layer k on and d devices::

    F(s, k, d; f_max) = min_{i, mesh of z devices} { t(k..i, mesh, s) + F(s - 1, i + 1, d - z) }

with ``f <= f_max``, where a plan whose memory does not hold ``mem_stage + s mem_act`` (Eq. 5) costs
infinitely much: it may be at most ``s_max = floor((mem_device - mem_stage) / mem_act)`` stages away
from the end. Without s (``F(k, d)``) the programme is a lower bound, exact where its solution keeps
``s_max``; the full one runs only where it does not.

States are left out that cannot be part of a solution: stages of at most f_max seconds need at
least as many devices as their device-seconds divided by f_max.

Instead of trying all f_max, intervals of candidates are bisected: the least sum ``g(f_max)`` falls
with f_max, so an interval that begins at candidate a, and whose upper end has the sum g, holds
nothing better than ``(B - 1) a + g``. This is exact; the paper skips candidates closer than an
epsilon. Bounds on o are bisected around it in the same way.

On a cluster of unlike parts the devices of each are counted by themselves (`unlike_table`).

References:
    Zheng et al., "Alpa", OSDI 2022, section 5.1, Eq. 2-5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from stablehlo_alpa.compiler.stage_sums import Float, Int, StageTable, stage_sums
from stablehlo_alpa.inter_op.stage_choices import StageChoice, StageChoices
from stablehlo_alpa.inter_op.unlike_table import UnlikeTable

# Sums of device-seconds are compared with this slack (floating-point noise).
_RELATIVE = 1e-9

_Found: TypeAlias = tuple[float, float, list[int]]
"""The least of what was asked for, the largest term of it, and the choices it is made of."""


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
    choices: StageChoices,
    num_layers: int,
    num_devices: int | tuple[int, ...],
    num_micro_batches: int,
    *,
    keeps_all: bool = False,
    adds_once: bool = True,
) -> StageSearchResult | None:
    """Finds the partition of least latency.

    Args:
        choices: of all runs of layers and submeshes, at least one per pair that may be used.
        num_layers: layers, all of which are covered once.
        num_devices: devices, all of which are used; of each part of an unlike cluster.
        num_micro_batches: B.
        keeps_all: whether every stage keeps the activations of all micro-batches (GPipe), instead
            of as many as there are stages from it to the end (1F1B).
        adds_once: whether what runs once is waited for behind the slowest stage; otherwise
            minimised is ``sum_s t_s + (B - 1) max_s f_s``.

    Returns:
        the best, or None when there is no partition.
    """
    most = choices.most_in_flight
    limits = np.where(most >= num_micro_batches, num_layers, 0 if keeps_all else most)
    limits = np.minimum(limits, num_layers)
    most_devices = num_devices if isinstance(num_devices, int) else max(num_devices)
    usable = np.flatnonzero(
        (limits > 0) & (choices.devices <= most_devices) & np.isfinite(choices.time_s)
    )
    # Known by their place among all.
    limited = replace(choices.take(usable), most_in_flight=limits[usable], keys=usable)
    search = _Search(limited.without_dominated(), num_layers, num_devices, num_micro_batches)
    found = search.run() if adds_once else search.run_often()
    if found is None:
        return None
    latency_s, rows = found
    return StageSearchResult(tuple(choices[row] for row in rows), latency_s, search.num_passes)


def latency(stages: Sequence[StageChoice], num_micro_batches: int) -> float:
    """Seconds of a step of some stages, one or more: T of the formula above."""
    often = max(one.time_s - one.once_s for one in stages)
    once = max(one.once_s for one in stages)
    return sum(one.time_s for one in stages) + (num_micro_batches - 1) * (often + once)


class _Search:
    """Bisects the candidates for what runs once, and for each those for the slowest stage."""

    def __init__(
        self,
        choices: StageChoices,
        num_layers: int,
        num_devices: int | tuple[int, ...],
        num_micro_batches: int,
    ) -> None:
        self._choices, self._weight = choices, num_micro_batches - 1
        self._num_layers, self._num_devices = num_layers, num_devices
        self.num_passes = 0

    def run(self) -> tuple[float, list[int]] | None:
        """The least latency, and the keys of its choices."""
        found = _bisect(np.unique(self._choices.once_s), self._weight, np.inf, self._below)
        return found and (found[0], found[2])

    def run_often(self) -> tuple[float, list[int]] | None:
        """The same without what runs once behind the slowest stage."""
        found = self._below(np.inf, np.inf)
        return found and (found[0], found[2])

    def _below(self, once_s: float, most: float) -> _Found | None:
        """The best of the stages that do not need more for what runs once."""
        own = self._choices
        if not (own.once_s <= once_s).all():
            own = own.take(own.once_s <= once_s).without_dominated()
        table = self._table(own)

        def solve(often_s: float, most: float) -> _Found | None:
            self.num_passes += 1
            rows = table.solution(often_s, most)
            if rows is None:
                return None
            return float(own.time_s[rows].sum()), float(table.often[rows].max()), rows

        found = _bisect(np.unique(table.often), self._weight, most, solve)
        if found is None:
            return None
        latency_s, _, rows = found
        return latency_s, float(own.once_s[rows].max()), own.keys[rows].tolist()

    def _table(self, choices: StageChoices) -> _Table | UnlikeTable:
        if isinstance(self._num_devices, int):
            return _Table(choices, self._num_layers, self._num_devices)
        return UnlikeTable(choices, self._num_layers, self._num_devices)


def _bisect(
    candidates: Float,
    weight: int,
    most: float,
    solve: Callable[[float, float], _Found | None],
) -> _Found | None:
    """The least of a value plus ``weight`` times its largest term.

    Args:
        candidates: float64[...] what the largest term may be, ascending.
        weight: of it.
        most: what must be undercut.
        solve: given a bound on the largest term, and what the value must undercut, finds the least
            value, which falls with the bound; None where there is none.

    Returns:
        the least, its largest term, and what it is made of; None where there is none below
        ``most``.
    """
    if not candidates.size:
        return None
    whole = solve(float(candidates[-1]), most - weight * float(candidates[0]))
    if whole is None:
        return None
    best: _Found | None = None
    # Parts of the candidates that are left; the upper end of each has a value.
    intervals: list[tuple[int, int, float]] = []

    def keep(found: _Found, start: int) -> None:
        nonlocal best, most
        value, largest, made_of = found
        if value + weight * largest < most:
            most = value + weight * largest
            best = most, largest, made_of
        # From the largest term found up to the bound asked for the value is the same.
        intervals.append((start, int(np.searchsorted(candidates, largest)), value))

    keep(whole, 0)
    while weight and intervals:
        start, end, value = intervals.pop()
        if start >= end or weight * candidates[start] + value >= most:
            continue
        # What cannot be better at the upper side is left out.
        end = min(end, int(np.searchsorted(candidates, (most - value) / weight)))
        if start >= end:
            continue
        middle = (start + end - 1) // 2
        # A value from here on makes nothing better in the lower half.
        found = solve(float(candidates[middle]), most - weight * float(candidates[start]))
        intervals.append((middle + 1, end, value))
        if found is not None:
            keep(found, start)
    return best


class _Table:
    """Choices, by descending first layer."""

    def __init__(self, choices: StageChoices, num_layers: int, num_devices: int) -> None:
        self.num_layers, self.num_devices = num_layers, num_devices
        self.times, self.often = choices.time_s, choices.time_s - choices.once_s
        self.firsts, self.lasts = choices.firsts, choices.lasts
        self.sizes, self.limits = choices.devices, choices.most_in_flight
        self.after, self.before = self._device_seconds()
        limited = self.limits[self.limits < num_layers]
        self.most = int(limited.max(initial=0))

    def _device_seconds(self) -> tuple[Float, Float]:
        """float64[L + 1] least sums of seconds times devices from each layer on, and before it."""
        after = np.full(self.num_layers + 1, np.inf)
        before = np.full(self.num_layers + 1, np.inf)
        after[self.num_layers] = before[0] = 0.0
        cost = self.often * self.sizes
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
        rows = np.flatnonzero(self.often <= bound)
        table = StageTable(
            self.firsts[rows],
            self.lasts[rows],
            self.sizes[rows],
            self.limits[rows],
            self.times[rows],
            self.num_layers,
            self.num_devices,
        )
        return stage_sums(table, most, np.inf, lows, highs)

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
                (self.firsts == layer) & (self.sizes <= devices) & (self.often <= bound)
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
                & (self.often <= bound)
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
