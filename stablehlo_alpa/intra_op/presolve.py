"""Exact reductions before the integer programme: folding and dead-end elimination."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.cost.strategy_graph import Bool, Float, Int

# Relative to the largest cost: differences below it are rounding, so ties.
_TIE = 1e-13


@dataclass
class Core:
    """What is left to decide.

    Attributes:
        domains: per node int64[k_i] the strategies still in question, ascending.
        unary: per node float64[k_i] seconds.
        pairs: (u, v) with u < v -> float64[k_u, k_v] seconds; both nodes have k > 1.
        constant: seconds that every choice pays.
    """

    domains: list[Int]
    unary: list[Float]
    pairs: dict[tuple[int, int], Float]
    constant: float = 0.0
    neighbours: list[set[int]] = field(default_factory=list)

    def matrix(self, u: int, v: int) -> Float:
        """float64[k_u, k_v] between two neighbours, in that orientation."""
        return self.pairs[u, v] if u < v else self.pairs[v, u].T


def reduce(priced: PricedGraph, value_bytes: list[Float] | None = None) -> Core:
    """Drops disallowed and dominated strategies, constant edges and decided nodes.

    Strategy a of node v is dominated by b when
    ``c_a - c_b + sum_u min_s (R_vu[a, s] - R_vu[b, s]) >= 0`` (Goldstein), whatever the
    neighbours choose; of two that dominate each other the smaller index stays.

    Args:
        priced: the graph in seconds.
        value_bytes: per node float64[values, strategies]; when given (there is a budget), b must
            in addition need no more memory in any value than a.

    References:
        Goldstein, "Efficient rotamer elimination applied to protein side-chains", 1994.
    """
    graph, cost = priced.graph, priced.node_s()
    domains, unary = [], []
    for i in range(graph.num_nodes):
        rows = graph.span(i)
        legal = np.flatnonzero(graph.allowed[rows])
        domains.append(legal)
        unary.append(cost[rows][legal])
    core = Core(domains, unary, {}, 0.0, [set() for _ in domains])
    largest = max((float(u.max()) for u in unary), default=0.0)
    for (u, v), matrix in priced.edges.items():
        core.pairs[u, v] = matrix[np.ix_(domains[u], domains[v])]
        core.neighbours[u].add(v)
        core.neighbours[v].add(u)
        largest = max(largest, float(matrix.max()))
    tolerance = _TIE * largest
    for u, v in list(core.pairs):
        _normalise(core, u, v, tolerance)

    work = list(range(len(domains) - 1, -1, -1))
    queued = set(work)
    while work:
        node = work.pop()
        queued.discard(node)
        keep = _undominated(core, node, value_bytes[node] if value_bytes else None, tolerance)
        if keep.all():
            continue
        core.domains[node] = core.domains[node][keep]
        core.unary[node] = core.unary[node][keep]
        for other in sorted(core.neighbours[node]):
            u, v = min(node, other), max(node, other)
            core.pairs[u, v] = core.pairs[u, v][keep] if node == u else core.pairs[u, v][:, keep]
            _normalise(core, u, v, tolerance)
            if other not in queued:
                queued.add(other)
                work.append(other)
    for node, values in enumerate(core.unary):
        least = float(values.min())
        core.constant += least
        core.unary[node] = values - least
    return core


def _normalise(core: Core, u: int, v: int, tolerance: float) -> None:
    """Moves row and column minima of an edge into the nodes; an edge left zero is dropped."""
    matrix = core.pairs[u, v]
    rows = matrix.min(axis=1)
    matrix = matrix - rows[:, None]
    columns = matrix.min(axis=0)
    matrix = matrix - columns[None, :]
    core.unary[u] = core.unary[u] + rows
    core.unary[v] = core.unary[v] + columns
    if float(matrix.max()) <= tolerance:
        del core.pairs[u, v]
        core.neighbours[u].discard(v)
        core.neighbours[v].discard(u)
    else:
        core.pairs[u, v] = matrix


def _undominated(core: Core, node: int, sizes: Float | None, tolerance: float) -> Bool:
    cost = core.unary[node]
    k = len(cost)
    if k == 1:
        return np.ones(1, np.bool_)
    margin = cost[:, None] - cost[None, :]
    for other in core.neighbours[node]:
        matrix = core.matrix(node, other)
        margin = margin + (matrix[:, None, :] - matrix[None, :, :]).min(axis=2)
    worse = margin >= -tolerance
    if sizes is not None and sizes.size:
        local = sizes[:, core.domains[node]]
        worse &= (local[:, :, None] >= local[:, None, :]).all(axis=0)
    np.fill_diagonal(worse, False)
    index = np.arange(k)
    beaten = worse & (~worse.T | (index[None, :] < index[:, None]))
    keep: Bool = np.logical_not(np.asarray(beaten.any(axis=1), np.bool_))
    if not keep.any():
        keep[np.argmin(cost)] = True
    return keep
