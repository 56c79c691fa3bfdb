"""The least peak memory that a plan can have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost.strategy_graph import Float, Int
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.exact import minimize
from stablehlo_alpa.intra_op.highs import run_highs
from stablehlo_alpa.intra_op.ilp import (
    TOLERANCE,
    IntegerAnswer,
    MemoryRows,
    Programme,
    pair_bytes,
)
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


def usual_choice(
    costs: Costs, memory: MemoryModel, cache: SolverCache, work: Work
) -> tuple[Int, float]:
    """A plan that holds little on average over the program points, copies of what is gathered too.

    Where they are many, weights on the values alone lead to plans that gather all that there is.

    Args:
        costs: the strategies that may be chosen.
        memory: their bytes.
        cache: tables of the exact solver.
        work: what may be done.

    Returns:
        int64[N] places within each node, and bytes that no plan's peak is below.
    """
    answer = minimize(_usual_bytes(costs, memory), cache=cache, work=work, max_branches=0)
    return answer.labels, answer.bound


def _usual_bytes(costs: Costs, memory: MemoryModel) -> Costs:
    """The problem of the least bytes on average over the points: none less is any plan's peak."""
    graph = memory.graph
    weights = np.zeros(graph.num_points)
    weights[memory.points] = 1 / max(len(memory.points), 1)
    running = np.concatenate([[0.0], np.cumsum(weights)])
    free = costs.free()
    own = _own_bytes(costs, memory)
    live = running[graph.value_end + 1] - running[graph.value_start]
    lives: list[list[float]] = [[] for _ in own]
    for node, share in zip(graph.value_node.tolist(), live.tolist(), strict=True):
        lives[node].append(share)
    node_bytes = [
        np.asarray(shares) @ sizes if shares else np.zeros(sizes.shape[1])
        for shares, sizes in zip(lives, own, strict=True)
    ]
    tables = list(free.tables)
    live = running[graph.copy_end + 1] - running[graph.copy_start]
    for copy in np.flatnonzero(live > 0).tolist():
        u, v = int(graph.copy_source[copy]), int(graph.copy_target[copy])
        first = int(graph.copy_offset[graph.copy_table[copy]])
        shape = int(graph.num_strategies[u]), int(graph.num_strategies[v])
        sizes = graph.copy_bytes[first : first + math.prod(shape)].reshape(shape)
        sizes = sizes[costs.own(u)][:, costs.own(v)]
        number = costs.edge_numbers[min(u, v), max(u, v)]
        tables[number] = tables[number] + live[copy] * (sizes if u < v else sizes.T)
    return replace(free, node_s=free.node_s + np.concatenate(node_bytes), tables=tuple(tables))


def least_memory(
    costs: Costs, memory: MemoryModel, work: Work, relative_gap: float
) -> tuple[Int, float, float]:
    """A plan of the least peak: ``min z, bytes live at p <= z``, points added while violated.

    Only strategies that no other of their node undercuts in every value are asked, but where what
    is gathered at a point depends on them, which leaves few nodes to decide.

    Returns:
        int64[N] places within each node, the peak in bytes, and bytes that no plan's peak is below.
    """
    own = _own_bytes(costs, memory)
    masks = [_undominated(sizes) for sizes in own]
    labels = lean_choice(costs, memory)
    peak, point = memory.peak(costs.decode(labels))
    best, least, bound = labels, peak, 0.0
    if point < 0:
        return best, least, least
    points, unit = [point], 0.0
    while bound < least * (1 - TOLERANCE) and work.left_s() > 0:
        joined = {node for one in points for pair in memory.pairs(one) for node in pair}
        kept = [np.ones_like(mask) if n in joined else mask for n, mask in enumerate(masks)]
        lean = costs.restrict(np.concatenate(kept))
        answer = _least_at(lean, memory, points, work, relative_gap, unit)
        # Fewer points are a relaxation: what bounds it bounds the least peak.
        bound = max(bound, answer.bound)
        if answer.labels is None:
            break
        labels = costs.encode(lean.decode(answer.labels))
        peak, point = memory.peak(costs.decode(labels))
        if peak < least:
            best, least = labels, peak
        if answer.status != "optimal" or (point in points and unit == least):
            break
        if point in points:
            # What HiGHS tolerates is a share of the unit, and was too much.
            unit = least
        else:
            points.append(point)
    return best, least, min(bound, least)


def _least_at(
    costs: Costs,
    memory: MemoryModel,
    points: Sequence[int],
    work: Work,
    relative_gap: float,
    unit: float,
) -> IntegerAnswer:
    """The plan that takes least at some points, and bytes that none takes less than there.

    The programme counts in ``unit`` bytes; 0: in those of the first strategies.
    """
    import cvxpy as cp

    sizes = [memory.usage(costs.decode(np.zeros(len(costs.sizes), np.int64)))[p] for p in points]
    unit = unit or max(*sizes, 1.0)
    numbers = sorted({n for one in points for n in pair_bytes(costs, memory, one)})
    joined = replace(
        costs,
        node_s=np.zeros(len(costs.rows)),
        edges=costs.edges[numbers],
        tables=tuple(np.zeros_like(costs.tables[number]) for number in numbers),
    )
    programme = Programme.of(joined, MemoryRows.of(joined, memory, points, unit))
    if not programme.nodes.size:
        only = np.zeros(len(costs.sizes), np.int64)
        peak = float(memory.usage(costs.decode(only))[points].max())
        return IntegerAnswer("optimal", only, peak, lp_integral=True)
    columns = np.arange(programme.num_s)
    x, z = cp.Variable(len(programme.cost), boolean=(columns,)), cp.Variable()
    # The programme's limit is of a budget of one unit.
    used = programme.memory @ x <= z + (programme.limit - 1 - TOLERANCE / 2)
    constraints = [programme.matrix @ x == programme.rhs, used, x >= 0]
    answer = run_highs(cp.Problem(cp.Minimize(z), constraints), work, relative_gap, presolve=True)
    labels = None
    if answer.has_values and x.value is not None:
        labels = programme.round(np.asarray(x.value)[: programme.num_s])
    return IntegerAnswer(answer.status, labels, unit * answer.bound, lp_integral=False)


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
