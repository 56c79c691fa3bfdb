"""Plans between a cheap one over the memory budget and a dear one within it.

Equal layers change sides at the same price of memory, so the plans that the prices give may have
all layers in one layout or all in another. A plan in between is the optimum under *two* prices: a
part of the operators pays less than the best price, the rest pays more. Where the part ends, the
exact solver weighs the border's reshards against all else.

The parts come from the Fiedler order of the operators: the eigenvector of the graph Laplacian's
second-smallest eigenvalue varies slowly along edges, so it orders a deep model by layers, each
layer's gradients and parameters beside it. How many operators are in the part is bisected until
the plan just keeps the budget.

References:
    Fiedler, "A property of eigenvectors of nonnegative symmetric matrices and its application to
    graph theory", 1975.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigsh

from stablehlo_alpa.cost.strategy_graph import Float, Int
from stablehlo_alpa.intra_op.costs import Costs

# Operators with more neighbours (clipped norms, shared tables) belong to no layer (heuristic).
_HUB = 20
# Factors of the best price on the cheap and on the dear part (heuristic).
_CHEAP, _DEAR = 0.5, 1.5
# Bisections of the part's size per direction (heuristic).
_BISECTIONS = 6
# Just below the Laplacian's smallest eigenvalue, 0: there it can be factorised.
_SHIFT = -1e-5


class Parts:
    """Factors of the memory price per operator, bisected from outside.

    Iterating yields float64[N] factors; after each, `answer` says whether the plan under them
    keeps the budget.
    """

    def __init__(self, costs: Costs) -> None:
        """Orders the operators of a problem."""
        self._rank = _ranks(costs)
        self._is_within = False

    def answer(self, is_within: bool) -> None:
        """Whether the plan under the last factors keeps the budget."""
        self._is_within = is_within

    def __iter__(self) -> Iterator[Float]:
        """Factors for both directions of the order."""
        for rank in (self._rank, 1.0 - self._rank):
            low, high = 0.0, 1.0
            for _ in range(_BISECTIONS):
                middle = (low + high) / 2
                yield np.where(rank < middle, _CHEAP, _DEAR)
                low, high = (middle, high) if self._is_within else (low, middle)


def _ranks(costs: Costs) -> Float:
    """float64[N] in [0, 1]: places in the Fiedler order, component by component."""
    count = len(costs.sizes)
    degree = np.bincount(costs.edges.ravel(), minlength=count)
    edges = costs.edges[~(degree > _HUB)[costs.edges].any(axis=1)]
    ones = np.ones(len(edges))
    half = sp.coo_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(count, count))
    graph = sp.csr_matrix(half + half.T)
    _, component = connected_components(graph, directed=False)
    coordinate = np.zeros(count)
    for index in np.flatnonzero(np.bincount(component) > 2):
        nodes = np.flatnonzero(component == index)
        coordinate[nodes] = _fiedler(graph[nodes][:, nodes])
    order = np.lexsort((coordinate, component))
    ranks = np.empty(count)
    ranks[order] = np.arange(count) / max(count - 1, 1)
    return ranks


def _fiedler(graph: sp.csr_matrix) -> Float:
    """float64[n] the Fiedler vector of a connected graph (n > 2); by index if it is not found."""
    size = graph.shape[0]
    laplacian = sp.csc_matrix(sp.diags(np.asarray(graph.sum(axis=1)).ravel()) - graph)
    if size <= 8:
        return np.asarray(np.linalg.eigh(laplacian.toarray())[1][:, 1])
    start: Int = np.arange(size) % 7 + 1
    try:
        values, vectors = eigsh(laplacian, k=2, sigma=_SHIFT, v0=start.astype(np.float64))
    except ArpackError:
        return np.arange(size, dtype=np.float64)
    return np.asarray(vectors[:, np.argmax(values)])
