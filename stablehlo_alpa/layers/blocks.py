"""The equal blocks that a layer consists of: each is computed again by itself."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.layers.equations import Tensor, kinds_of, tensors_of, work_of
from stablehlo_alpa.layers.spared import spared_work

Float: TypeAlias = npt.NDArray[np.float64]

# What repeats is a layer's blocks where it has at least this part of its FLOPs (heuristic).
_BLOCKS_SHARE = 0.5
# FLOPs that differ by less are equal (floating-point noise of sums).
_RELATIVE = 1e-9
# A piece with less than this part of a block's FLOPs goes with the one behind it (heuristic).
_PIECE_SHARE = 0.1
# Blocks of a layer with more of them are computed again several at a time.
_MOST_BLOCKS = 16


def block_starts(jaxpr: Any) -> list[int]:
    """Where the blocks of a layer begin, the first at 0; one where nothing repeats.

    A block is the shortest piece that repeats, one behind the other, and holds most of the layer's
    FLOPs when all are taken. Where in it one ends and the next begins is open: where the fewest
    bytes go across, and, of several such places, where most is spared (`spared_work`). What is
    before the first and behind the last is a piece of its own, unless it does hardly anything.

    Args:
        jaxpr: of the layer.
    """
    work = np.array(work_of(jaxpr))
    found = _repetition(kinds_of(jaxpr), work)
    if found is None:
        return [0]
    start, end, period = found
    period *= -(-(end - start) // (period * _MOST_BLOCKS))
    crossing = _crossing(len(work), tensors_of(jaxpr))
    # Of all blocks together: what goes across the borders of one only is small.
    borders = [slice(start + offset, end, period) for offset in range(period)]
    across = np.array([crossing[one].max() for one in borders])
    spared = spared_work(jaxpr, work)
    saved = [spared[one].max() for one in borders]
    is_least = across <= across.min() * (1 + _RELATIVE)
    cuts = range(start + int(np.argmax(np.where(is_least, saved, -1.0))), end, period)
    sums = np.concatenate([[0.0], np.cumsum(work)])
    least = _PIECE_SHARE * (sums[end] - sums[start]) * period / (end - start)
    starts = [0]
    for cut in cuts:
        if min(sums[cut] - sums[starts[-1]], sums[-1] - sums[cut]) >= least:
            starts.append(cut)
    return starts


def _repetition(kinds: Sequence[Hashable], work: Float) -> tuple[int, int, int] | None:
    """Start, end and period of the equations that repeat with most FLOPs; None of too few.

    A period leads from one equation of the kind that takes the most FLOPs to another: those that
    lead from the one in the middle are looked at.
    """
    if not len(work):
        return None
    numbers: dict[Hashable, int] = {}
    each = np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], np.int64)
    places = np.flatnonzero(each == np.argmax(np.bincount(each, work)))
    middle = (len(places) - 1) // 2
    sums = np.concatenate([[0.0], np.cumsum(work)])
    best, most = None, _BLOCKS_SHARE * sums[-1]
    for period in (places[middle + 1 :] - places[middle]).tolist():
        start, length = _longest_run(each[period:] == each[:-period])
        end = start + length + period
        if length >= period and sums[end] - sums[start] > most * (1 + _RELATIVE):
            best, most = (start, end, period), sums[end] - sums[start]
    return best


def _longest_run(is_equal: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Start and length of the longest run of what holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_equal, [False]])))
    if not len(edges):
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    longest = int(np.argmax(lengths))
    return int(edges[::2][longest]), int(lengths[longest])


def _crossing(size: int, tensors: Sequence[Tensor]) -> Float:
    """float64[size] bytes that go from before each equation to it and those behind it."""
    change = np.zeros(size + 1)
    for bytes_, maker, users in tensors:
        change[maker + 1] += bytes_
        change[users[-1] + 1] -= bytes_
    return np.asarray(np.cumsum(change)[:size])
