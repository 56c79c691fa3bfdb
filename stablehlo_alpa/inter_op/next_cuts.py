"""The next best partitions into stages, by what the search for the best one has found out.

Lawler's method: the best partition splits all others into those that begin as it does and differ
from it in their i-th stage; the best of each of these sets is a search of its own, the best of all
is the next best, and splits its set in turn.

References:
    Lawler, "A procedure for computing the K best solutions to discrete optimization problems",
    Management Science 18, 1972.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from stablehlo_alpa.cost.strategy_graph import Bool
from stablehlo_alpa.inter_op.stage_choices import StageChoice, StageChoices
from stablehlo_alpa.inter_op.stage_search import StageSearchResult, search_stages
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.planning.cut import Cut, parts_of

Run: TypeAlias = tuple[int, int, tuple[int, int, int]]
"""First and last layer; hosts, devices of each, and the part of the cluster that they are of."""


@dataclass(frozen=True, eq=False)
class ConsideredStages:
    """The stages that a search has priced or estimated, those alone that may be chosen.

    Attributes:
        choices: of runs of layers on submeshes, with their seconds: exact where a stage was solved.
            The key of each is its `Submesh`, of which the logical mesh is not told apart.
        num_layers, num_devices, num_micro_batches, keeps_all: see `search_stages`.
    """

    choices: StageChoices
    num_layers: int
    num_devices: int | tuple[int, ...]
    num_micro_batches: int
    keeps_all: bool

    def cuts(self) -> Iterator[tuple[Cut, float]]:
        """Cuts and their estimated latencies in seconds, the best first."""
        for found in self._results():
            runs = [_run(one) for one in found.stages]
            layers = tuple(last - first + 1 for first, last, _ in runs)
            submeshes = tuple((hosts, per_host) for _, _, (hosts, per_host, _) in runs)
            parts = parts_of([part for _, _, (_, _, part) in runs])
            yield Cut(layers, submeshes, (), is_given=True, parts=parts), found.latency_s

    def _results(self) -> Iterator[StageSearchResult]:
        ties = itertools.count()
        waiting: list[tuple[float, int, StageSearchResult, tuple[Run, ...], frozenset[Run]]] = []

        def add(prefix: tuple[Run, ...], forbidden: frozenset[Run]) -> None:
            found = self._best(prefix, forbidden)
            if found is not None:
                entry = (found.latency_s, next(ties), found, prefix, forbidden)
                heapq.heappush(waiting, entry)

        add((), frozenset())
        while waiting:
            _, _, found, prefix, forbidden = heapq.heappop(waiting)
            yield found
            runs = [_run(one) for one in found.stages]
            for at in range(len(prefix), len(runs)):
                own = forbidden if at == len(prefix) else frozenset()
                add(tuple(runs[:at]), own | {runs[at]})

    def _best(self, prefix: Sequence[Run], forbidden: frozenset[Run]) -> StageSearchResult | None:
        """The best partition that begins with some stages and not with others behind them."""
        start = prefix[-1][1] + 1 if prefix else 0
        is_open = self.choices.firsts >= start
        for run in forbidden:
            is_open &= ~self._is_of(run)
        for run in prefix:
            is_open |= self._is_of(run)
        if start == self.num_layers:
            return None
        return search_stages(
            self.choices.take(is_open),
            self.num_layers,
            self.num_devices,
            self.num_micro_batches,
            keeps_all=self.keeps_all,
        )

    def _is_of(self, run: Run) -> Bool:
        """bool[C] which choices are of a run."""
        first, last, size = run
        own = self.choices
        sizes = np.array([_size(one) == size for one in _submeshes(own)])
        return (own.firsts == first) & (own.lasts == last) & sizes[own.keys]


def _submeshes(choices: StageChoices) -> Iterator[Submesh]:
    for name in choices.names:
        assert isinstance(name, Submesh)
        yield name


def _run(choice: StageChoice) -> Run:
    assert isinstance(choice.key, Submesh)
    return choice.first, choice.last, _size(choice.key)


def _size(submesh: Submesh) -> tuple[int, int, int]:
    return submesh.hosts, submesh.devices_per_host, submesh.part
