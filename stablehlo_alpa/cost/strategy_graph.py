"""The strategy graph: every operator's strategies and what they would move, in flat arrays."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cost.graph_checks import QUANTITIES, check_graph
from stablehlo_alpa.cost.streams import STREAMS
from stablehlo_alpa.errors import InfeasibleError, ShardingError

Int = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]
Bool = npt.NDArray[np.bool_]

_INTS = (
    "mesh_shape node_offset plan_offset step_kind step_axes unary_node unary_offset unary_plan "
    "edge_src edge_dst edge_offset edge_plan value_node value_start value_end value_offset"
).split()
_NAMES = "mesh_axes node_name node_op node_dtype strategy_label value_name".split()

HANDED_ON, UNSPLIT, NO_CLASS = -3, -2, -1
"""In place of a class: an axis hands shares of a sum on, or splits nothing, or splits a dimension
that goes with no other."""


@dataclass(frozen=True, eq=False)
class StrategyGraph:
    """N operators with S strategies in all on a mesh of K axes.

    Attributes:
        mesh_axes, mesh_shape: axis names, int64[K].
        node_name, node_op, node_dtype: N strings each.
        node_offset: int64[N + 1]; the strategies of node i are ``node_offset[i]:node_offset[i+1]``.
        strategy_flops, strategy_bytes: float64[S] FLOPs and bytes of memory traffic per device and
            step.
        stream_bytes: float64[S, 5] of these bytes those of each of `streams.STREAMS`; but for TPU,
            those of what follows the operator. Empty where they are not told apart.
        strategy_label: S strings.
        plan_offset: int64[P + 1] into the steps; plan 0 is empty.
        step_kind, step_axes, step_bytes: [T] collective kind, mask of axes, payload bytes.
        unary_node, unary_weight, unary_offset, unary_plan: communication of a strategy itself.
        edge_src, edge_dst, edge_weight, edge_offset, edge_plan: resharding between two nodes,
            plans row-major [strategies of src, strategies of dst].
        unary_beside, edge_beside: of each the `cost.kinds.Beside`.
        value_node, value_start, value_end, value_name, value_offset, value_bytes: tensors, live
            on the program points ``start..end`` inclusive, with bytes per strategy of the node.
        copy_source, copy_target, copy_start, copy_end, copy_name: what a target's operator reads
            of a source's value, gathered beside it, live on the program points ``start..end``.
        copy_table, copy_offset, copy_bytes: of each copy the number of its table; the tables one
            after the other, row-major [strategies of source, strategies of target].
        num_points: program points.
        num_forward_points, num_backward_points: of a stage, those up to the end of its forward and
            of its backward phase; 0 elsewhere.
        allowed: bool[S], strategies that may be chosen.
        input_node, input_specs, input_alias, input_is_parameter, input_is_transfer, input_is_batch,
            input_name, output_node, output_specs, remarks: what the caller needs to pin and to
            print; see the compiler.
        strategy_class: int64[S, K] the class of dimensions (those that operators keep together)
            that each axis splits, or what stands for none.
        node_is_product: bool[N] whether it multiplies and sums up.
        node_kernels: float64[N] kernels that it launches per step.
        product_runs: float64[N] how often a product runs per step, 0 of other nodes.
        product_form: int64[N] `ProductForm` of each product.
        product_shape: float64[R, 4] batch, m, n, k on one device, of the strategies of products,
            which have R in all.
        product_padding: float64[R] of these, as of `cost.operators.Products`; empty where it is 1.
        product_bytes: float64[R] bytes that they move themselves, without operators that follow.
        node_classes: of each node the classes of the dimensions that its leader has.
        accumulator_node, accumulator_bytes: what is summed up over the micro-batches of a step,
            the bytes per strategy of each one's node, one after the other.
        input_classes, output_classes: per dimension its class.
    """

    mesh_axes: tuple[str, ...]
    mesh_shape: Int
    node_name: tuple[str, ...]
    node_op: tuple[str, ...]
    node_dtype: tuple[str, ...]
    node_offset: Int
    strategy_flops: Float
    strategy_bytes: Float
    strategy_label: tuple[str, ...]
    plan_offset: Int
    step_kind: Int
    step_axes: Int
    step_bytes: Float
    unary_node: Int
    unary_weight: Float
    unary_offset: Int
    unary_plan: Int
    edge_src: Int
    edge_dst: Int
    edge_weight: Float
    edge_offset: Int
    edge_plan: Int
    value_node: Int
    value_start: Int
    value_end: Int
    value_name: tuple[str, ...]
    value_offset: Int
    value_bytes: Float
    num_points: int
    allowed: Bool
    input_node: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    input_specs: tuple[Any, ...] = ()
    input_alias: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    input_is_parameter: Bool = field(default_factory=lambda: np.zeros(0, np.bool_))
    input_is_transfer: Bool = field(default_factory=lambda: np.zeros(0, np.bool_))
    input_is_batch: Bool = field(default_factory=lambda: np.zeros(0, np.bool_))
    input_name: tuple[str, ...] = ()
    output_node: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    output_specs: tuple[Any, ...] = ()
    num_forward_points: int = 0
    num_backward_points: int = 0
    remarks: tuple[str, ...] = ()
    strategy_class: Int = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    node_is_product: Bool = field(default_factory=lambda: np.zeros(0, np.bool_))
    unary_beside: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    edge_beside: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    node_kernels: Float = field(default_factory=lambda: np.zeros(0))
    product_runs: Float = field(default_factory=lambda: np.zeros(0))
    product_form: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    product_shape: Float = field(default_factory=lambda: np.zeros((0, 4)))
    product_padding: Float = field(default_factory=lambda: np.zeros(0))
    product_bytes: Float = field(default_factory=lambda: np.zeros(0))
    node_classes: tuple[tuple[int, ...], ...] = ()
    copy_source: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    copy_target: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    copy_start: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    copy_end: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    copy_name: tuple[str, ...] = ()
    copy_table: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    copy_offset: Int = field(default_factory=lambda: np.zeros(1, np.int64))
    copy_bytes: Float = field(default_factory=lambda: np.zeros(0))
    accumulator_node: Int = field(default_factory=lambda: np.zeros(0, np.int64))
    accumulator_bytes: Float = field(default_factory=lambda: np.zeros(0))
    input_classes: tuple[tuple[int, ...], ...] = ()
    output_classes: tuple[tuple[int, ...], ...] = ()
    stream_bytes: Float = field(default_factory=lambda: np.zeros((0, len(STREAMS))))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> StrategyGraph:
        """Takes the compiler's arrays, checking shapes, ranges and finiteness.

        Raises:
            ShardingError: an array is missing, or does not fit the others.
        """
        needed = [*_INTS, *QUANTITIES, *_NAMES, "num_points"]
        missing = [k for k in needed if k not in arrays]
        if missing:
            raise ShardingError(f"strategy graph lacks {missing}")
        data: dict[str, Any] = {k: np.array(arrays[k], np.int64).reshape(-1) for k in _INTS}
        data |= {k: np.array(arrays[k], np.float64).reshape(-1) for k in QUANTITIES}
        data |= {k: tuple(arrays[k]) for k in _NAMES}
        data["num_points"] = int(arrays["num_points"])
        for key in ("num_forward_points", "num_backward_points"):
            data[key] = int(arrays.get(key, 0))
        data["allowed"] = np.ones(len(data["strategy_label"]), np.bool_)
        indices = ("input_node", "input_alias", "output_node", "unary_beside", "edge_beside")
        copies = ("copy_source", "copy_target", "copy_start", "copy_end", "copy_table")
        for key in (*indices, *copies, "accumulator_node", "product_form"):
            data[key] = np.array(arrays.get(key, []), np.int64).reshape(-1)
        data["copy_offset"] = np.array(arrays.get("copy_offset", [0]), np.int64).reshape(-1)
        for key in ("input_is_parameter", "input_is_transfer", "input_is_batch"):
            data[key] = np.array(arrays.get(key, []), np.bool_).reshape(-1)
        for key in ("input_specs", "input_name", "output_specs", "remarks", "copy_name"):
            data[key] = tuple(arrays.get(key, ()))
        data["node_is_product"] = np.array(arrays.get("node_is_product", []), np.bool_)
        per_node = ("node_kernels", "product_runs", "product_padding", "product_bytes")
        for key in (*per_node, "accumulator_bytes", "copy_bytes"):
            data[key] = np.array(arrays.get(key, []), np.float64).reshape(-1)
        data["product_shape"] = np.array(arrays.get("product_shape", []), np.float64).reshape(-1, 4)
        streams = np.array(arrays.get("stream_bytes", []), np.float64)
        data["stream_bytes"] = streams.reshape(-1, len(STREAMS))
        data["strategy_class"] = np.array(arrays.get("strategy_class", []), np.int64)
        for side in ("node", "input", "output"):
            data[f"{side}_classes"] = _parts(arrays, f"{side}_class")
        graph = cls(**data)
        check_graph(graph)
        return graph

    @property
    def product_rows(self) -> Int:
        """int64[R] strategies of products."""
        return np.flatnonzero(np.repeat(self.product_runs > 0, self.num_strategies))

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.node_name)

    @property
    def num_strategies(self) -> Int:
        """int64[N] strategies of each node."""
        return np.diff(self.node_offset)

    def span(self, node: int) -> slice:
        """Rows of the strategies of ``node``."""
        return slice(int(self.node_offset[node]), int(self.node_offset[node + 1]))

    def restrict(self, masks: Mapping[int, npt.ArrayLike]) -> StrategyGraph:
        """The graph with only some strategies allowed.

        Args:
            masks: node -> bool[strategies of the node], and-ed with what is allowed already.

        Raises:
            ShardingError: a mask does not fit its node.
            InfeasibleError: no strategy of a node is left.
        """
        allowed = self.allowed.copy()
        for node, mask in masks.items():
            if not 0 <= node < self.num_nodes:
                raise ShardingError(f"restricted node {node} is outside 0..{self.num_nodes - 1}")
            rows = self.span(node)
            mask = np.asarray(mask, np.bool_)
            if mask.shape != (rows.stop - rows.start,):
                raise ShardingError(
                    f"mask of operator {self.node_name[node]!r} must have shape "
                    f"({rows.stop - rows.start},), got {mask.shape}"
                )
            allowed[rows] &= mask
            if not allowed[rows].any():
                raise InfeasibleError(
                    f"operator {self.node_name[node]!r} is pinned to a sharding that none of its "
                    f"{len(mask)} strategies has"
                )
        return replace(self, allowed=allowed)


def _parts(arrays: Mapping[str, Any], key: str) -> tuple[tuple[int, ...], ...]:
    """The entries of each tensor, ``key`` cut at ``key + "_offset"``."""
    if key not in arrays:
        return ()
    entries, offsets = np.asarray(arrays[key]).tolist(), np.asarray(arrays[f"{key}_offset"])
    return tuple(tuple(entries[a:b]) for a, b in itertools.pairwise(offsets.tolist()))
