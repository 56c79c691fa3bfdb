"""Least prices of single layers and of neighbouring pairs on a mesh, under prices of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from stablehlo_alpa.cost.strategy_graph import Float
from stablehlo_alpa.inter_op.layer_costs import LayerCosts, join
from stablehlo_alpa.inter_op.layer_parts import LayerParts
from stablehlo_alpa.intra_op import SolverCache
from stablehlo_alpa.intra_op.exact import minimize

Key: TypeAlias = tuple[object, ...]

# Seconds after which a window's bound is taken as it is (heuristic).
_TIME_LIMIT_S = 0.5


@dataclass(frozen=True)
class MemoryPrice:
    """Seconds per step that a byte per device costs.

    Attributes:
        rest_s: of what is there once.
        activation_s: of what one micro-batch in flight keeps.
    """

    rest_s: float = 0.0
    activation_s: float = 0.0

    def least_excess_s(self, budget: float, in_flight: int) -> float:
        """What bytes within a budget cost at most.

        With ``rest + in_flight * activation <= budget`` the price of memory is at most
        ``max(rest_s, activation_s / in_flight) * budget``.
        """
        return max(self.rest_s, self.activation_s / in_flight) * budget


@dataclass(frozen=True, eq=False)
class WindowPrices:
    """Windows under one price of memory, by first layer.

    Attributes:
        singles: float64[4, L] of single layers: no choice costs less (seconds per step, memory at
            its price included); of a choice that costs so: its seconds, `StageMemory.rest` and
            `StageMemory.activation` bytes.
        pairs: float64[4, L - 1] the same of neighbours together.
    """

    singles: Float
    pairs: Float


class Windows:
    """Solves single layers and pairs; equal ones once."""

    def __init__(self, parts: LayerParts, layers: Sequence[LayerCosts]) -> None:
        """Takes the layers, and what each costs on the mesh."""
        self._parts, self._layers = parts, layers
        self._cache = SolverCache()
        self._joined: dict[Key, LayerCosts] = {}
        self._solved: dict[Key, Float] = {}
        self._known: dict[MemoryPrice, WindowPrices] = {}

    def prices(self, price: MemoryPrice) -> WindowPrices:
        """All windows under a price of memory."""
        if price not in self._known:
            numbers = range(len(self._layers))
            singles = [self._single(number, price) for number in numbers]
            pairs = [self._pair(number, price) for number in numbers[:-1]]
            # A pair costs no less than its halves alone, whatever of its search was cut short.
            for number, pair in enumerate(pairs):
                halves = singles[number][0] + singles[number + 1][0]
                pair[0] = max(pair[0], halves)
            self._known[price] = WindowPrices(
                np.stack(singles, axis=1),
                np.stack(pairs, axis=1) if pairs else np.zeros((4, 0)),
            )
        return self._known[price]

    def _single(self, number: int, price: MemoryPrice) -> Float:
        key = self._parts.parts[number].kind
        return self._solve((key, price), self._layers[number], price)

    def _pair(self, number: int, price: MemoryPrice) -> Float:
        parts, crossings = self._parts.parts, self._parts.crossings[number]
        key = (parts[number].kind, parts[number + 1].kind, crossings)
        if key not in self._joined:
            self._joined[key] = join(self._layers[number], self._layers[number + 1], crossings)
        return self._solve((key, price), self._joined[key], price).copy()

    def _solve(self, key: Key, window: LayerCosts, price: MemoryPrice) -> Float:
        """float64[4] as a column of `WindowPrices`."""
        if key not in self._solved:
            costs = window.costs
            paid = price.rest_s * window.rest + price.activation_s * window.activation
            found = minimize(
                costs.with_node_s(costs.node_s + paid),
                cache=self._cache,
                time_limit_s=_TIME_LIMIT_S,
            )
            if not found.labels.size:
                # What the layers share they split differently, whatever is chosen.
                self._solved[key] = np.full(4, np.inf)
                return self._solved[key]
            at = costs.start[:-1] + found.labels
            self._solved[key] = np.array(
                [
                    found.bound,
                    costs.value(found.labels),
                    window.rest[at].sum(),
                    window.activation[at].sum(),
                ]
            )
        return self._solved[key]
