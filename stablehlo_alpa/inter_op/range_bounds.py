r"""Lower bounds of what runs of layers cost on a mesh within a memory budget.

A run of layers is tiled by windows of one layer, or of one and two where that matters, each of
which is solved exactly by itself. What a run of layers chooses is a choice for each window, so with
prices ``u`` and ``v`` in seconds per byte (`Weights`) and M bytes of budget, s micro-batches in
flight::

    least seconds >= sum over windows of min_x { c(x) + u rest(x) + v activation(x) }
                     - max(u, v / s) M

since ``rest + s activation <= M`` must hold (Lagrange). Of what is spent once per step the same
bounds the rest: with seconds ``f`` that are spent per micro-batch and ``o`` that are spent once, of
which a second counts w::

    f >= sum over windows of min_x { f(x) + w o(x) } - w O    where o <= O

What the last layer has beside that while it works is among what its window has at rest. Only the
borders between windows are relaxed. Windows are few: layers that are equal share theirs, so prices
are asked for in time that does not depend on the depth of a model of equal layers. Tables over all
that crosses a border, from which runs could be put together without relaxing anything, are too
large: with partial sums among the strategies, three blocks of a transformer on a mesh of two axes
have elimination tables of 4e9 entries and more in the best order found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stablehlo_alpa.cost.strategy_graph import Float
from stablehlo_alpa.inter_op.layer_costs import Layer
from stablehlo_alpa.inter_op.windows import Weights, WindowPrices, Windows

# A price that is too low is raised by this factor (heuristic).
_STEP = 4.0
# Prices of memory are powers of this (heuristic).
_GRID = 1.1
# A bound this close to what tiles within the budget cost, as a part of it, is good (heuristic).
_CLOSE = 0.01
# Prices asked for per run of layers and number in flight (heuristic).
_MAX_PRICES = 12
# Weights of seconds that are spent once are powers of the first between the others, or zero
# (heuristics).
_ONCE_GRID, _LEAST_ONCE, _MOST_ONCE = 1.25, 0.05, 64.0
# What sums over all windows are rounded by, as a part of them.
_ROUNDING = 1e-14


@dataclass(eq=False)
class RangeBounds:
    """Runs of L layers on one mesh.

    Attributes:
        windows: prices of windows.
        layers: the layers on the mesh.
        budget: bytes per device.
        start_s: the first price of memory that is tried, in seconds per byte.
    """

    windows: Windows
    layers: tuple[Layer, ...]
    budget: float
    start_s: float
    _tiled: dict[Weights, Float] = field(default_factory=dict)
    _least: dict[int, Float] = field(default_factory=dict)
    # With whether pairs were solved for them.
    _sharp: set[tuple[int, int, int, bool]] = field(default_factory=set)
    # Pairs take most of the time, and raise bounds by less than a hundredth where layers are large.
    _has_pairs: bool = False

    def seconds(self, in_flight: int) -> Float:
        """float64[3, L, L] what runs of layers (first, last) cost.

        The first is a bound: none costs less. The second is what the windows' plans cost that it
        comes from, at the same prices, which is closer to the least where windows were not solved
        to the end, on either side of it; the third what of that is spent once per step. Seconds per
        step, +inf where memory does not hold.
        """
        fits = np.triu(self.least_bytes(in_flight) <= self.budget)
        if not fits.any():
            return np.full((3, *fits.shape), np.inf)
        self._tiles(Weights())
        found = []
        for price, (bound, seconds, rest, activation, once) in self._plain():
            rest, activation = (np.where(np.isinf(seconds), 0.0, x) for x in (rest, activation))
            paid = seconds + price.rest_s * rest + price.activation_s * activation
            excess_s = price.least_excess_s(self.budget, in_flight)
            # At prices of memory far above seconds, what remains is their rounding.
            found.append(np.stack([bound - _ROUNDING * excess_s - excess_s, paid - excess_s, once]))
        every = np.stack(found)
        best = np.argmax(every[:, 0], axis=0)[None, None]
        return np.where(fits, np.take_along_axis(every, best, axis=0)[0], np.inf)

    def often(self, in_flights: Sequence[int], once_s: float) -> Float:
        """float64[numbers in flight, L, L] bounds of what plans cost besides what is spent once.

        Args:
            in_flights: numbers of micro-batches in flight.
            once_s: what is spent once, at most: seconds per step.
        """
        if not self._tiled:
            self._tiles(Weights())
        bounds = np.stack([tiles[0] for tiles in self._tiled.values()])
        counted = np.array([weights.once * once_s for weights in self._tiled])
        excess = [
            [weights.least_excess_s(self.budget, one) for weights in self._tiled]
            for one in in_flights
        ]
        taken = counted + (1 + _ROUNDING) * np.array(excess)
        return np.stack([(bounds - one[:, None, None]).max(axis=0) for one in taken])

    def weigh_once(self, first: int, last: int, in_flight: int, once_s: float) -> bool:
        """Looks for the weight that makes a bound of `often` largest; False where it is known.

        Memory has the price that is best for the run of layers. Plans known cost ``f + w (o - O)``:
        the next weight is that at which the least of them is largest (Kelley's cutting planes).
        """
        self._tiles(Weights())
        best = self._best(first, last, in_flight)
        found = np.stack(
            [
                tiles[1:, first, last]
                for weights, tiles in self._tiled.items()
                if replace(weights, once=best.once) == best
            ]
        )
        if not np.isfinite(found).all():
            return False
        seconds, rest, activation, once = found.T
        often_s = seconds - once + best.rest_s * rest + best.activation_s * activation
        weights = replace(best, once=_best_weight(np.stack([often_s, once - once_s], axis=1)))
        if weights in self._tiled:
            return False
        self._tiles(weights)
        return True

    def is_sharp(self, first: int, last: int, in_flight: int, *, with_pairs: bool = True) -> bool:
        """Whether the bound of a run of layers gains nothing by more prices, or by pairs."""
        kinds = (True,) if with_pairs else (True, False)
        return any((first, last, in_flight, kind) in self._sharp for kind in kinds)

    def sharpen(self, first: int, last: int, in_flight: int, *, with_pairs: bool = True) -> None:
        """Solves pairs, and looks for the price of memory that makes a bound largest.

        The bound is concave in the price, and falls once the tiles keep the budget: between one
        that does not and one that does, the next price is that at which both are worth the same.
        """
        self._sharp.add((first, last, in_flight, with_pairs or self._has_pairs))
        if with_pairs and not self._has_pairs:
            self._has_pairs = True
            self._tiled.clear()
        self._tiles(Weights())
        for _ in range(_MAX_PRICES):
            price_s = self._next_price(first, last, in_flight)
            if price_s is None:
                return
            # Rounded, so that runs of layers whose prices are close share them.
            price_s = _GRID ** float(np.round(np.log(price_s) / np.log(_GRID)))
            price = Weights(price_s, in_flight * price_s)
            if price in self._tiled:
                return
            self._tiles(price)

    def best_price_s(self, first: int, last: int, in_flight: int) -> float:
        """The price of memory at rest that makes a bound largest. Seconds per byte."""
        return self._best(first, last, in_flight).rest_s

    def _best(self, first: int, last: int, in_flight: int) -> Weights:
        """The prices of memory that make a bound largest."""
        bounds = {
            price: float(tiles[0, first, last]) - price.least_excess_s(self.budget, in_flight)
            for price, tiles in self._plain()
        }
        return max(bounds, key=bounds.__getitem__)

    def _plain(self) -> list[tuple[Weights, Float]]:
        """Tiles of weights that count all seconds alike."""
        return [(weights, tiles) for weights, tiles in self._tiled.items() if weights.once == 1.0]

    def least_bytes(self, in_flight: int) -> Float:
        """float64[L, L] bytes that a run of layers cannot do without."""
        if in_flight not in self._least:
            sizes = [layer.least_bytes(in_flight) for layer in self.layers]
            last = [layer.least_bytes(in_flight, is_last=True) for layer in self.layers]
            before = np.concatenate([[0.0], np.cumsum(sizes)])[:-1]
            self._least[in_flight] = before[None] - before[:, None] + np.array(last)[None]
        return self._least[in_flight]

    def _next_price(self, first: int, last: int, in_flight: int) -> float | None:
        """Seconds per byte at which a bound may be larger; None where it is good enough.

        Tiles known cost ``seconds + price (bytes - budget)``: the price at which the least of them
        is largest (Kelley's cutting planes).
        """
        lower = float(self.seconds(in_flight)[0, first, last])
        if not np.isfinite(lower):
            return None
        found = np.stack([tiles[:, first, last] for _, tiles in self._plain()])
        lines = np.unique(
            np.stack([found[:, 1], found[:, 2] + in_flight * found[:, 3] - self.budget]), axis=1
        )
        cheap, dear = lines[:, lines[1] > 0], lines[:, lines[1] <= 0]
        if not dear.size:
            return _STEP * max(self.start_s / _STEP, *(one.rest_s for one in self._tiled))
        if not cheap.size or lower >= (1 - _CLOSE) * dear[0].min():
            return None
        saved = cheap[1][:, None] - dear[1][None]
        prices = ((dear[0][None] - cheap[0][:, None]) / saved).ravel()
        prices = prices[prices > 0]
        if not prices.size:
            return None
        least = (lines[0][None] + prices[:, None] * lines[1][None]).min(axis=1)
        return float(prices[np.argmax(least)])

    def _tiles(self, weights: Weights) -> Float:
        """float64[5, L, L] of the better of two tilings, as in `WindowPrices`."""
        if weights not in self._tiled:
            self._tiled[weights] = tile(self.windows.prices(weights, with_pairs=self._has_pairs))
        return self._tiled[weights]


def _best_weight(lines: Float) -> float:
    """The weight at which the least of some lines is largest, rounded so that many share it.

    Args:
        lines: float64[n, 2] what each is at 0, and how fast it rises with the weight.
    """
    at_zero, rise = lines.T
    if (rise <= 0).all():
        return 0.0
    if (rise > 0).all():
        # Nothing known spends as little.
        return _MOST_ONCE
    falling, rising = rise <= 0, rise > 0
    meets = (at_zero[falling][:, None] - at_zero[rising]) / (rise[rising] - rise[falling][:, None])
    weights = np.concatenate([[0.0], meets.ravel()])
    weights = weights[weights >= 0]
    least = (at_zero[None] + weights[:, None] * rise[None]).min(axis=1)
    best = float(weights[np.argmax(least)])
    step = 0.0 if best < _LEAST_ONCE else _ONCE_GRID ** round(math.log(best, _ONCE_GRID))
    return min(step, _MOST_ONCE)


def tile(prices: WindowPrices) -> Float:
    """float64[5, L, L] sums over the windows that tile runs of layers (first, last).

    Of the tilings that begin with a pair and with a single layer the dearer one is taken, which is
    the better bound. Below the diagonal there is no run; +inf where a window has no plan at all.
    """
    rows, count = prices.singles.shape
    # Of pairs i, i + 2, i + 4 ... from each on, and how many of them have no plan: runs that end
    # before one are differences of sums that reach beyond it.
    has_plan = np.isfinite(prices.pairs)
    pairs = np.concatenate([np.where(has_plan, prices.pairs, 0.0), ~has_plan[:1]])
    chained = np.zeros((rows + 1, count + 2))
    for at in range(count - 2, -1, -1):
        chained[:, at] = pairs[:, at] + chained[:, at + 2]
    even, odd = (_tilings(prices, chained, offset) for offset in (0, 1))
    return np.where(even[0] >= odd[0], even, odd)


def _tilings(prices: WindowPrices, chained: Float, offset: int) -> Float:
    """float64[5, L, L] of pairs from ``first + offset`` on, single layers before and behind."""
    count = prices.singles.shape[1]
    first, last = np.triu_indices(count)
    begin = first + offset
    num_pairs = (last + 1 - begin) // 2
    end = begin + 2 * num_pairs
    ends_single = (end <= last) | (num_pairs == 0)
    end = np.where(ends_single, end, end - 2)
    total = prices.last_singles[:, last]
    if count > 1:
        total = np.where(ends_single, total, prices.last_pairs[:, np.minimum(end, count - 2)])
    if offset:
        total += np.where(last > first, prices.singles[:, first], 0.0)
    has_more = end > begin
    begin, end = (np.where(has_more, at, 0) for at in (begin, end))
    *sums, lacking = chained[:, begin] - chained[:, end]
    total += np.where(lacking == 0, np.array(sums), np.inf)
    found = np.zeros((len(prices.singles), count, count))
    found[:, first, last] = total
    return found
