"""Strategies of one problem in another: the same operators, other sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from stablehlo_alpa._core import SolverCache
from stablehlo_alpa.cost import PricedGraph, StrategyGraph
from stablehlo_alpa.cost.strategy_graph import Bool
from stablehlo_alpa.intra_op.solution import Solution, SolveOptions
from stablehlo_alpa.intra_op.solver import solve_anew


@dataclass(frozen=True, eq=False)
class CarriedStrategies:
    """What was chosen for operators, to be chosen again where it exists.

    A strategy is known by its label, which says the mesh axes on each dimension of an operator. It
    exists in another problem where an operator of that name has one of that label.

    Attributes:
        labels: by name of an operator the label of its strategy.
        memory_price_s: seconds per step that a byte per device was worth; 0 where there was room.
    """

    labels: Mapping[str, str]
    memory_price_s: float = 0.0

    @classmethod
    def of(cls, graph: StrategyGraph, solution: Solution) -> CarriedStrategies:
        """Those of a solution."""
        rows = (graph.node_offset[:-1] + solution.choice).tolist()
        chosen = (graph.strategy_label[row] for row in rows)
        return cls(dict(zip(graph.node_name, chosen, strict=True)), solution.memory_price_s)

    def masks(self, graph: StrategyGraph) -> dict[int, Bool]:
        """Per operator that has the strategy, and may have it, bool[strategies]: that one alone.

        Args:
            graph: the operators; pins are kept.
        """
        found: dict[int, Bool] = {}
        for node, name in enumerate(graph.node_name):
            rows = graph.span(node)
            label = self.labels.get(name)
            if label is None:
                continue
            is_it = np.array([one == label for one in graph.strategy_label[rows]], np.bool_)
            is_it &= graph.allowed[rows]
            if is_it.any():
                found[node] = is_it
        return found

    def kept(self, graph: StrategyGraph, solution: Solution) -> set[str]:
        """Names of the operators of a solution that have the strategies carried over."""
        rows = (graph.node_offset[:-1] + solution.choice).tolist()
        named = zip(graph.node_name, rows, strict=True)
        return {name for name, row in named if self.labels.get(name) == graph.strategy_label[row]}


def solve_carried(
    priced: PricedGraph,
    carried: CarriedStrategies,
    options: SolveOptions,
    cache: SolverCache | None = None,
) -> Solution:
    """The best choice with the strategies carried over; the solver chooses for other operators.

    Args:
        priced: the problem.
        carried: strategies of another one.
        options: budget and limits.
        cache: see `solve`.

    Raises:
        InfeasibleError: no such choice stays within the memory budget.
    """
    graph = priced.graph.restrict(carried.masks(priced.graph))
    return solve_anew(replace(priced, graph=graph), options, cache)
