"""Random strategy graphs for tests."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from stablehlo_alpa.cluster import ClusterSpec, LogicalMesh, preset_for
from stablehlo_alpa.cost import PricedGraph, StrategyGraph, price
from stablehlo_alpa.intra_op import MemoryModel

CPU = preset_for("cpu")


def cpu_mesh(shape: tuple[int, ...] = (2, 4)) -> LogicalMesh:
    return ClusterSpec(CPU, 1, int(np.prod(shape))).logical_mesh(shape)


def random_edges(
    rng: np.random.Generator, nodes: int, edges: int, reach: int
) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of edges between nodes that are at most ``reach`` apart; some lead backward."""
    src = rng.integers(0, max(nodes - 1, 1), edges)
    dst = np.array([rng.integers(s + 1, min(nodes, s + 1 + reach)) for s in src], int)
    swap = rng.random(edges) < 0.3
    return np.where(swap, dst, src), np.where(swap, src, dst)


def random_arrays(
    seed: int,
    nodes: int = 5,
    strategies: tuple[int, int] = (1, 4),
    edges: int = 6,
    values: int = 8,
    points: int = 6,
    ties: bool = False,
    reach: int | None = None,
    gathers: bool = True,
) -> dict[str, Any]:
    """Arrays of the compiler's layout; ``ties`` draws costs from two values only.

    Where an operator ``gathers``, what it reads takes memory beside what others have made.
    """
    rng = np.random.default_rng(seed)
    counts = rng.integers(strategies[0], strategies[1] + 1, nodes)
    offset = np.concatenate([[0], np.cumsum(counts)])
    total = int(offset[-1])
    plans = 12
    steps = rng.integers(1, 3, plans - 1)
    plan_offset = np.concatenate([[0, 0], np.cumsum(steps)])
    t = int(plan_offset[-1])

    def draw(high: float, size: int) -> np.ndarray:
        return high * (rng.integers(1, 3, size) if ties else rng.random(size))

    src, dst = random_edges(rng, nodes, edges if nodes > 1 else 0, reach or nodes)
    sizes = counts[src] * counts[dst]
    unary = rng.integers(0, nodes, 2)
    owner = rng.integers(0, nodes, values)
    start = rng.integers(0, points, values)
    return {
        "mesh_axes": ["x", "y"],
        "mesh_shape": np.array([2, 4]),
        "node_name": [f"layer_{i}/dot" for i in range(nodes)],
        "node_op": ["stablehlo.dot_general"] * nodes,
        "node_dtype": ["f32"] * nodes,
        "node_offset": offset,
        "strategy_flops": draw(1e8, total),
        "strategy_bytes": draw(1e6, total),
        "strategy_label": [f"s{j}" for k in counts for j in range(k)],
        "plan_offset": plan_offset,
        "step_kind": rng.integers(0, 6, t),
        "step_axes": rng.integers(1, 4, t),
        "step_bytes": draw(1e6, t),
        "unary_node": unary,
        "unary_weight": rng.integers(1, 4, 2).astype(float),
        "unary_offset": np.concatenate([[0], np.cumsum(counts[unary])]),
        "unary_plan": rng.integers(0, plans, int(counts[unary].sum())),
        "edge_src": src,
        "edge_dst": dst,
        "edge_weight": rng.integers(1, 3, len(src)).astype(float),
        "edge_offset": np.concatenate([[0], np.cumsum(sizes)]),
        "edge_plan": rng.integers(0, plans, int(sizes.sum())),
        "value_node": owner,
        "value_start": start,
        "value_end": np.array([rng.integers(s, points) for s in start], int),
        "value_name": [f"v{i}" for i in range(values)],
        "value_offset": np.concatenate([[0], np.cumsum(counts[owner])]),
        "value_bytes": draw(1e6, int(counts[owner].sum())),
        "num_points": points,
        **(_random_copies(seed, src, dst, counts, points) if gathers else {}),
    }


def _random_copies(
    seed: int, src: np.ndarray, dst: np.ndarray, counts: np.ndarray, points: int
) -> dict[str, Any]:
    """What is gathered along about half of the edges, by about half of the pairs."""
    rng = np.random.default_rng([seed, 1])
    edges = np.flatnonzero(rng.random(len(src)) < 0.5)
    start = rng.integers(0, points, len(edges))
    sizes = (counts[src] * counts[dst])[edges]
    total = int(sizes.sum())
    return {
        "copy_source": src[edges],
        "copy_target": dst[edges],
        "copy_start": start,
        "copy_end": np.array([rng.integers(s, points) for s in start], int),
        "copy_table": np.arange(len(edges)),
        "copy_offset": np.concatenate([[0], np.cumsum(sizes)]),
        "copy_bytes": 5e5 * rng.random(total) * (rng.random(total) < 0.5),
        "copy_name": [f"copy of v{i}" for i in range(len(edges))],
    }


def random_priced(seed: int, **kwargs: Any) -> PricedGraph:
    return price(StrategyGraph.from_arrays(random_arrays(seed, **kwargs)), cpu_mesh(), CPU)


def brute_force(priced: PricedGraph, budget: float | None = None) -> tuple[float, float]:
    """Least objective within the budget (inf if none) and least reachable peak."""
    graph, memory = priced.graph, MemoryModel.of(priced.graph)
    domains = [np.flatnonzero(graph.allowed[graph.span(i)]) for i in range(graph.num_nodes)]
    best, least = np.inf, np.inf
    for choice in itertools.product(*domains):
        peak = max(memory.usage(choice), default=0.0)
        least = min(least, peak)
        if budget is None or peak <= budget * (1 + 1e-9):
            best = min(best, sum(priced.split(choice)))
    return float(best), float(least)
