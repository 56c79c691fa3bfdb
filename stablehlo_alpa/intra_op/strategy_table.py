"""What every strategy of every operator would cost in a plan, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.cost.strategy_graph import Bool, Float, Int
from stablehlo_alpa.intra_op.solution import Solution


@dataclass(frozen=True, eq=False)
class StrategyTable:
    """N operators with S strategies in all, the neighbours of each as the plan has them.

    It is all that explaining a plan takes: a plan's file holds it in place of the strategy graph,
    whose resharding matrices are many times as large.

    Attributes:
        name, op: N strings each, names and kinds of the operators.
        offset: int64[N + 1]; the strategies of operator i are ``offset[i]:offset[i + 1]``.
        choice: int64[N] chosen strategy of each, counted from its first.
        label: S strings.
        compute_s, communication_s: float64[S] seconds per step.
        reshard_s: float64[S] seconds per step of resharding with all neighbours.
        memory_bytes: float64[S] sum of the operator's tensors. Bytes per device.
        allowed: bool[S], what the pins allow.
        operand_reshard_s: float64[N] seconds per step of resharding the operands, as chosen.
    """

    name: tuple[str, ...]
    op: tuple[str, ...]
    offset: Int
    choice: Int
    label: tuple[str, ...]
    compute_s: Float
    communication_s: Float
    reshard_s: Float
    memory_bytes: Float
    allowed: Bool
    operand_reshard_s: Float

    @classmethod
    def of(cls, priced: PricedGraph, solution: Solution) -> StrategyTable:
        """That of a graph in seconds, and of its solution."""
        graph, choice = priced.graph, solution.choice.astype(np.int64)
        offset, count = graph.node_offset, len(graph.strategy_label)
        reshard, operands = np.zeros(count), np.zeros(graph.num_nodes)
        for (u, v), matrix in priced.edges.items():
            reshard[graph.span(u)] += matrix[:, choice[v]]
            reshard[graph.span(v)] += matrix[choice[u], :]
            operands[v] += matrix[choice[u], choice[v]]
        memory = np.zeros(count)
        for value, node in enumerate(graph.value_node.tolist()):
            first, last = graph.value_offset[value], graph.value_offset[value + 1]
            memory[graph.span(node)] += graph.value_bytes[first:last]
        return cls(
            graph.node_name,
            graph.node_op,
            offset,
            choice,
            graph.strategy_label,
            priced.compute_s,
            priced.communication_s,
            reshard,
            memory,
            graph.allowed,
            operands,
        )

    @property
    def chosen(self) -> Int:
        """int64[N] the chosen strategies among all S."""
        return self.offset[:-1] + self.choice

    def span(self, node: int) -> slice:
        """The strategies of an operator."""
        return slice(int(self.offset[node]), int(self.offset[node + 1]))
