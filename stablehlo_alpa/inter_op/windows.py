"""Least prices of single layers and of neighbouring pairs on a mesh, under weights."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from stablehlo_alpa.cost.strategy_graph import Float
from stablehlo_alpa.inter_op.layer_costs import Layer, LayerCosts, join, joined_content
from stablehlo_alpa.inter_op.layer_parts import LayerParts
from stablehlo_alpa.inter_op.threads import in_threads
from stablehlo_alpa.intra_op.exact import Minimum, minimize
from stablehlo_alpa.store import OFF, Record, Store

Key: TypeAlias = tuple[object, ...]

# How far a window is solved (heuristics): passes that raise its bound, and entries of the largest
# table of the elimination behind them and of all. Counted, not timed: a search on a busy machine
# finds the same plan.
_MAX_SWEEPS = 60
_MAX_TABLE = 500_000
_MAX_WORK = 20_000_000


@dataclass(frozen=True)
class Weights:
    """What bytes and seconds count.

    Attributes:
        rest_s: seconds per step that a byte per device costs which is there once.
        activation_s: that one costs which a micro-batch in flight keeps.
        once: what a second counts that is spent once per step, not per micro-batch.
    """

    rest_s: float = 0.0
    activation_s: float = 0.0
    once: float = 1.0

    def least_excess_s(self, budget: float, in_flight: int) -> float:
        """What bytes within a budget cost at most.

        With ``rest + in_flight * activation <= budget`` the price of memory is at most
        ``max(rest_s, activation_s / in_flight) * budget``.
        """
        rate = max(self.rest_s, self.activation_s / in_flight)
        return rate * budget if rate > 0 else 0.0


@dataclass(frozen=True, eq=False)
class WindowPrices:
    """Windows under some weights, by first layer.

    Where pairs are not solved they are what their halves cost: that is a bound too, and close where
    layers are large.

    Attributes:
        singles: float64[5, L] of single layers: no choice costs less (seconds per step as they
            count, memory at its price included); of a choice that costs so: its seconds,
            `StageMemory.rest` and `StageMemory.activation` bytes, and of its seconds what is spent
            once per step.
        pairs: float64[5, L - 1] the same of neighbours together.
        last_singles, last_pairs: the same of windows that end a run of layers: what is transient
            there is paid for, and counted among what is at rest.
    """

    singles: Float
    pairs: Float
    last_singles: Float
    last_pairs: Float


class Windows:
    """Solves single layers, and pairs where they are asked for; equal ones once."""

    def __init__(self, parts: LayerParts, layers: Sequence[Layer], store: Store = OFF) -> None:
        """Takes the layers, what each costs on the mesh, and what keeps what is solved."""
        self._parts, self._layers, self._store = parts, layers, store
        self._joined: dict[Key, _Window] = {}
        # Columns of `WindowPrices`, of windows before others and of those that end a run.
        self._solved: dict[Key, Float] = {}

    def prices(self, weights: Weights, *, with_pairs: bool) -> WindowPrices:
        """All windows under weights."""
        self._minimize(weights, with_pairs)
        inner, last = (self._windows(weights, is_last, with_pairs) for is_last in (False, True))
        return WindowPrices(*inner, *last)

    def _windows(self, weights: Weights, is_last: bool, with_pairs: bool) -> tuple[Float, Float]:
        """Single layers and pairs."""
        numbers = range(len(self._layers))
        singles = np.stack([self._single(one, weights, is_last) for one in numbers], axis=1)
        before = np.stack([self._single(one, weights, False) for one in numbers], axis=1)
        halves = before[:, :-1] + singles[:, 1:]
        if not with_pairs or not halves.size:
            return singles, halves
        pairs = np.stack([self._pair(one, weights, is_last) for one in numbers[:-1]], axis=1)
        # A pair costs no less than its halves alone, whatever of its search was cut short.
        pairs[0] = np.maximum(pairs[0], halves[0])
        return singles, pairs

    def _single(self, number: int, weights: Weights, is_last: bool) -> Float:
        is_last = is_last or number == len(self._layers) - 1
        return self._column(self._single_key(number), weights, is_last)

    def _pair(self, number: int, weights: Weights, is_last: bool) -> Float:
        is_last = is_last or number == len(self._layers) - 2
        return self._column(self._pair_key(number), weights, is_last)

    def _single_key(self, number: int) -> Key:
        return (self._parts.parts[number].kind,)

    def _pair_key(self, number: int) -> Key:
        parts = self._parts.parts
        return parts[number].kind, parts[number + 1].kind, self._parts.crossings[number]

    def _one(self, number: int) -> _Window:
        layer = self._layers[number]
        return _Window(layer.content, lambda: layer.whole)

    def _join(self, number: int) -> _Window:
        key = self._pair_key(number)
        if key not in self._joined:
            one, two = self._layers[number : number + 2]
            crossings = self._parts.crossings[number]
            made = functools.cache(lambda: join(one.whole, two.whole, crossings))
            content = joined_content(one.content, two.content, crossings)
            self._joined[key] = _Window(content, made)
        return self._joined[key]

    def _minimize(self, weights: Weights, with_pairs: bool) -> None:
        """Solves what is not known under weights, all processors taking part."""
        count = len(self._layers)
        windows = {self._single_key(number): self._one(number) for number in range(count)}
        if with_pairs:
            windows |= {self._pair_key(number): self._join(number) for number in range(count - 1)}
        # With the last layer of all every run of layers ends.
        inner = {self._single_key(number) for number in range(count - 1)}
        inner |= {self._pair_key(number) for number in range(count - 2)} if with_pairs else set()
        todo = {}
        for key, window in windows.items():
            for is_last in (False, True) if key in inner else (True,):
                solved = _solved_key(key, weights, is_last)
                if solved not in self._solved:
                    todo[solved] = window, is_last

        def solve(one: tuple[_Window, bool]) -> Float:
            window, is_last = one
            content = (window.content, weights, is_last and weights.rest_s > 0)

            def made() -> Record:
                return {"columns": _columns(window.whole(), weights, is_last)}

            is_kept = bool(window.content)
            record = self._store.remember("window", content, made) if is_kept else made()
            columns: Float = record["columns"]
            return columns

        self._solved.update(zip(todo, in_threads(solve, todo.values()), strict=True))

    def _column(self, key: Key, weights: Weights, is_last: bool) -> Float:
        """float64[5] as a column of `WindowPrices`."""
        columns: Float = self._solved[_solved_key(key, weights, is_last)][int(is_last)]
        return columns


@dataclass(frozen=True, eq=False)
class _Window:
    """A layer or a pair of them.

    Attributes:
        content: what it was made of, for the store.
        whole: makes it, or has made it.
    """

    content: str
    whole: Callable[[], LayerCosts]


def _least(window: LayerCosts, weights: Weights, is_last: bool) -> Minimum:
    """A window solved under weights."""
    costs = window.weighted(weights.once)
    rest = window.resting(is_last=is_last)
    paid = weights.rest_s * rest + weights.activation_s * window.activation
    return minimize(
        costs.with_node_s(costs.node_s + paid),
        max_table=_MAX_TABLE,
        max_work=_MAX_WORK,
        max_branches=0,
        max_sweeps=_MAX_SWEEPS,
    )


def _columns(window: LayerCosts, weights: Weights, is_last: bool) -> Float:
    """float64[2, 5] columns of `WindowPrices`, before other windows and at the end of a run.

    Where memory has a price, that of the other place is of another plan, and is not to be used.
    """
    found, costs = _least(window, weights, is_last), window.costs
    if found.labels.size < len(costs.sizes):
        # What the layers share they split differently, whatever is chosen.
        return np.full((2, 5), np.inf)
    at = costs.start[:-1] + found.labels
    seconds, once_s = costs.value(found.labels), window.once.value(found.labels)
    activation = window.activation[at].sum()
    rests = [window.resting(is_last=one)[at].sum() for one in (False, True)]
    return np.array([[found.bound, seconds, rest, activation, once_s] for rest in rests])


def _solved_key(key: Key, weights: Weights, is_last: bool) -> Key:
    """Where memory costs nothing, what is transient does not: both kinds have one plan."""
    return key, weights, is_last and weights.rest_s > 0
