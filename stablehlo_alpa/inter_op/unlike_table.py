r"""The dynamic programme over stages on a cluster of unlike parts.

Devices of each part are counted by themselves, and what a stage receives comes over the link of its
part or over the one between parts, by the part of the stage before. With k the next layer, d_p the
devices of part p that are left, a the part of the stage before, the least sum under a bound on the
slowest stage is (see `stage_search` for s, the stages that are left)::

    F(s, k, d, a) = min_{i, p, mesh of z devices of p}
                    { t(k..i, mesh, s, a) + F(s - 1, i + 1, d - z e_p, p) }

Any part may come first, and parts may alternate. All devices of all parts are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stablehlo_alpa.compiler.stage_sums import Float, Int, StageTable, unlike_stage_sums
from stablehlo_alpa.inter_op.stage_choices import FIRST, StageChoices


class UnlikeTable:
    """Choices on devices of several parts.

    Attributes:
        times, often: float64[C] seconds of choices, and those without what runs once.
    """

    def __init__(
        self, choices: StageChoices, num_layers: int, num_devices: tuple[int, ...]
    ) -> None:
        """Takes choices, the number of layers, and of devices of each part."""
        self.times, self.often = choices.time_s, choices.time_s - choices.once_s
        self._num_layers, self._num_devices = num_layers, num_devices
        self._firsts, self._nexts = choices.firsts, choices.lasts + 1
        self._sizes, self._limits = choices.devices, choices.most_in_flight
        sides = choices.sides
        if sides is None:
            sides = np.stack([np.zeros_like(self._firsts), np.full_like(self._firsts, FIRST)])
        self._parts = sides[0]
        self._fits = self._sizes <= np.array(num_devices)[self._parts]
        # Of stages that begin the step it does not matter: they are in the first place.
        self._sources = np.maximum(sides[1], 0)
        self._most = int(self._limits[self._limits < num_layers].max(initial=0))

    def solution(self, bound: float, most: float) -> list[int] | None:
        """Rows of the least sum under a bound; None where there is none of less than ``most``."""
        rows = np.flatnonzero((self.often <= bound) & self._fits)
        relaxed = self._sums(rows, -1)
        if not self._of_all(relaxed).min() < most:
            return None
        found = self._walk(relaxed, rows, -1)
        if all(len(found) - at <= self._limits[row] for at, row in enumerate(found)):
            return found
        full = self._sums(rows, self._most)
        if not np.isfinite(self._of_all(full)).any():
            return None
        return self._walk(full, rows, self._most)

    def _of_all(self, best: Float) -> Float:
        """float64[most + 2] sums of all layers on all devices."""
        found: Float = best[0, 0][_at(self._num_devices)]
        return found

    def _sums(self, rows: Int, most: int) -> Float:
        """float64[L + 1, parts, most + 2, D_0 + 1, D_1 + 1, ...] least sums with s stages.

        Of stages from a layer on, behind a stage of a part. The last number of stages stands for
        all above ``most``, which only choices without a limit are part of; with ``most = -1`` for
        all.
        """
        rows = rows[np.argsort(-self._firsts[rows], kind="stable")]
        table = StageTable(
            self._firsts[rows],
            self._nexts[rows] - 1,
            self._sizes[rows],
            self._limits[rows],
            self.times[rows],
            self._num_layers,
            sum(self._num_devices),
        )
        parts, sources = self._parts[rows], self._sources[rows]
        return unlike_stage_sums(table, parts, sources, self._num_devices, most)

    def _walk(self, best: Float, rows: Int, most: int) -> list[int]:
        """Rows of the least sum of all layers on all devices."""
        found: list[int] = []
        layer, source, left = 0, 0, list(self._num_devices)
        count = int(np.argmin(self._of_all(best)))
        while layer < self._num_layers:
            have = np.array(left)[self._parts[rows]]
            at = rows[
                (self._firsts[rows] == layer)
                & (self._sources[rows] == source)
                & (self._sizes[rows] <= have)
                & (self._limits[rows] >= count)
            ]
            after = [self._after(best, row, left) for row in at]
            total = self.times[at] + [one[count - 1] if count else math.inf for one in after]
            if count > most:
                more = self.times[at] + [one[count] for one in after]
                if more.min(initial=np.inf) < total.min(initial=np.inf):
                    total, count = more, count + 1
            row = int(at[np.argmin(total)])
            found.append(row)
            layer, source = int(self._nexts[row]), int(self._parts[row])
            left[source] -= int(self._sizes[row])
            count -= 1
        return found

    def _after(self, best: Float, row: int, left: list[int]) -> Float:
        """float64[most + 2] sums of what follows a choice."""
        part = int(self._parts[row])
        devices = [
            count - (int(self._sizes[row]) if number == part else 0)
            for number, count in enumerate(left)
        ]
        found: Float = best[int(self._nexts[row]), part][_at(devices)]
        return found


def _at(devices: Sequence[int]) -> tuple[Any, ...]:
    """The place of numbers of devices, whatever the number of stages."""
    return (slice(None), *devices)
