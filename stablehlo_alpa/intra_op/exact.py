"""The exact solver of the programme without a memory budget, which runs in the compiler.

Dominated strategies go first, nodes of at most two neighbours next, then a lower bound drops what
no better plan uses, until bucket elimination of the rest takes small tables; where it does not, it
branches on what most others depend on. Formulas and the
proofs that each step keeps an optimum stand beside the sources in ``cpp/solver``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stablehlo_alpa import _core
from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost.strategy_graph import Bool, Int
from stablehlo_alpa.errors import SolverError
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.work import Work

# Entries of tables that are looked at per second, on one core of a Xeon of 2023: between 1e8 and
# 1e9.
_ENTRIES_PER_S = 3e8

_STATUS: tuple[Literal["optimal", "given up", "infeasible"], ...] = (
    "optimal",
    "given up",
    "infeasible",
)


@dataclass(frozen=True, eq=False)
class Minimum:
    """What the exact solver found.

    Attributes:
        status: 'optimal'; 'given up': tables or time exceed their limit; 'infeasible': every plan
            costs +inf.
        labels: int64[N] places of the strategies of an optimum, or of the best plan met: where time
            was over before any was, the cheapest of every node. Empty when there is none.
        bound: no plan costs less. Seconds.
        kept: bool[C] strategies that were not dropped; an optimum is among them.
        nodes, choices: nodes of several strategies, and these, after the first reductions.
        sweeps: passes over the nodes that the lower bound took; 0 when it was not needed.
        width: most neighbours of a node when it was eliminated.
        largest, work: entries of the largest table of the elimination, and of all.
        steps, computed: nodes eliminated, and tables computed, the others being repetitions.
        effort: entries of tables that were looked at.
    """

    status: Literal["optimal", "given up", "infeasible"]
    labels: Int
    bound: float
    kept: Bool
    nodes: int
    choices: int
    sweeps: int
    width: int
    largest: int
    work: int
    steps: int
    computed: int
    effort: int = 0


def minimize(
    costs: Costs,
    *,
    cache: SolverCache | None = None,
    work: Work | None = None,
    limit_s: float = np.inf,
    max_table: int | None = None,
    max_work: int | None = None,
    small_table: int | None = None,
    max_branches: int | None = None,
    max_sweeps: int | None = None,
) -> Minimum:
    """Chooses a strategy per node so that the sum of node and edge seconds is least.

    Args:
        costs: the problem; +inf forbids a strategy or a pair.
        cache: tables to share with other calls: what repeats is computed once.
        work: what may be done; what is done is added.
        limit_s: a limit of its own, in seconds of work.
        max_table: entries of the largest table above which elimination is not begun.
        max_work: entries of all tables together, likewise.
        small_table: entries above which strategies are dropped by the lower bound first.
        max_branches: problems with a strategy fixed that are looked at instead of giving up.
        max_sweeps: passes over the nodes by which the lower bound is raised.
    """
    work = work or Work()
    entries = _ENTRIES_PER_S * min(limit_s, work.left_s())
    try:
        found = _core.minimize(
            costs.sizes,
            costs.node_s,
            costs.edges,
            costs.flat_tables,
            cache,
            min(work.clock_s(), 1e9),
            int(min(entries, np.iinfo(np.int64).max / 2)),
            max_table,
            max_work,
            small_table,
            max_branches,
            max_sweeps,
        )
    except _core.CompilerError as error:
        raise SolverError(str(error)) from error

    def count(name: str) -> int:
        return int(found[name][0])

    work.spend(count("effort") / _ENTRIES_PER_S, is_late=bool(count("is_late")))
    status, labels = _STATUS[count("status")], found["choice"].astype(np.int64)
    if status == "given up" and not labels.size:
        spans = (costs.node_s[costs.span(node)] for node in range(len(costs.sizes)))
        labels = np.array([own.argmin() for own in spans], np.int64)
    return Minimum(
        status=status,
        labels=labels,
        bound=float(found["bound"][0]),
        kept=found["kept"].astype(np.bool_),
        nodes=count("num_nodes"),
        choices=count("num_choices"),
        sweeps=count("num_sweeps"),
        width=count("width"),
        largest=count("largest"),
        work=count("work"),
        steps=count("num_steps"),
        computed=count("num_computed"),
        effort=count("effort"),
    )


def drop(costs: Costs, cutoff: float, sweeps: int) -> tuple[Bool, float]:
    """Drops strategies that no plan of at most some seconds uses.

    Args:
        costs: the problem, all finite.
        cutoff: seconds.
        sweeps: passes over the nodes that raise the lower bound.

    Returns:
        bool[C] what is left, and the lower bound in seconds.
    """
    found = _core.drop_choices(
        costs.sizes, costs.node_s, costs.edges, costs.flat_tables, cutoff, sweeps
    )
    return found["kept"].astype(np.bool_), float(found["bound"][0])
