"""Clusters operators into layers of about equal FLOPs with little data between them."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

_log = logging.getLogger(__name__)

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

# Costs that differ by less are equal (floating-point noise of sums of bytes).
_RELATIVE = 1e-9
# What a layer unlike the one before it may cost in evenness, in squares of the mean FLOPs.
_UNLIKE = 1e-3
# What it may cost that nothing is spared where a layer ends, likewise.
_UNSPARED = 1e-3
# The base of the polynomials that tell sequences of kinds apart, modulo 2^64.
_BASE = np.uint64(0x9E3779B97F4A7C15)


def cluster(
    flops: npt.ArrayLike,
    tensors: Sequence[tuple[float, int, Sequence[int]]],
    num_layers: int,
    tolerance: float,
    kinds: Sequence[Hashable] | None = None,
    spared: npt.ArrayLike | None = None,
) -> list[int]:
    r"""Cuts a sequence of K operators into layers.

    Equation 6 of the paper: the largest amount of data that a layer receives from earlier ones is
    minimised over all cuts whose layers have at most ``(1 + tolerance)`` times the mean FLOPs::

        G(k, r) = min_i max(G(i - 1, r - 1), C(i, k))   s.t.  FLOP(i..k) <= (1 + delta) FLOP / L

    ``C(i, k)`` are the bytes of tensors made before operator i and used in ``i..k``, each counted
    once. Of all cuts with that optimum, one whose FLOPs vary least is taken; where several hardly
    differ in that, one in which layers are most often like the layer before: what a repeated block
    is cut into is then planned once, and unlike layers are at the ends; and one whose layers end
    where much is spared if they are computed again. Where no cut keeps the
    tolerance (few heavy operators), it is doubled; where it would allow a layer all FLOPs, none has
    more than in the most even cut. A tolerance that is asked for and allows all of them leaves at
    least one operator with FLOPs out, unless only one has any.

    Args:
        flops: float64[K] FLOPs of each operator, >= 0.
        tensors: per tensor that has users after its maker: bytes, the maker's index (-1 for an
            input, which is never counted), and the users' indices, ascending.
        num_layers: L. With fewer operators than layers there are as many layers as operators.
        tolerance: delta.
        kinds: of each operator, equal for those that do the same; None where that is not known.
            Layers are alike whose operators are of the same kinds in the same order.
        spared: per operator the work that is spared where a layer begins with it (`spared_work`);
            None for none anywhere.

    Returns:
        K layer numbers, ascending from 0.

    References:
        Zheng et al., "Alpa", OSDI 2022, section 5.2, Eq. 6.
    """
    work = np.asarray(flops, np.float64)
    if not work.size:
        return []
    count = min(num_layers, work.size)
    if not work.sum() > 0:
        work = np.ones_like(work)
    # What a layer may have at most: all but the lightest operator that has any.
    total, least = work.sum(), work[work > 0].min()
    most = total - least if count > 1 and least < total else total
    # The smallest tolerance that is tried after 0.
    attempt = tolerance
    while True:
        limit = min((1 + attempt) * total / count, most)
        if attempt > tolerance and limit == most:
            limit = _least_limit(work, count)
        found = _Cuts(work, tensors, count, limit, kinds, spared).solve()
        if found is not None:
            if attempt != tolerance:
                _log.info("layers: no cut has tolerance %g, %g was needed", tolerance, attempt)
            return found
        attempt = max(2 * attempt, 0.125)


def _least_limit(work: Float, count: int) -> float:
    """What the largest of so many layers has where it has the least: by bisection."""
    low, high = float(max(work.max(), work.sum() / count)), float(work.sum())
    while high - low > _RELATIVE * high:
        middle = (low + high) / 2
        if _layers_within(work, middle) <= count:
            high = middle
        else:
            low = middle
    return high


def _layers_within(work: Float, limit: float) -> int:
    """How many layers it takes where none has more."""
    layers, held = 1, 0.0
    for each in work:
        held += float(each)
        if held > limit:
            layers, held = layers + 1, float(each)
    return layers


def _unspared(size: int, spared: npt.ArrayLike | None) -> Float:
    """Per operator what it costs that a layer begins with it."""
    work = np.zeros(size) if spared is None else np.asarray(spared, np.float64)
    most = work.max(initial=0.0)
    return np.asarray(_UNSPARED * (1 - work / most)) if most > 0 else work


class _Cuts:
    """The dynamic programme for one limit on the FLOPs of a layer."""

    def __init__(
        self,
        flops: Float,
        tensors: Sequence[tuple[float, int, Sequence[int]]],
        count: int,
        limit: float,
        kinds: Sequence[Hashable] | None,
        spared: npt.ArrayLike | None,
    ) -> None:
        self._size, self._count = len(flops), count
        self._unspared = _unspared(self._size, spared)
        self._sums = np.concatenate([[0.0], np.cumsum(flops)])
        self._limit = limit * (1 + _RELATIVE)
        self._sequences = _Sequences(range(self._size) if kinds is None else kinds)
        # Per user k: (first i, last i + 1, bytes) to add to C(i, k).
        self._received: list[list[tuple[int, int, float]]] = [[] for _ in flops]
        for size, maker, users in tensors:
            if maker < 0:
                continue
            previous = maker
            for user in sorted(set(users)):
                if user > previous:
                    self._received[user].append((previous + 1, user + 1, size))
                    previous = user

    def solve(self) -> list[int] | None:
        bottleneck = self._least_bottleneck()
        return None if bottleneck is None else self._most_even(bottleneck)

    def _rows(self) -> list[tuple[int, Float]]:
        """Per k: the first i that keeps the limit, and C(i, k) for i = that..k."""
        received = np.zeros(self._size)
        rows = []
        for k in range(self._size):
            for first, last, size in self._received[k]:
                received[first:last] += size
            low = int(np.searchsorted(self._sums, self._sums[k + 1] - self._limit, "left"))
            low = min(low, k + 1)
            rows.append((low, received[low : k + 1].copy()))
        return rows

    def _least_bottleneck(self) -> float | None:
        """G(K, L)."""
        best = np.full((self._count + 1, self._size + 1), np.inf)
        best[0, 0] = 0.0
        self._by_k = self._rows()
        for k, (low, received) in enumerate(self._by_k):
            if len(received):
                best[1:, k + 1] = np.maximum(best[:-1, low : k + 1], received).min(axis=1)
        value = float(best[-1, -1])
        return value if np.isfinite(value) else None

    def _most_even(self, bottleneck: float) -> list[int]:
        """The cut within the bottleneck whose squared FLOPs, and layers unlike, sum to the least.

        The state is the last layer: what it adds depends on whether the one before is like it, and
        so on where that one began.
        """
        limit = bottleneck * (1 + _RELATIVE)
        unlike = _UNLIKE / self._count**2
        best = np.full((self._count + 1, self._size + 1), np.inf)
        best[0, 0] = -unlike  # Nothing is before the first layer.
        ends = [_End(np.zeros(1, np.int64), best[:, :1])]
        for end, (low, received) in enumerate(self._by_k, 1):
            starts = low + np.flatnonzero(received <= limit)
            work = ((self._sums[end] - self._sums[starts]) / self._sums[-1]) ** 2
            before = best[:, starts] + unlike
            for place in self._sequences.repetitions(starts, end):
                start = starts[place]
                alike = ends[start].costs_from(2 * start - end)
                before[:, place] = np.minimum(before[:, place], alike)
            before += self._unspared[starts] / self._count**2
            costs = np.full(before.shape, np.inf)
            costs[1:] = before[:-1] + work
            ends.append(_End(starts, costs))
            if len(starts):
                best[:, end] = costs.min(axis=1)
        return self._cuts_of(ends, unlike)

    def _cuts_of(self, ends: Sequence[_End], unlike: float) -> list[int]:
        """The layers of the best state at the end, from the last to the first."""
        layers = np.zeros(self._size, np.int64)
        end = self._size
        start = ends[end].best(self._count)[0]
        for layer in range(self._count, 0, -1):
            layers[start:end] = layer - 1
            before, cost = ends[start].best(layer - 1)
            alike = 2 * start - end
            if len(self._sequences.repetitions(np.array([start]), end)):
                is_alike = ends[start].costs_from(alike)[layer - 1] <= cost + unlike
                before = alike if is_alike else before
            start, end = before, start
        return [int(layer) for layer in layers]


class _End:
    """Where a last layer that ends at one place may begin, and what all layers then cost."""

    def __init__(self, starts: Int, costs: Float) -> None:
        """Starts ascend; ``costs[r, s]`` are those of r layers, inf where there is no such cut."""
        self._starts, self._costs = starts, costs

    def costs_from(self, start: int) -> Float:
        """Per number of layers, where the last begins there."""
        place = int(np.searchsorted(self._starts, start))
        if place == len(self._starts) or self._starts[place] != start:
            return np.full(len(self._costs), np.inf)
        return self._costs[:, place]

    def best(self, count: int) -> tuple[int, float]:
        """Where the last of so many layers begins best, and what they cost."""
        place = int(np.argmin(self._costs[count]))
        return int(self._starts[place]), float(self._costs[count, place])


class _Sequences:
    """Tells equal pieces of a sequence, by polynomials modulo 2^64."""

    def __init__(self, kinds: Sequence[Hashable]) -> None:
        numbers: dict[Hashable, int] = {}
        sums, powers = np.zeros((2, len(kinds) + 1), np.uint64)
        powers[0] = 1
        with np.errstate(over="ignore"):
            for place, kind in enumerate(kinds):
                number = np.uint64(numbers.setdefault(kind, len(numbers)) + 1)
                sums[place + 1] = sums[place] * _BASE + number
                powers[place + 1] = powers[place] * _BASE
        self._sums, self._powers = sums, powers

    def repetitions(self, starts: Int, end: int) -> Int:
        """Indices of the starts from which to the end is what is as long before them."""
        lengths = end - starts
        places = np.flatnonzero(lengths <= starts)
        first, middle = starts[places] - lengths[places], starts[places]
        powers = self._powers[lengths[places]]
        sums = self._sums
        same = sums[middle] - sums[first] * powers == sums[end] - sums[middle] * powers
        return places[same]
