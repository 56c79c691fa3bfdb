"""Memory of a choice from the live ranges of its tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from stablehlo_alpa.cost.strategy_graph import Float, Int, StrategyGraph


@dataclass(frozen=True, eq=False)
class MemoryModel:
    """Bytes per device at every program point, linear in the one-hot choice and in its pairs.

    A value takes what its node's strategy makes of it. Where an operator reads it gathered, the
    copy lies beside it: whether there is one, and how large, is for the strategies of both to say.

    Attributes:
        graph: the strategy graph.
        points: int64[C] the points where the live set is maximal: the peak is at one of them.
    """

    graph: StrategyGraph
    points: Int

    @classmethod
    def of(cls, graph: StrategyGraph) -> MemoryModel:
        """Finds the maximal live sets: a point where a value ends after another has started."""
        starts = np.sort(np.concatenate([graph.value_start, graph.copy_start]))
        points: list[int] = []
        previous = -1
        for end in np.unique(np.concatenate([graph.value_end, graph.copy_end])).tolist():
            born = np.searchsorted(starts, end, "right") - np.searchsorted(
                starts, previous, "right"
            )
            if born > 0:
                points.append(end)
                previous = end
        return cls(graph, np.array(points, np.int64))

    def value_bytes(self, choice: npt.ArrayLike) -> Float:
        """float64[V] bytes of each value under a choice (int[N])."""
        g = self.graph
        rows = g.value_offset[:-1] + np.asarray(choice, np.int64)[g.value_node]
        return np.asarray(g.value_bytes[rows], np.float64)

    def copy_bytes(self, choice: npt.ArrayLike) -> Float:
        """float64[copies] bytes of each copy under a choice (int[N])."""
        g, choice = self.graph, np.asarray(choice, np.int64)
        row = choice[g.copy_source] * g.num_strategies[g.copy_target] + choice[g.copy_target]
        return np.asarray(g.copy_bytes[g.copy_offset[g.copy_table] + row], np.float64)

    def usage(self, choice: npt.ArrayLike) -> Float:
        """float64[num_points] live bytes at each point."""
        g = self.graph
        change = np.zeros(g.num_points + 1)
        sizes = self.value_bytes(choice)
        np.add.at(change, g.value_start, sizes)
        np.add.at(change, g.value_end + 1, -sizes)
        copies = self.copy_bytes(choice)
        np.add.at(change, g.copy_start, copies)
        np.add.at(change, g.copy_end + 1, -copies)
        return np.asarray(np.cumsum(change)[:-1])

    def peak(self, choice: npt.ArrayLike) -> tuple[float, int]:
        """Largest live bytes and their point; (0, -1) when nothing is ever live."""
        if not self.points.size:
            return 0.0, -1
        usage = self.usage(choice)
        point = int(self.points[np.argmax(usage[self.points])])
        # Summed again at that point alone: the running sum carries rounding of all before it.
        live = self.value_bytes(choice)[self.live(point)].sum()
        return float(live + self.copy_bytes(choice)[self.live_copies(point)].sum()), point

    def live(self, point: int) -> npt.NDArray[np.bool_]:
        """bool[V] values live at ``point``."""
        return (self.graph.value_start <= point) & (self.graph.value_end >= point)

    def live_copies(self, point: int) -> npt.NDArray[np.bool_]:
        """bool[copies] copies live at ``point``."""
        return (self.graph.copy_start <= point) & (self.graph.copy_end >= point)

    def held(self, choice: npt.ArrayLike, point: int) -> Float:
        """float64[N] bytes live at ``point`` per node: its values, and copies made for it."""
        g = self.graph
        values = self.value_bytes(choice) * self.live(point)
        copies = self.copy_bytes(choice) * self.live_copies(point)
        nodes = np.concatenate([g.value_node, g.copy_target]).astype(np.int64)
        sizes = np.concatenate([values, copies])
        return np.asarray(np.bincount(nodes, weights=sizes, minlength=g.num_nodes), np.float64)

    def largest(self, choice: npt.ArrayLike, point: int, count: int = 5) -> list[tuple[str, float]]:
        """Names and bytes of the largest live values at ``point``."""
        values = np.where(self.live(point), self.value_bytes(choice), -1.0)
        copies = np.where(self.live_copies(point), self.copy_bytes(choice), -1.0)
        sizes = np.concatenate([values, np.where(copies > 0, copies, -1.0)])
        names = self.graph.value_name + self.graph.copy_name
        order = np.argsort(-sizes, kind="stable")[:count]
        return [(names[i], float(sizes[i])) for i in order if sizes[i] >= 0]

    def bytes_by_node(self) -> list[Float]:
        """Per node float64[values, strategies] bytes of its tensors."""
        g = self.graph
        values: list[list[Float]] = [[] for _ in range(g.num_nodes)]
        for v, node in enumerate(g.value_node.tolist()):
            values[node].append(g.value_bytes[g.value_offset[v] : g.value_offset[v + 1]])
        counts = g.num_strategies
        return [np.stack(x) if x else np.zeros((0, counts[i])) for i, x in enumerate(values)]

    def rows(self, points: npt.ArrayLike) -> sp.csr_matrix:
        """float64[len(points), S] bytes at each point per one-hot strategy."""
        g = self.graph
        size = len(g.strategy_label)
        out = []
        for point in np.atleast_1d(np.asarray(points, np.int64)):
            dense = np.zeros(size)
            for v in np.flatnonzero(self.live(int(point))):
                dense[g.span(int(g.value_node[v]))] += g.value_bytes[
                    g.value_offset[v] : g.value_offset[v + 1]
                ]
            out.append(sp.csr_matrix(dense))
        return sp.vstack(out, format="csr") if out else sp.csr_matrix((0, size))

    def pairs(self, point: int) -> dict[tuple[int, int], Float]:
        """Nodes u < v -> float64[strategies of u, strategies of v] bytes of copies at a point."""
        g = self.graph
        found: dict[tuple[int, int], Float] = {}
        for copy in np.flatnonzero(self.live_copies(point)).tolist():
            u, v, number = int(g.copy_source[copy]), int(g.copy_target[copy]), g.copy_table[copy]
            span = slice(int(g.copy_offset[number]), int(g.copy_offset[number + 1]))
            table = g.copy_bytes[span].reshape(g.num_strategies[u], g.num_strategies[v])
            key, table = ((u, v), table) if u < v else ((v, u), table.T)
            found[key] = found[key] + table if key in found else table
        return found
