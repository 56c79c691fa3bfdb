"""The integer linear programme of intra-operator planning, stated in cvxpy, solved by HiGHS.

Equation 1 of the Alpa paper in its tightest linear form, over one flat vector ``x = (s, e)``::

    min   sum_v c_v . s_v + sum_(u,v) <R_uv, e_uv>
    (C1)  sum_i s_v[i] = 1                         every node has one strategy
    (C2)  sum_j e_uv[i, j] = s_u[i]                edge marginals
    (C3)  sum_i e_uv[i, j] = s_v[j]
    (C4)  sum_v m_p,v . s_v + sum_(u,v) <m_p,uv, e_uv> <= budget
                                                   at program points p
          s binary, e >= 0 continuous (integral when s is)

The relaxation is solved first, and only a fractional one is branched on. It is the reference for
the exact solver, and solves what that gives up and what a memory budget leaves open. So few plans
need it, and cvxpy takes so long to import (2 s), that it is imported where it is used.

References:
    Zheng et al., "Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed Deep
    Learning", OSDI 2022, section 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from stablehlo_alpa.cost.strategy_graph import Float, Int
from stablehlo_alpa.errors import SolverError
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.highs import run_highs
from stablehlo_alpa.intra_op.memory import MemoryModel
from stablehlo_alpa.intra_op.work import Work

if TYPE_CHECKING:
    import cvxpy as cp

# HiGHS's feasibility tolerance is 1e-7 (its default) on rows scaled to 1; ten times that decides
# whether a number is integral, or a plan within its budget.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """Constraints (C4): ``usage @ s + pairs @ e <= budget``.

    Attributes:
        usage: float64[P, C] bytes of each strategy at each program point.
        budget: bytes per device.
        pairs: of each point, by number of an edge, the bytes of its pairs, as its table has them.
    """

    usage: sp.csr_matrix
    budget: float
    pairs: tuple[Mapping[int, Float], ...] = ()

    @classmethod
    def of(
        cls, costs: Costs, memory: MemoryModel, points: Sequence[int], budget: float
    ) -> MemoryRows:
        """Those of program points over the strategies of a problem."""
        usage = sp.csr_matrix(memory.rows(points)[:, costs.rows])
        return cls(usage, budget, tuple(pair_bytes(costs, memory, point) for point in points))


def pair_bytes(costs: Costs, memory: MemoryModel, point: int) -> Mapping[int, Float]:
    """By number of an edge of a problem the bytes of copies at a point, as its table is."""
    return {
        costs.edge_numbers[u, v]: table[costs.own(u)][:, costs.own(v)]
        for (u, v), table in memory.pairs(point).items()
    }


@dataclass(frozen=True, eq=False)
class IntegerAnswer:
    """What HiGHS found.

    Attributes:
        status: 'optimal', 'time limit' or 'infeasible'.
        labels: int64[N] places within each node; None when no plan was found.
        bound: no plan costs less. Seconds.
        lp_integral: the relaxation alone gave the plan.
    """

    status: str
    labels: Int | None
    bound: float
    lp_integral: bool


def solve_ilp(
    costs: Costs,
    rows: MemoryRows | None,
    work: Work,
    relative_gap: float,
    *,
    enough_s: float = -np.inf,
    start: Int | None = None,
) -> IntegerAnswer:
    """Solves the programme with the memory rows given.

    Args:
        costs: the problem, all finite.
        rows: memory constraints over the strategies of ``costs``.
        work: what may be done before the best plan so far is taken.
        relative_gap: proved gap at which HiGHS stops.
        enough_s: seconds of a plan that is good enough, at which it stops as well. The relaxation
            is then not solved by itself: its bound is not asked for.
        start: int64[N] places of a plan to begin with.

    Raises:
        SolverError: HiGHS failed, or its answer decodes to other seconds than it reports.
    """
    programme = Programme.of(costs, rows)
    decided = np.zeros(len(costs.sizes), np.int64)
    if not programme.nodes.size:
        value = costs.value(decided)
        return IntegerAnswer("optimal", decided, value, lp_integral=True)
    bound = -np.inf
    if np.isneginf(enough_s):
        relaxed = programme.solve(False, work, relative_gap)
        if relaxed.status != "optimal" or relaxed.x is None:
            return IntegerAnswer(relaxed.status, None, -np.inf, lp_integral=False)
        shares = relaxed.x[: programme.num_s]
        if bool((np.minimum(shares, 1 - shares) < TOLERANCE).all()):
            labels = programme.round(shares)
            _compare(costs.value(labels), relaxed.bound)
            return IntegerAnswer("optimal", labels, relaxed.bound, lp_integral=True)
        bound = relaxed.bound
    exact = programme.solve(True, work, relative_gap, enough_s, start)
    bound = max(bound, exact.bound)
    if exact.x is None:
        return IntegerAnswer(exact.status, None, bound, lp_integral=False)
    labels = programme.round(exact.x[: programme.num_s])
    if exact.status == "optimal":
        _compare(costs.value(labels), programme.seconds(exact.x))
    return IntegerAnswer(exact.status, labels, bound, lp_integral=False)


def _compare(actual: float, reported: float) -> None:
    if abs(actual - reported) > 1e-5 * max(abs(actual), abs(reported)) + 1e-15:
        raise SolverError(f"solver reports {reported} s, its decoded choice costs {actual} s")


@dataclass(frozen=True, eq=False)
class _Vertex:
    """A point of the relaxation or of the programme."""

    status: str
    x: Float | None
    bound: float


@dataclass(frozen=True, eq=False)
class Programme:
    """Columns ``s`` of the nodes with several strategies, then ``e`` of the edges between them.

    Attributes:
        costs: what it was made from.
        nodes, start: int64[K] nodes with several strategies, and the column of each one's first.
        first: by number of an edge between two of them its first column.
        num_s: columns ``s``, the binary ones.
        cost, constant: float64[columns] and what every plan pays. Seconds.
        matrix, rhs: (C1) to (C3).
        memory, limit: (C4), in parts of the budget.
    """

    costs: Costs
    nodes: Int
    start: Int
    first: Mapping[int, int]
    num_s: int
    cost: Float
    constant: float
    matrix: sp.csr_matrix
    rhs: Float
    memory: sp.csr_matrix
    limit: Float

    @classmethod
    def of(cls, costs: Costs, rows: MemoryRows | None) -> Programme:
        """Data -> cost vector, (C1)-(C3) as one sparse matrix, (C4) as another."""
        is_open = costs.sizes > 1
        nodes = np.flatnonzero(is_open)
        sizes = costs.sizes[nodes]
        start = np.concatenate([[0], np.cumsum(sizes)])
        num_s = int(start[-1])
        columns_of = np.repeat(is_open, costs.sizes)
        node_s = costs.node_s.copy()
        constant = float(node_s[~columns_of].sum())
        place = np.full(len(costs.sizes), -1)
        place[nodes] = start[:-1]

        index = [(np.repeat(np.arange(len(nodes)), sizes), np.arange(num_s))]
        entries = [np.ones(num_s)]
        edge_cost: list[Float] = []
        # By number of an edge its first column.
        first: dict[int, int] = {}
        row, column = len(nodes), num_s
        for number, (u, v) in enumerate(costs.edges.tolist()):
            table = costs.tables[number]
            ku, kv = table.shape
            if ku == 1 or kv == 1:
                # One end is decided: the table is the other's cost.
                free, amount = (v, table[0]) if ku == 1 else (u, table[:, 0])
                node_s[costs.span(free)] += amount
                constant += float(table[0, 0]) if ku == kv == 1 else 0.0
                continue
            first[number], e = column, column + np.arange(ku * kv)
            index += [
                (row + np.repeat(np.arange(ku), kv), e),
                (row + np.arange(ku), place[u] + np.arange(ku)),
                (row + ku + np.tile(np.arange(kv), ku), e),
                (row + ku + np.arange(kv), place[v] + np.arange(kv)),
            ]
            entries += [np.ones(ku * kv), -np.ones(ku), np.ones(ku * kv), -np.ones(kv)]
            edge_cost.append(table.ravel())
            row += ku + kv
            column += ku * kv
        at = (np.concatenate([i for i, _ in index]), np.concatenate([j for _, j in index]))
        rhs = np.zeros(row)
        rhs[: len(nodes)] = 1.0
        memory, limit = _memory(costs, rows, first, column)
        return cls(
            costs=costs,
            nodes=nodes,
            start=start[:-1],
            first=first,
            num_s=num_s,
            cost=np.concatenate([node_s[columns_of], *edge_cost]),
            constant=constant,
            matrix=sp.csr_matrix((np.concatenate(entries), at), shape=(row, column)),
            rhs=rhs,
            memory=memory,
            limit=limit,
        )

    def state(self, *, is_integral: bool) -> tuple[cp.Problem, cp.Variable, float]:
        """Variables -> constraints -> objective, for any solver of cvxpy.

        Returns:
            The problem, its columns, and what seconds were multiplied with in the objective, the
            constant left out.
        """
        import cvxpy as cp

        # Milliseconds, or finer when every cost is small: HiGHS's tolerances are absolute.
        scale = max(1e3, 1.0 / max(float(self.cost.max()), 1e-30))
        size = len(self.cost)
        # Bounds as an attribute reach HiGHS as column bounds; as constraints they would be rows.
        upper = np.where(np.arange(size) < self.num_s, 1.0, np.inf)
        bounds = [np.zeros(size), upper]
        if is_integral:
            x = cp.Variable(size, boolean=(np.arange(self.num_s),), bounds=bounds)
        else:
            x = cp.Variable(size, bounds=bounds)
        constraints = [self.matrix @ x == self.rhs]
        if self.memory.shape[0]:
            constraints.append(self.memory @ x <= self.limit)
        return cp.Problem(cp.Minimize((scale * self.cost) @ x), constraints), x, scale

    def solve(
        self,
        is_integral: bool,
        work: Work,
        relative_gap: float,
        enough_s: float = -np.inf,
        start: Int | None = None,
    ) -> _Vertex:
        """Runs HiGHS; see `solve_ilp`."""
        if work.left_s() <= 0:
            return _Vertex("time limit", None, -np.inf)
        problem, x, scale = self.state(is_integral=is_integral)
        target = scale * (enough_s - self.constant)
        point = None if start is None else self.point(start)
        answer = run_highs(problem, work, relative_gap, target=target, start=point)
        bound = self.constant + answer.bound / scale
        if not answer.has_values or x.value is None:
            return _Vertex(answer.status, None, bound if answer.status == "time limit" else -np.inf)
        return _Vertex(answer.status, np.asarray(x.value), bound)

    def point(self, labels: Int) -> Float:
        """float64[columns] of a plan, places within each node."""
        x = np.zeros(len(self.cost))
        x[self.start + labels[self.nodes]] = 1.0
        for number, begin in self.first.items():
            u, v = labels[self.costs.edges[number]].tolist()
            x[begin + u * self.costs.tables[number].shape[1] + v] = 1.0
        return x

    def seconds(self, x: Float) -> float:
        """Seconds of a point."""
        return self.constant + float(self.cost @ x)

    def round(self, shares: Float) -> Int:
        """The largest share of each node; of equal ones the cheaper, then the first."""
        labels = np.zeros(len(self.costs.sizes), np.int64)
        for node, begin in zip(self.nodes.tolist(), self.start.tolist(), strict=True):
            share = shares[begin : begin + int(self.costs.sizes[node])]
            ties = np.flatnonzero(share >= share.max() - TOLERANCE)
            labels[node] = ties[np.argmin(self.cost[begin + ties])]
        return labels


def _memory(
    costs: Costs, rows: MemoryRows | None, first: Mapping[int, int], num_columns: int
) -> tuple[sp.csr_matrix, Float]:
    """(C4) in parts of the budget.

    Args:
        costs: the problem.
        rows: memory constraints.
        first: by number of an edge between two nodes with several strategies its first column.
        num_columns: of the programme.
    """
    if rows is None or not rows.usage.shape[0]:
        return sp.csr_matrix((0, num_columns)), np.zeros(0)
    usage, columns_of = rows.usage.toarray(), np.repeat(costs.sizes > 1, costs.sizes)
    joint = np.zeros((len(usage), num_columns - int(columns_of.sum())))
    for point, pairs in enumerate(rows.pairs):
        for number, table in pairs.items():
            u, v = costs.edges[number].tolist()
            if number in first:
                begin = first[number] - int(columns_of.sum())
                joint[point, begin : begin + table.size] += table.ravel()
            elif table.shape[0] == 1:
                usage[point, costs.span(v)] += table[0]
            else:
                usage[point, costs.span(u)] += table[:, 0]
    unit, fixed = max(rows.budget, 1.0), usage[:, ~columns_of].sum(axis=1)
    parts = [sp.csr_matrix(usage[:, columns_of]), sp.csr_matrix(joint)]
    # Half the tolerance that plans are accepted with: rounding must not cut off one that fits
    # exactly.
    limit = (rows.budget - fixed) / unit + TOLERANCE / 2
    return sp.hstack(parts, format="csr") / unit, limit
