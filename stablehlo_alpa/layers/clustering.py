"""Clusters operators into layers of about equal FLOPs with little data between them."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_log = logging.getLogger(__name__)

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]

# Costs that differ by less are equal (floating-point noise of sums of bytes).
_RELATIVE = 1e-9


def cluster(
    flops: npt.ArrayLike,
    tensors: Sequence[tuple[float, int, Sequence[int]]],
    num_layers: int,
    tolerance: float,
) -> list[int]:
    r"""Cuts a sequence of K operators into layers.

    Equation 6 of the paper: the largest amount of data that a layer receives from earlier ones is
    minimised over all cuts whose layers have at most ``(1 + tolerance)`` times the mean FLOPs::

        G(k, r) = min_i max(G(i - 1, r - 1), C(i, k))   s.t.  FLOP(i..k) <= (1 + delta) FLOP / L

    ``C(i, k)`` are the bytes of tensors made before operator i and used in ``i..k``, each counted
    once. Of all cuts with that optimum, one whose FLOPs vary least is taken. Where no cut keeps the
    tolerance (few heavy operators), it is doubled; where it would allow a layer all FLOPs, none has
    more than in the most even cut. A tolerance that is asked for and allows all of them leaves at
    least one operator with FLOPs out, unless only one has any.

    Args:
        flops: float64[K] FLOPs of each operator, >= 0.
        tensors: per tensor that has users after its maker: bytes, the maker's index (-1 for an
            input, which is never counted), and the users' indices, ascending.
        num_layers: L. With fewer operators than layers there are as many layers as operators.
        tolerance: delta.

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
        found = _Cuts(work, tensors, count, limit).solve()
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


class _Cuts:
    """The dynamic programme for one limit on the FLOPs of a layer."""

    def __init__(
        self,
        flops: Float,
        tensors: Sequence[tuple[float, int, Sequence[int]]],
        count: int,
        limit: float,
    ) -> None:
        self._size, self._count = len(flops), count
        self._sums = np.concatenate([[0.0], np.cumsum(flops)])
        self._limit = limit * (1 + _RELATIVE)
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
        """The cut within the bottleneck whose squared FLOPs sum to the least."""
        best = np.full((self._count + 1, self._size + 1), np.inf)
        best[0, 0] = 0.0
        limit = bottleneck * (1 + _RELATIVE)
        scale = self._sums[-1]
        for k, (low, received) in enumerate(self._by_k):
            if not len(received):
                continue
            work = ((self._sums[k + 1] - self._sums[low : k + 1]) / scale) ** 2
            total = best[:-1, low : k + 1] + np.where(received <= limit, work, np.inf)
            best[1:, k + 1] = total.min(axis=1)
        layers = np.zeros(self._size, np.int64)
        end = self._size
        for layer in range(self._count - 1, -1, -1):
            low, received = self._by_k[end - 1]
            work = ((self._sums[end] - self._sums[low:end]) / scale) ** 2
            total = best[layer, low:end] + np.where(received <= limit, work, np.inf)
            start = low + int(np.argmin(total))
            layers[start:end] = layer
            end = start
        return [int(layer) for layer in layers]
