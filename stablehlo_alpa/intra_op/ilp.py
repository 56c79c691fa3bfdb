"""The integer linear programme of intra-operator planning, stated in cvxpy, solved by HiGHS.

Without a binding memory budget pruning and exact elimination come first (`bounds`, `elimination`),
which solve the same programme; what follows is for the rest.

Equation 1 of the Alpa paper in its tightest linear form, over one flat vector ``x = (s, e, z)``::

    min   sum_v c_v . s_v + sum_(u,v) <R_uv, e_uv>
    (C1)  sum_i s_v[i] = 1                         every node has one strategy
    (C2)  sum_j e_uv[i, j] = s_u[i]                edge marginals
    (C3)  sum_i e_uv[i, j] = s_v[j]
    (C4)  sum_v m_p,v . s_v <= budget              at program points p, added while violated
          s binary, e >= 0 continuous (integral when s is)

The relaxation is solved first, and only a fractional one is branched on.

References:
    Zheng et al., "Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed Deep
    Learning", OSDI 2022, section 4.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.cost.strategy_graph import Float, Int
from stablehlo_alpa.errors import InfeasibleError, SolverError
from stablehlo_alpa.intra_op.bounds import prune
from stablehlo_alpa.intra_op.elimination import eliminate, elimination_order
from stablehlo_alpa.intra_op.memory import MemoryModel
from stablehlo_alpa.intra_op.presolve import Core, reduce
from stablehlo_alpa.intra_op.solution import Solution, SolveOptions

_log = logging.getLogger(__name__)

# Slack of the memory rows and of the recomputed objective, relative. HiGHS's feasibility
# tolerance is 1e-7 (its default) on rows scaled to 1.
_TOLERANCE = 1e-6
# Program points whose rows are added per round of cutting planes (heuristic).
_ROWS_PER_ROUND = 8
# Entries of a table that elimination takes at once; above it, pruning comes first (heuristic).
_SMALL_TABLE = 1_000_000


@dataclass(frozen=True, eq=False)
class _Programme:
    """Columns ``s`` of the undecided nodes, then ``e`` of their edges."""

    nodes: list[int]
    start: dict[int, int]
    num_s: int
    cost: Float
    matrix: sp.csr_matrix
    rhs: Float
    strategy: Int  # row of the graph's strategies that each s column stands for


@dataclass(frozen=True, eq=False)
class _Answer:
    status: str  # 'optimal', 'time limit' (x may be None), 'infeasible'
    x: Float | None
    bound: float


def solve(priced: PricedGraph, options: SolveOptions | None = None) -> Solution:
    """Chooses one allowed strategy per node with the least seconds per step.

    Args:
        priced: the strategy graph in seconds.
        options: budget and limits.

    Raises:
        InfeasibleError: no choice stays within the memory budget.
        SolverError: the solver failed, or decoded to another objective than it reported; or
            elimination alone was asked for and does not get through.
    """
    options = options or SolveOptions()
    begin = time.monotonic()
    deadline = begin + options.time_limit_s
    memory = MemoryModel.of(priced.graph)
    core = reduce(priced)
    method, integral, status = "elimination", False, "optimal"
    eliminated = None
    if options.method != "ilp":
        core, eliminated = _eliminate(core, deadline)
    if eliminated is not None:
        choice, bound = eliminated
    elif options.method == "elimination":
        raise SolverError(
            f"elimination was given up on {priced.graph.num_nodes} operators: its tables or its "
            "time exceed their limit; method 'auto' falls back on the integer programme"
        )
    else:
        method = "ilp"
        choice, bound, integral, status = _solve_core(priced, core, memory, [], options, deadline)
    if options.memory_budget is not None and not _fits(memory, choice, options.memory_budget):
        if options.method == "elimination":
            raise SolverError(
                f"elimination cannot keep a memory budget: its optimum needs "
                f"{memory.peak(choice)[0]:.6g} bytes, budget {options.memory_budget:.6g} bytes"
            )
        method = "ilp"
        choice, bound, integral, status = _solve_within(priced, memory, options, deadline)

    compute, communication, reshard = priced.split(choice)
    objective = compute + communication + reshard
    gap = max(0.0, objective - bound) / max(abs(objective), 1e-30)
    peak, point = memory.peak(choice)
    return Solution(
        choice=choice.astype(np.int32),
        compute_s=compute,
        communication_s=communication,
        reshard_s=reshard,
        memory_peak_bytes=peak,
        memory_peak_point=point,
        status=status,
        gap=gap if gap > options.relative_gap else 0.0 if status == "optimal" else gap,
        spent_s=time.monotonic() - begin,
        lp_integral=integral,
        method=method,
    )


def _eliminate(core: Core, deadline: float) -> tuple[Core, tuple[Int, float] | None]:
    """Solves without a budget by elimination, pruning first where that needs large tables.

    Returns:
        The core, pruned if it was, and the choice with its seconds; None when it was given up.
    """
    if elimination_order(core, _SMALL_TABLE) is None:
        core = prune(core, _SMALL_TABLE, deadline)
    found = eliminate(core, deadline=deadline)
    if found is None:
        return core, None
    _compare(core, found.labels, found.value, 1e-9)
    return core, (_decode(core, found.labels), found.value)


def _fits(memory: MemoryModel, choice: Int, budget: float) -> bool:
    return memory.peak(choice)[0] <= budget * (1 + _TOLERANCE)


def _solve_within(
    priced: PricedGraph, memory: MemoryModel, options: SolveOptions, deadline: float
) -> tuple[Int, float, bool, str]:
    """Solves under the budget by cutting planes: rows (C4) are added while one is violated."""
    budget = options.memory_budget
    assert budget is not None
    lean, needed = _least_memory(priced, memory, options, deadline)
    if not _fits(memory, lean, budget):
        _, point = memory.peak(lean)
        largest = memory.largest(lean, point)
        listed = ", ".join(f"{name} ({size:.4g} bytes)" for name, size in largest)
        raise InfeasibleError(
            f"no plan fits the memory budget of {budget:.6g} bytes per device: the least reachable "
            f"peak is {needed:.6g} bytes, {needed - budget:.6g} more; largest live tensors there: "
            f"{listed}",
            needed_bytes=needed,
            budget_bytes=budget,
            largest=largest,
        )
    sizes = _bytes_by_node(priced)
    core = reduce(priced, sizes)
    points: list[int] = []
    best: tuple[float, Int] = (sum(priced.split(lean)), lean)
    bound = 0.0
    while True:
        try:
            choice, bound, integral, status = _solve_core(
                priced, core, memory, points, options, deadline
            )
        except TimeoutError:
            return best[1], bound, False, "time limit"
        if _fits(memory, choice, budget):
            if status != "optimal" and best[0] < sum(priced.split(choice)):
                choice = best[1]
            return choice, bound, integral, status
        if status != "optimal":
            return best[1], bound, False, status
        usage = memory.usage(choice)[memory.points]
        order = np.argsort(-usage, kind="stable")
        new = [
            int(memory.points[i])
            for i in order
            if usage[i] > budget and int(memory.points[i]) not in points
        ][:_ROWS_PER_ROUND]
        if not new:
            raise SolverError(
                f"solver broke its memory rows: peak {memory.peak(choice)[0]} bytes, budget "
                f"{budget} bytes"
            )
        points += new
        _log.info("memory budget: %d program points constrained", len(points))


def _bytes_by_node(priced: PricedGraph) -> list[Float]:
    g = priced.graph
    values: list[list[Float]] = [[] for _ in range(g.num_nodes)]
    for v, node in enumerate(g.value_node.tolist()):
        values[node].append(g.value_bytes[g.value_offset[v] : g.value_offset[v + 1]])
    counts = g.num_strategies
    return [np.stack(x) if x else np.zeros((0, counts[i])) for i, x in enumerate(values)]


def _least_memory(
    priced: PricedGraph, memory: MemoryModel, options: SolveOptions, deadline: float
) -> tuple[Int, float]:
    """A choice of the least peak memory and that peak: min z, rows . s <= z.

    A single point bounds the peak from below; often the choice that is least in every node meets
    that bound and nothing has to be solved.
    """
    graph = priced.graph
    sizes = _bytes_by_node(priced)
    choice = np.zeros(graph.num_nodes, np.int64)
    for i in range(graph.num_nodes):
        allowed = np.flatnonzero(graph.allowed[graph.span(i)])
        choice[i] = allowed[np.argmin(sizes[i][:, allowed].sum(axis=0))] if len(allowed) else 0
    # When one strategy is least in every value of its node, the choice is least everywhere.
    if (
        all(
            (s[:, choice[i], None] <= s[:, graph.allowed[graph.span(i)]]).all()
            for i, s in enumerate(sizes)
        )
        or not memory.points.size
    ):
        return choice, memory.peak(choice)[0]
    columns = np.flatnonzero(graph.allowed)
    owner = np.repeat(np.arange(graph.num_nodes), graph.num_strategies)[columns]
    one = sp.csr_matrix(
        (np.ones(len(columns)), (owner, np.arange(len(columns)))),
        shape=(graph.num_nodes, len(columns)),
    )
    points = [memory.peak(choice)[1]]
    unit = max(memory.peak(choice)[0], 1.0)
    best = choice
    while True:
        s = cp.Variable(len(columns), boolean=(np.arange(len(columns)),))
        z = cp.Variable()
        rows = memory.rows(points)[:, columns] / unit
        problem = cp.Problem(cp.Minimize(z), [one @ s == 1, rows @ s <= z])
        left = deadline - time.monotonic()
        if left <= 0:
            return best, memory.peak(best)[0]
        _run(problem, left, options.relative_gap)
        if s.value is None:
            return best, memory.peak(best)[0]
        choice = np.zeros(graph.num_nodes, np.int64)
        picked = np.flatnonzero(np.asarray(s.value) > 0.5)
        choice[owner[picked]] = columns[picked] - graph.node_offset[owner[picked]]
        peak, point = memory.peak(choice)
        if peak < memory.peak(best)[0]:
            best = choice
        if point in points or peak <= float(z.value) * unit * (1 + _TOLERANCE):
            return best, memory.peak(best)[0]
        points.append(point)


def _solve_core(
    priced: PricedGraph,
    core: Core,
    memory: MemoryModel,
    points: list[int],
    options: SolveOptions,
    deadline: float,
) -> tuple[Int, float, bool, str]:
    """Solves what the presolve left. Returns choice, lower bound (s), LP integral, status."""
    programme = _assemble(priced, core)
    labels = np.zeros(len(core.domains), np.int64)
    if not programme.nodes:
        return _decode(core, labels), core.constant, True, "optimal"
    budget = options.memory_budget
    rows, limit = sp.csr_matrix((0, programme.num_s)), np.zeros(0)
    if points and budget is not None:
        full = memory.rows(points)
        fixed = np.zeros(full.shape[1])
        for i, domain in enumerate(core.domains):
            if len(domain) == 1:
                fixed[priced.graph.node_offset[i] + domain[0]] = 1.0
        unit = max(budget, 1.0)
        rows = full[:, programme.strategy] / unit
        # Half of the slack that `_fits` grants: rounding must not cut off a plan that fits exactly.
        limit = (budget - full @ fixed) / unit + _TOLERANCE / 2

    # Milliseconds, or finer when every cost is small: HiGHS's tolerances are absolute.
    scale = max(1e3, 1.0 / max(float(programme.cost.max()), 1e-30))
    answer = _optimise(programme, rows, limit, scale, False, options, deadline)
    if answer.status == "infeasible":
        raise _contradiction(budget)
    if answer.x is None:
        if points:
            raise TimeoutError
        _round(core, programme, np.zeros(programme.num_s), labels)
        return _decode(core, labels), core.constant, False, "time limit"
    relaxed = answer.x[: programme.num_s]
    lower = core.constant + answer.bound / scale
    _round(core, programme, relaxed, labels)
    integral = bool((np.minimum(relaxed, 1 - relaxed) < _TOLERANCE).all())
    if integral and answer.status == "optimal":
        _compare(core, labels, core.constant + answer.bound / scale)
        return _decode(core, labels), lower, True, "optimal"
    if not points:
        # Ties leave fractions although an integral vertex is as good: round and descend.
        _descend(core, labels)
        value = _value(core, labels)
        if value - lower <= 1e-9 * max(abs(value), 1e-30):
            return _decode(core, labels), lower, True, "optimal"
    exact = _optimise(programme, rows, limit, scale, True, options, deadline)
    if exact.status == "infeasible":
        raise _contradiction(budget)
    if exact.x is None:
        if points:
            raise TimeoutError
        return _decode(core, labels), lower, False, "time limit"
    rounded = labels.copy()
    _round(core, programme, exact.x[: programme.num_s], labels)
    if exact.status == "optimal":
        reported = float(programme.cost @ exact.x) + core.constant
        _compare(core, labels, reported)
    elif not points and _value(core, rounded) < _value(core, labels):
        labels = rounded
    return (
        _decode(core, labels),
        max(lower, core.constant + exact.bound / scale),
        False,
        exact.status,
    )


def _contradiction(budget: float | None) -> SolverError:
    return SolverError(
        f"solver calls a feasible programme infeasible (memory budget {budget} bytes)"
    )


def _assemble(priced: PricedGraph, core: Core) -> _Programme:
    """Data -> cost vector and (C1)-(C3) as one sparse matrix."""
    nodes = [i for i, d in enumerate(core.domains) if len(d) > 1]
    sizes = [len(core.domains[i]) for i in nodes]
    begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    start = dict(zip(nodes, begin[:-1].tolist(), strict=True))
    num_s = int(begin[-1])
    strategy = [priced.graph.node_offset[i] + core.domains[i] for i in nodes]
    cost = [core.unary[i] for i in nodes]
    rows = [np.repeat(np.arange(len(nodes)), sizes)]
    columns = [np.arange(num_s)]
    entries = [np.ones(num_s)]
    row, column = len(nodes), num_s
    for (u, v), matrix in core.pairs.items():
        ku, kv = matrix.shape
        e = column + np.arange(ku * kv)
        rows += [row + np.repeat(np.arange(ku), kv), row + np.arange(ku)]
        columns += [e, start[u] + np.arange(ku)]
        entries += [np.ones(ku * kv), -np.ones(ku)]
        row += ku
        rows += [row + np.tile(np.arange(kv), ku), row + np.arange(kv)]
        columns += [e, start[v] + np.arange(kv)]
        entries += [np.ones(ku * kv), -np.ones(kv)]
        row += kv
        column += ku * kv
        cost.append(matrix.ravel())
    matrix = sp.csr_matrix(
        (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))),
        shape=(row, column),
    )
    rhs = np.zeros(row)
    rhs[: len(nodes)] = 1.0
    flat = np.concatenate(cost) if cost else np.zeros(0)
    return _Programme(
        nodes, start, num_s, flat, matrix, rhs, np.concatenate(strategy or [np.zeros(0, np.int64)])
    )


def _optimise(
    programme: _Programme,
    rows: sp.csr_matrix,
    limit: Float,
    scale: float,
    is_integral: bool,
    options: SolveOptions,
    deadline: float,
) -> _Answer:
    """Variables -> constraints -> objective -> solve. The bound is in scaled seconds."""
    left = deadline - time.monotonic()
    if left <= 0:
        return _Answer("time limit", None, 0.0)
    size = len(programme.cost)
    # Bounds as an attribute reach HiGHS as column bounds; as constraints they would be rows.
    upper = np.where(np.arange(size) < programme.num_s, 1.0, np.inf)
    if is_integral:
        whole = (np.arange(programme.num_s),)
        x = cp.Variable(size, boolean=whole, bounds=[np.zeros(size), upper])
    else:
        x = cp.Variable(size, bounds=[np.zeros(size), upper])
    constraints = [programme.matrix @ x == programme.rhs]
    if rows.shape[0]:
        pad = sp.csr_matrix((rows.shape[0], size - programme.num_s))
        constraints.append(sp.hstack([rows, pad], format="csr") @ x <= limit)
    problem = cp.Problem(cp.Minimize((scale * programme.cost) @ x), constraints)
    status = _run(problem, left, options.relative_gap)
    if status == "infeasible":
        return _Answer(status, None, 0.0)
    if x.value is None:
        return _Answer("time limit", None, 0.0)
    value = np.asarray(x.value)
    bound = float(problem.value)
    if status != "optimal" or is_integral:
        info = problem.solver_stats.extra_stats
        bound = max(0.0, float(getattr(info, "mip_dual_bound", 0.0))) if is_integral else 0.0
        bound = bound if np.isfinite(bound) else 0.0
    return _Answer(status, value, bound)


def _run(problem: cp.Problem, time_limit_s: float, relative_gap: float) -> str:
    """Runs HiGHS. Returns 'optimal', 'time limit' or 'infeasible'."""
    try:
        problem.solve(
            solver=cp.HIGHS,
            time_limit=float(time_limit_s),
            mip_rel_gap=float(relative_gap),
            mip_abs_gap=0.0,
            random_seed=0,
            # HiGHS 1.15's presolve calls feasible programmes with continuous e and a memory row
            # infeasible (seen with tied costs); the relaxation is not touched by it.
            presolve="off" if problem.is_mixed_integer() else "choose",
        )
    except cp.SolverError as error:
        raise SolverError(f"HiGHS failed: {error}") from error
    if problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return "optimal"
    if problem.status == cp.USER_LIMIT:
        return "time limit"
    if problem.status in (cp.INFEASIBLE, cp.INFEASIBLE_INACCURATE):
        return "infeasible"
    raise SolverError(f"HiGHS ended with status {problem.status!r}")


def _round(core: Core, programme: _Programme, s: Float, labels: Int) -> None:
    for i in programme.nodes:
        begin = programme.start[i]
        share = s[begin : begin + len(core.domains[i])]
        # Equal shares: the cheaper strategy, then the smaller index.
        ties = np.flatnonzero(share >= share.max() - _TOLERANCE)
        labels[i] = ties[np.argmin(core.unary[i][ties])]


def _descend(core: Core, labels: Int) -> None:
    """One-node moves while they help, nodes in order."""
    for _ in range(20):
        changed = False
        for i, cost in enumerate(core.unary):
            if len(cost) == 1:
                continue
            total = cost.copy()
            for j in core.neighbours[i]:
                total += core.matrix(i, j)[:, labels[j]]
            best = int(np.argmin(total))
            if total[best] < total[labels[i]]:
                labels[i], changed = best, True
        if not changed:
            return


def _value(core: Core, labels: Int) -> float:
    nodes = sum(float(c[labels[i]]) for i, c in enumerate(core.unary))
    return (
        core.constant
        + nodes
        + sum(float(m[labels[u], labels[v]]) for (u, v), m in core.pairs.items())
    )


def _compare(
    core: Core, labels: npt.NDArray[np.int64], reported: float, tolerance: float = 1e-5
) -> None:
    actual = _value(core, labels)
    if abs(actual - reported) > tolerance * max(abs(actual), abs(reported)) + 1e-15:
        raise SolverError(f"solver reports {reported} s, its decoded choice costs {actual} s")


def _decode(core: Core, labels: Int) -> Int:
    return np.array([d[labels[i]] for i, d in enumerate(core.domains)], np.int64)
