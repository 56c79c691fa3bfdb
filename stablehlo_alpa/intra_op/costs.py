"""The programme as arrays: seconds of strategies and of pairs of strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.cost.strategy_graph import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class Costs:
    """N nodes with C strategies that may be chosen, and E edges.

    Attributes:
        rows: int64[C] the strategies among all S of the graph, ascending.
        sizes: int64[N] how many each node has, all > 0.
        node_s: float64[C] seconds.
        edges: int64[E, 2] nodes u < v.
        tables: E matrices float64[sizes[u], sizes[v]]. Seconds.
        first: int64[N] row of each node's first strategy among all S.
    """

    rows: Int
    sizes: Int
    node_s: Float
    edges: Int
    tables: tuple[Float, ...]
    first: Int

    @classmethod
    def of(cls, priced: PricedGraph) -> Costs:
        """The allowed strategies of a priced graph."""
        graph = priced.graph
        everything = cls(
            rows=np.arange(len(graph.allowed)),
            sizes=graph.num_strategies,
            node_s=priced.node_s(),
            edges=np.array(list(priced.edges), np.int64).reshape(-1, 2),
            tables=tuple(priced.edges.values()),
            first=graph.node_offset[:-1],
        )
        return everything.restrict(graph.allowed)

    @cached_property
    def start(self) -> Int:
        """int64[N + 1] place of each node's first strategy among the C."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def flat_tables(self) -> Float:
        """The tables one after the other."""
        if not self.tables:
            return np.zeros(0)
        return np.concatenate([table.ravel() for table in self.tables])

    @cached_property
    def edge_numbers(self) -> Mapping[tuple[int, int], int]:
        """By its nodes u < v the number of an edge."""
        return {(u, v): number for number, (u, v) in enumerate(self.edges.tolist())}

    def own(self, node: int) -> Int:
        """int64[sizes[node]] the strategies of a node that may be chosen."""
        return self.rows[self.span(node)] - self.first[node]

    def span(self, node: int) -> slice:
        """Places of a node's strategies among the C."""
        return slice(int(self.start[node]), int(self.start[node + 1]))

    def restrict(self, kept: npt.ArrayLike) -> Costs:
        """The problem with some strategies only.

        Args:
            kept: bool[C]; every node keeps one or more.
        """
        kept = np.asarray(kept, np.bool_)
        if kept.all():
            return self
        masks = [kept[self.span(node)] for node in range(len(self.sizes))]
        return replace(
            self,
            rows=self.rows[kept],
            sizes=np.add.reduceat(kept.astype(np.int64), self.start[:-1]),
            node_s=self.node_s[kept],
            tables=tuple(
                table[masks[u]][:, masks[v]]
                for (u, v), table in zip(self.edges.tolist(), self.tables, strict=True)
            ),
        )

    def with_node_s(self, node_s: Float) -> Costs:
        """The problem with other seconds of the strategies themselves."""
        return replace(self, node_s=node_s)

    def free(self) -> Costs:
        """The problem with what is possible for nothing."""
        node_s, *tables = (np.where(np.isinf(s), s, 0.0) for s in (self.node_s, *self.tables))
        return replace(self, node_s=node_s, tables=tuple(tables))

    def decode(self, labels: npt.ArrayLike) -> Int:
        """int64[N] strategies of a plan from places (int[N]) within each node."""
        return self.rows[self.start[:-1] + np.asarray(labels, np.int64)] - self.first

    def encode(self, choice: npt.ArrayLike) -> Int:
        """int64[N] places within each node of a plan's strategies; the plan must be allowed."""
        at = np.searchsorted(self.rows, self.first + np.asarray(choice, np.int64))
        return at - self.start[:-1]

    def value(self, labels: npt.ArrayLike) -> float:
        """Seconds of a plan, places within each node."""
        labels = np.asarray(labels, np.int64)
        total = float(self.node_s[self.start[:-1] + labels].sum())
        ends = labels[self.edges]
        return total + sum(
            float(table[u, v]) for table, (u, v) in zip(self.tables, ends.tolist(), strict=True)
        )

    def union(self, plans: Sequence[Int]) -> Bool:
        """bool[C] the strategies that one of some plans uses (places within each node)."""
        kept = np.zeros(len(self.rows), np.bool_)
        for labels in plans:
            kept[self.start[:-1] + labels] = True
        return kept
