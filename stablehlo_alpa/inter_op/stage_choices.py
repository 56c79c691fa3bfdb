"""What stages may be, one by one and as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stablehlo_alpa.compiler.stage_sums import Float, Int
from stablehlo_alpa.cost.strategy_graph import Bool

FIRST = -1
"""In place of the part of the stage before: there is none."""


@dataclass(frozen=True)
class StageChoice:
    """One way to run a run of layers.

    Attributes:
        first, last: layers, both included.
        devices: how many the submesh has.
        time_s: seconds per micro-batch: the receive of its input, and its share of what runs once
            per step, included.
        most_in_flight: micro-batches whose activations fit beside the stage's own memory; 0 when
            not even one does.
        key: what the caller knows the choice by.
        once_s: of ``time_s`` the share of what runs once per step.
        part: of an unlike cluster the part that the devices are of.
        source: there, the part of the stage before; -1 where it begins the step.
    """

    first: int
    last: int
    devices: int
    time_s: float
    most_in_flight: int
    key: object = None
    once_s: float = 0.0
    part: int = 0
    source: int = FIRST


@dataclass(frozen=True, eq=False)
class StageChoices:
    """C choices as arrays.

    Attributes:
        firsts, lasts, devices, most_in_flight: int64[C] as in `StageChoice`.
        time_s, once_s: float64[C] as in `StageChoice`.
        names: what choices are known by.
        keys: int64[C] place among the names.
        sides: int64[2, C] part and source as in `StageChoice`; None where there is one part.
    """

    firsts: Int
    lasts: Int
    devices: Int
    most_in_flight: Int
    time_s: Float
    once_s: Float
    names: tuple[object, ...]
    keys: Int
    sides: Int | None = None

    @classmethod
    def of(cls, choices: Sequence[StageChoice]) -> StageChoices:
        """Choices one by one."""
        return cls(
            np.array([one.first for one in choices], np.int64),
            np.array([one.last for one in choices], np.int64),
            np.array([one.devices for one in choices], np.int64),
            np.array([one.most_in_flight for one in choices], np.int64),
            np.array([one.time_s for one in choices], np.float64),
            np.array([one.once_s for one in choices], np.float64),
            tuple(one.key for one in choices),
            np.arange(len(choices)),
            _sides(choices),
        )

    @classmethod
    def joined(cls, groups: Sequence[StageChoices]) -> StageChoices:
        """All choices of some groups, one group or more, in order."""
        starts = np.cumsum([0, *(len(one.names) for one in groups[:-1])])
        keys = [one.keys + start for one, start in zip(groups, starts, strict=True)]
        sides = [one.sides for one in groups if one.sides is not None]
        return cls(
            np.concatenate([one.firsts for one in groups]),
            np.concatenate([one.lasts for one in groups]),
            np.concatenate([one.devices for one in groups]),
            np.concatenate([one.most_in_flight for one in groups]),
            np.concatenate([one.time_s for one in groups]),
            np.concatenate([one.once_s for one in groups]),
            tuple(name for one in groups for name in one.names),
            np.concatenate(keys),
            np.concatenate(sides, axis=1) if sides else None,
        )

    def __len__(self) -> int:
        return len(self.firsts)

    def __getitem__(self, row: int) -> StageChoice:
        return StageChoice(
            int(self.firsts[row]),
            int(self.lasts[row]),
            int(self.devices[row]),
            float(self.time_s[row]),
            int(self.most_in_flight[row]),
            self.names[int(self.keys[row])],
            float(self.once_s[row]),
            *(() if self.sides is None else map(int, self.sides[:, row])),
        )

    def take(self, rows: Int | Bool) -> StageChoices:
        """Some of the choices: their numbers in order, or which of all."""
        return StageChoices(
            self.firsts[rows],
            self.lasts[rows],
            self.devices[rows],
            self.most_in_flight[rows],
            self.time_s[rows],
            self.once_s[rows],
            self.names,
            self.keys[rows],
            None if self.sides is None else self.sides[:, rows],
        )

    def without_dominated(self) -> StageChoices:
        """Those that may be part of a best partition, by descending first layer.

        Of the choices of one run of layers and as many devices those are left out that another one
        beats in seconds, both with and without what runs once, in that, and in what may be in
        flight. Where nothing runs once they are all of these. Those of other parts, or behind
        other parts, are another matter.
        """
        if self.sides is None:
            return self._undominated()
        # Known by their place among all.
        rows = replace(self, keys=np.arange(len(self)), sides=None)
        kept = [
            rows.take((self.sides == pair[:, None]).all(axis=0))._undominated().keys
            for pair in np.unique(self.sides, axis=1).T
        ]
        found = np.concatenate([np.zeros(0, np.int64), *kept])
        return self.take(found[np.argsort(-self.firsts[found], kind="stable")])

    def _undominated(self) -> StageChoices:
        """Those that are not beaten, whatever their parts."""
        order = np.lexsort(
            (-self.most_in_flight, self.once_s, self.time_s, self.devices, self.lasts, -self.firsts)
        )
        own = self.take(order)
        if not len(own):
            return own
        keys = np.stack([own.firsts, own.lasts, own.devices])
        groups = np.cumsum(np.r_[0, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
        # Per choice the one with the most in flight of its group so far.
        count, rows = len(own), np.arange(len(own))
        rank = groups * (1 + own.most_in_flight.max()) + own.most_in_flight
        best = np.maximum.accumulate(rank * count + (count - 1 - rows))
        before = np.r_[0, count - 1 - best[:-1] % count]
        often = own.time_s - own.once_s
        is_beaten = (
            (groups[before] == groups)
            & (own.most_in_flight[before] >= own.most_in_flight)
            & (own.once_s[before] <= own.once_s)
            & (often[before] <= often)
        )
        is_beaten[0] = False
        return own.take(~is_beaten)


def _sides(choices: Sequence[StageChoice]) -> Int | None:
    """int64[2, C] of choices of several parts."""
    pairs = [(one.part, one.source) for one in choices]
    return np.array(pairs, np.int64).T if set(pairs) - {(0, FIRST)} else None
