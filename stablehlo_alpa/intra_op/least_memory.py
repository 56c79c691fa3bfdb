"""The least peak memory that a plan can have."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from stablehlo_alpa.cost.strategy_graph import Float, Int
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.highs import run_highs
from stablehlo_alpa.intra_op.ilp import TOLERANCE
from stablehlo_alpa.intra_op.memory import MemoryModel
from stablehlo_alpa.intra_op.work import Work

# Rounds of weighing program points, and how much the fullest gains in the first (heuristics).
_ROUNDS = 100
_RATE = 20.0


def lean_choice(costs: Costs, memory: MemoryModel) -> Int:
    """int64[N] places of the strategy of the fewest bytes in every node, summed over its values."""
    labels = np.zeros(len(costs.sizes), np.int64)
    for node, own in enumerate(_own_bytes(costs, memory)):
        labels[node] = own.sum(axis=0).argmin() if len(own) else 0
    return labels


def weighted_choice(costs: Costs, memory: MemoryModel, budget: float) -> tuple[Int, float]:
    r"""A plan whose peak is near the least, by weights on the program points.

    For weights ``w_p >= 0`` that sum to one, ``min_x sum_p w_p bytes_p(x)`` is a lower bound on the
    least peak, and decomposes into the nodes. Points where the plans so far keep the most gain
    weight (multiplicative weights).

    Args:
        costs: the strategies that may be chosen.
        memory: their bytes.
        budget: the search ends with a plan within it.

    Returns:
        int64[N] places of the best plan met, and bytes that no plan's peak is below.

    References:
        Arora, Hazan, Kale, "The multiplicative weights update method", 2012.
    """
    graph = memory.graph
    node = np.repeat(np.arange(len(costs.sizes)), costs.sizes)
    counts = graph.num_strategies[graph.value_node]
    # Strategy, among all of the graph, of every entry of the values' bytes.
    within = np.arange(len(graph.value_bytes)) - np.repeat(graph.value_offset[:-1], counts)
    column = np.repeat(graph.node_offset[graph.value_node], counts) + within
    logs = np.zeros(graph.num_points)
    logs[:] = -np.inf
    logs[memory.points] = 0.0
    best, least, bound = lean_choice(costs, memory), np.inf, 0.0
    for round_ in range(_ROUNDS):
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        running = np.concatenate([[0.0], np.cumsum(weights)])
        live = running[graph.value_end + 1] - running[graph.value_start]
        paid = np.bincount(
            column,
            graph.value_bytes * np.repeat(live, counts),
            minlength=len(graph.strategy_label),
        )[costs.rows]
        lowest = np.minimum.reduceat(paid, costs.start[:-1])
        bound = max(bound, float(lowest.sum()))
        is_lowest = np.flatnonzero(paid <= lowest[node])
        labels = np.zeros(len(costs.sizes), np.int64)
        # The first of equal ones is written last.
        labels[node[is_lowest[::-1]]] = (is_lowest - costs.start[node[is_lowest]])[::-1]
        usage = memory.usage(costs.decode(labels))
        peak = float(usage[memory.points].max(initial=0.0))
        if peak < least:
            best, least = labels, peak
        if least <= budget or bound > budget * (1 + TOLERANCE):
            break
        rate = _RATE / np.sqrt(1.0 + round_)
        logs[memory.points] += rate * usage[memory.points] / max(peak, 1.0)
    return best, bound


def least_memory(
    costs: Costs, memory: MemoryModel, work: Work, relative_gap: float
) -> tuple[Int, float, float]:
    """A plan of the least peak: ``min z, bytes live at p <= z``, points added while violated.

    Only strategies that no other of their node undercuts in every value are asked, which leaves
    few nodes to decide.

    Returns:
        int64[N] places within each node, the peak in bytes, and bytes that no plan's peak is below.
    """
    import cvxpy as cp

    kept = np.concatenate([_undominated(own) for own in _own_bytes(costs, memory)])
    lean = costs.restrict(kept)
    labels = lean_choice(lean, memory)
    peak, point = memory.peak(lean.decode(labels))
    best, least = labels, peak
    columns = np.arange(len(lean.rows))
    owner = np.repeat(np.arange(len(lean.sizes)), lean.sizes)
    one = sp.csr_matrix((np.ones(len(columns)), (owner, columns)))
    points, unit = [point], max(peak, 1.0)
    if len(columns) == len(lean.sizes) or point < 0:
        return costs.encode(lean.decode(best)), least, least
    bound = 0.0
    while bound < least * (1 - TOLERANCE):
        if work.left_s() <= 0:
            break
        s = cp.Variable(len(columns), boolean=(columns,))
        z = cp.Variable()
        rows = memory.rows(points)[:, lean.rows] / unit
        problem = cp.Problem(cp.Minimize(z), [one @ s == 1, rows @ s <= z])
        answer = run_highs(problem, work, relative_gap, presolve=True)
        # Fewer points are a relaxation: what bounds it bounds the least peak.
        bound = max(bound, unit * answer.bound)
        if not answer.has_values or s.value is None:
            break
        picked = np.flatnonzero(np.asarray(s.value) > 0.5)
        labels = np.zeros(len(lean.sizes), np.int64)
        labels[owner[picked]] = picked - lean.start[owner[picked]]
        peak, point = memory.peak(lean.decode(labels))
        if peak < least:
            best, least = labels, peak
        if answer.status != "optimal" or point in points:
            break
        points.append(point)
    return costs.encode(lean.decode(best)), least, min(bound, least)


def _own_bytes(costs: Costs, memory: MemoryModel) -> list[Float]:
    """Per node float64[values, strategies that may be chosen]."""
    return [
        sizes[:, costs.rows[costs.span(node)] - costs.first[node]]
        for node, sizes in enumerate(memory.bytes_by_node())
    ]


def _undominated(own: Float) -> np.ndarray:
    """bool[k] columns that no other undercuts everywhere; of equal ones the first."""
    count = own.shape[1]
    if not len(own):
        return np.arange(count) == 0
    worse = (own[:, :, None] >= own[:, None, :]).all(axis=0)
    index = np.arange(count)
    beaten = worse & (~worse.T | (index[None, :] < index[:, None]))
    np.fill_diagonal(beaten, False)
    return np.logical_not(beaten.any(axis=1))
