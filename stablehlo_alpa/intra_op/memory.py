"""Memory of a choice from the live ranges of its tensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from stablehlo_alpa.cost.strategy_graph import Float, Int, StrategyGraph


@dataclass(frozen=True, eq=False)
class MemoryModel:
    """Bytes per device at every program point, linear in the one-hot choice.

    Attributes:
        graph: the strategy graph.
        points: int64[C] the points where the live set is maximal: the peak is at one of them.
    """

    graph: StrategyGraph
    points: Int

    @classmethod
    def of(cls, graph: StrategyGraph) -> MemoryModel:
        """Finds the maximal live sets: a point where a value ends after another has started."""
        starts = np.sort(graph.value_start)
        points: list[int] = []
        previous = -1
        for end in np.unique(graph.value_end).tolist():
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

    def usage(self, choice: npt.ArrayLike) -> Float:
        """float64[num_points] live bytes at each point."""
        return self._accumulate(self.value_bytes(choice))

    def _accumulate(self, sizes: Float) -> Float:
        g = self.graph
        change = np.zeros(g.num_points + 1)
        np.add.at(change, g.value_start, sizes)
        np.add.at(change, g.value_end + 1, -sizes)
        return np.asarray(np.cumsum(change)[:-1])

    def peak(self, choice: npt.ArrayLike) -> tuple[float, int]:
        """Largest live bytes and their point; (0, -1) when nothing is ever live."""
        if not self.points.size:
            return 0.0, -1
        usage = self.usage(choice)
        point = int(self.points[np.argmax(usage[self.points])])
        # Summed again at that point alone: the running sum carries rounding of all before it.
        return float(self.value_bytes(choice)[self.live(point)].sum()), point

    def live(self, point: int) -> npt.NDArray[np.bool_]:
        """bool[V] values live at ``point``."""
        return (self.graph.value_start <= point) & (self.graph.value_end >= point)

    def largest(self, choice: npt.ArrayLike, point: int, count: int = 5) -> list[tuple[str, float]]:
        """Names and bytes of the largest live values at ``point``."""
        sizes = np.where(self.live(point), self.value_bytes(choice), -1.0)
        order = np.argsort(-sizes, kind="stable")[:count]
        return [(self.graph.value_name[i], float(sizes[i])) for i in order if sizes[i] >= 0]

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
