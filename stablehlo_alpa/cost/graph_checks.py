"""What the arrays of a strategy graph have to be, so that none is read beyond its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.errors import ShardingError

if TYPE_CHECKING:
    from stablehlo_alpa.cost.strategy_graph import StrategyGraph

QUANTITIES = (
    "strategy_flops strategy_bytes step_bytes unary_weight edge_weight value_bytes"
).split()
"""Arrays of numbers that are no indices."""


def check_graph(graph: StrategyGraph) -> None:
    """Checks sizes, ranges and finiteness.

    Raises:
        ShardingError: an array that does not fit the others.
    """
    arrays = _Arrays(graph)
    _check_operators(graph, arrays)
    _check_reshard_plans(graph, arrays)
    _check_communication(graph, arrays)
    _check_values(graph, arrays)
    for key in (*QUANTITIES, "copy_bytes", "stream_bytes"):
        array = getattr(graph, key)
        if not (np.isfinite(array) & (array >= 0)).all():
            raise ShardingError(f"strategy graph: {key} must be finite and >= 0")


@dataclass(frozen=True)
class _Arrays:
    """Requirements of arrays by their names."""

    graph: StrategyGraph

    def require_size(self, size: int, *keys: str) -> None:
        for key in keys:
            found = len(getattr(self.graph, key))
            if found != size:
                raise ShardingError(f"strategy graph: {key} must have {size} entries, got {found}")

    def require_below(self, bound: int, *keys: str) -> None:
        for key in keys:
            array: Any = getattr(self.graph, key)
            bad = array[(array < 0) | (array >= bound)]
            if bad.size:
                raise ShardingError(f"strategy graph: {key} holds {bad[0]}, outside 0..{bound - 1}")

    def require_offsets(self, key: str, sizes: npt.NDArray[np.int64], total: int) -> None:
        """Of entries of these sizes, which are ``total`` in all."""
        expected = np.concatenate([[0], np.cumsum(sizes)])
        if not np.array_equal(getattr(self.graph, key), expected):
            raise ShardingError(f"strategy graph: {key} does not match the strategy counts")
        if expected[-1] != total:
            raise ShardingError(
                f"strategy graph: {key} ends at {expected[-1]}, its data has {total} entries"
            )

    def require_rise(self, key: str, total: int) -> None:
        array: Any = getattr(self.graph, key)
        if not array.size or array[0] or array[-1] != total or (np.diff(array) < 0).any():
            raise ShardingError(f"strategy graph: {key} must rise from 0 to {total}")


def _check_operators(graph: StrategyGraph, arrays: _Arrays) -> None:
    nodes, strategies = len(graph.node_name), len(graph.strategy_label)
    arrays.require_size(len(graph.mesh_axes), "mesh_shape")
    arrays.require_size(nodes, "node_op", "node_dtype")
    arrays.require_size(nodes + 1, "node_offset")
    arrays.require_rise("node_offset", strategies)
    empty = np.flatnonzero(graph.num_strategies == 0)
    if empty.size:
        raise ShardingError(f"operator {graph.node_name[empty[0]]!r} has no strategy")
    if len(set(graph.node_name)) != nodes:
        raise ShardingError("strategy graph: node_name must be unique")
    arrays.require_size(strategies, "strategy_flops", "strategy_bytes", "allowed")
    if graph.stream_bytes.size:
        arrays.require_size(strategies, "stream_bytes")
    if graph.product_runs.size:
        arrays.require_size(nodes, "product_runs")
        if graph.product_form.size:
            arrays.require_size(nodes, "product_form")
        arrays.require_size(len(graph.product_rows), "product_shape", "product_bytes")
        if graph.product_padding.size:
            arrays.require_size(len(graph.product_rows), "product_padding")


def _check_reshard_plans(graph: StrategyGraph, arrays: _Arrays) -> None:
    steps = len(graph.step_kind)
    arrays.require_size(steps, "step_axes", "step_bytes")
    arrays.require_rise("plan_offset", steps)
    if len(graph.plan_offset) > 1 and graph.plan_offset[1] != 0:
        raise ShardingError("strategy graph: plan 0 must be empty")


def _check_communication(graph: StrategyGraph, arrays: _Arrays) -> None:
    """Of strategies themselves, and between two operators."""
    nodes, counts = len(graph.node_name), graph.num_strategies
    arrays.require_below(nodes, "unary_node")
    arrays.require_size(len(graph.unary_node), "unary_weight")
    arrays.require_offsets("unary_offset", counts[graph.unary_node], len(graph.unary_plan))
    arrays.require_below(nodes, "edge_src")
    arrays.require_size(len(graph.edge_src), "edge_dst", "edge_weight")
    arrays.require_below(nodes, "edge_dst")
    if (graph.edge_src == graph.edge_dst).any():
        raise ShardingError("strategy graph: an edge joins a node with itself")
    sizes = counts[graph.edge_src] * counts[graph.edge_dst]
    arrays.require_offsets("edge_offset", sizes, len(graph.edge_plan))
    arrays.require_below(len(graph.plan_offset) - 1, "unary_plan", "edge_plan")


def _check_values(graph: StrategyGraph, arrays: _Arrays) -> None:
    nodes, counts = len(graph.node_name), graph.num_strategies
    arrays.require_below(nodes, "value_node")
    arrays.require_size(len(graph.value_node), "value_start", "value_end", "value_name")
    arrays.require_below(graph.num_points, "value_start", "value_end")
    if (graph.value_end < graph.value_start).any():
        raise ShardingError("strategy graph: a value ends before it starts")
    arrays.require_offsets("value_offset", counts[graph.value_node], len(graph.value_bytes))
    arrays.require_below(nodes, "accumulator_node")
    arrays.require_size(int(counts[graph.accumulator_node].sum()), "accumulator_bytes")
    _check_copies(graph, arrays)


def _check_copies(graph: StrategyGraph, arrays: _Arrays) -> None:
    nodes, counts = len(graph.node_name), graph.num_strategies
    arrays.require_below(nodes, "copy_source", "copy_target")
    names = ("copy_target", "copy_start", "copy_end", "copy_table", "copy_name")
    arrays.require_size(len(graph.copy_source), *names)
    arrays.require_below(graph.num_points, "copy_start", "copy_end")
    if (graph.copy_end < graph.copy_start).any():
        raise ShardingError("strategy graph: a copy ends before it starts")
    arrays.require_rise("copy_offset", len(graph.copy_bytes))
    arrays.require_below(len(graph.copy_offset) - 1, "copy_table")
    sizes = counts[graph.copy_source] * counts[graph.copy_target]
    if not np.array_equal(np.diff(graph.copy_offset)[graph.copy_table], sizes):
        raise ShardingError("strategy graph: copy_offset does not match the strategy counts")
