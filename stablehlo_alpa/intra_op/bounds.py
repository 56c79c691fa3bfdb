"""Exact pruning by a lower bound: strategies that no better plan can use are dropped.

The linear relaxation of the programme without a memory budget is tight on strategy graphs, and its
dual can be climbed without a solver. Costs are moved between nodes and edges, which leaves every
plan's cost as it is (a reparametrisation)::

    f(x) = sum_v c_v(x_v) + sum_(u,v) R_uv(x_u, x_v)  >=  sum_v min c_v + sum_(u,v) min R_uv = L

Sweeping over the nodes forth and back, each node takes ``min_b R_vu(., b)`` from all its edges and
shares what it has among the edges that lead onwards. No step lowers L. A plan F is read off on the
way: each node takes its cheapest strategy given those decided before it.

Exactness: a plan with strategy a at node v costs at least ::

    L + c_v(a) - min c_v + sum_u (min_b R_vu(a, b) - min R_vu)

Where this exceeds f(F), no plan with (v, a) is better than F, and a is dropped; the strategies of
F stay. So the least cost over what is left is the least cost over everything. The excess over L is
taken when v has collected from its edges, where it is largest; L of the sweep's start is at most
that of this moment.

References:
    Kolmogorov, "Convergent tree-reweighted message passing for energy minimization", PAMI 2006.
    Kolmogorov, "A new look at reweighted message passing", PAMI 2015.
"""

from __future__ import annotations

import logging
import math
import time

import numpy as np

from stablehlo_alpa.cost.strategy_graph import Bool, Float, Int
from stablehlo_alpa.intra_op.elimination import elimination_order
from stablehlo_alpa.intra_op.presolve import Core

_log = logging.getLogger(__name__)

# Slack of the comparison with the best plan, relative: rounding must not drop an optimum.
_SLACK = 1e-10
# Sweeps between two looks at the bound (heuristic), and in all.
_PERIOD = 10
_SWEEPS = 400
# The gap must shrink to this part of itself in a period, or it is stuck (heuristic).
_PROGRESS = 0.99


def prune(core: Core, max_table: int, deadline: float = math.inf) -> Core:
    """Drops strategies until elimination takes no table above a size, as far as possible.

    Args:
        core: nodes with costs and the edges between them; returned as it is when an entry is
            infinite.
        max_table: entries of the largest table of the elimination that is aimed at.
        deadline: `time.monotonic` seconds after which it stops.

    Returns:
        A core of the same nodes and cost, with fewer strategies: it has an optimum of ``core``.
    """
    tables = [*core.unary, *core.pairs.values()]
    if not all(bool(np.isfinite(table).all()) for table in tables):
        return core
    dual = _Dual(core)
    pruned, last_gap = core, math.inf
    for sweep in range(1, _SWEEPS + 1):
        late = time.monotonic() > deadline
        if sweep % _PERIOD and not late:
            dual.sweep(forward=bool(sweep % 2))
            continue
        bound = dual.bound()
        dual.sweep(forward=bool(sweep % 2))
        pruned = _restrict(core, dual.kept(bound))
        _log.info("pruning: sweep %d, bound %.9g, best plan %.9g", sweep, bound, dual.best)
        gap = dual.best - bound
        done = late or gap <= _SLACK * abs(dual.best) or gap > _PROGRESS * last_gap
        last_gap = gap
        if done or elimination_order(pruned, max_table) is not None:
            break
    return pruned


class _Dual:
    """A reparametrisation of a core, its bound, and the best plan met."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._constant = core.constant
        self._unary = [cost.copy() for cost in core.unary]
        pairs = {pair: matrix.copy() for pair, matrix in core.pairs.items()}
        self._pairs = list(pairs.values())
        # Edges of each node to smaller and to larger ones, as views with the node on axis 0.
        self._below: list[list[tuple[int, Float]]] = [[] for _ in core.unary]
        self._above: list[list[tuple[int, Float]]] = [[] for _ in core.unary]
        for (u, v), matrix in sorted(pairs.items()):
            self._above[u].append((v, matrix))
            self._below[v].append((u, matrix.T))
        self._excess = list(self._unary)
        self._labels = np.zeros(len(core.unary), np.int64)
        self._best_labels = self._labels.copy()
        self.best = self._value(self._labels)

    def sweep(self, *, forward: bool) -> None:
        """Visits every node once, in rising or falling order."""
        nodes = range(len(self._unary))
        for node in nodes if forward else reversed(nodes):
            decided, open_ = self._below[node], self._above[node]
            if not forward:
                decided, open_ = open_, decided
            cost = self._unary[node]
            for _, matrix in (*decided, *open_):
                least = matrix.min(axis=1)
                cost = cost + least
                matrix -= least[:, None]
            least_cost = float(cost.min())
            self._constant += least_cost
            cost = cost - least_cost
            self._excess[node] = cost
            total = cost.copy()
            for other, matrix in decided:
                total += matrix[:, self._labels[other]]
            self._labels[node] = total.argmin()
            if open_:
                share = cost / max(len(open_), len(decided))
                for _, matrix in open_:
                    matrix += share[:, None]
                cost = cost - len(open_) * share
            self._unary[node] = cost
        value = self._value(self._labels)
        if value < self.best:
            self.best = value
            self._best_labels = self._labels.copy()

    def bound(self) -> float:
        """L: no plan costs less."""
        nodes = sum(float(cost.min()) for cost in self._unary)
        return self._constant + nodes + sum(float(matrix.min()) for matrix in self._pairs)

    def kept(self, bound: float) -> list[Bool]:
        """Per node bool[k], the strategies that a better plan than the best may use.

        Args:
            bound: L before the last sweep.
        """
        margin = self.best - bound + _SLACK * abs(self.best)
        kept = [np.asarray(excess <= margin, np.bool_) for excess in self._excess]
        for keep, label in zip(kept, self._best_labels, strict=True):
            keep[label] = True
        return kept

    def _value(self, labels: Int) -> float:
        """Cost of a plan by the original tables."""
        nodes = sum(float(cost[k]) for cost, k in zip(self._core.unary, labels, strict=True))
        pairs = self._core.pairs.items()
        return (
            self._core.constant + nodes + sum(float(m[labels[u], labels[v]]) for (u, v), m in pairs)
        )


def _restrict(core: Core, kept: list[Bool]) -> Core:
    return Core(
        [domain[keep] for domain, keep in zip(core.domains, kept, strict=True)],
        [cost[keep] for cost, keep in zip(core.unary, kept, strict=True)],
        {(u, v): matrix[np.ix_(kept[u], kept[v])] for (u, v), matrix in core.pairs.items()},
        core.constant,
        [set(near) for near in core.neighbours],
    )
