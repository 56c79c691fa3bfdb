"""Prices a strategy graph on a mesh, and counts the bytes that a solution moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.cost.collective import added_seconds
from stablehlo_alpa.cost.kinds import Beside, CollectiveKind
from stablehlo_alpa.cost.operators import Products, operator_seconds
from stablehlo_alpa.cost.strategy_graph import Bool, Float, StrategyGraph
from stablehlo_alpa.errors import MeshError


@dataclass(frozen=True, eq=False)
class PricedGraph:
    """A strategy graph in seconds.

    Attributes:
        graph: the graph priced.
        plan_s: float64[P] seconds of each reshard plan that nothing runs beside.
        compute_s: float64[S] computing seconds of each strategy.
        communication_s: float64[S] seconds of each strategy's own collectives.
        edges: (u, v) with u < v -> float64[strategies of u, strategies of v] resharding seconds,
            all edges between the two nodes added, in both directions.
        beside_s: of each reshard plan the seconds, by what runs beside it.
    """

    graph: StrategyGraph
    plan_s: Float
    compute_s: Float
    communication_s: Float
    edges: dict[tuple[int, int], Float]
    beside_s: Mapping[Beside, Float] = field(default_factory=dict)

    def node_s(self) -> Float:
        """float64[S] compute plus communication seconds of each strategy."""
        return self.compute_s + self.communication_s

    def split(self, choice: npt.ArrayLike) -> tuple[float, float, float]:
        """Seconds of a choice (int[N]): compute, communication, resharding."""
        choice = np.asarray(choice, np.int64)
        rows = self.graph.node_offset[:-1] + choice
        reshard = sum(float(m[choice[u], choice[v]]) for (u, v), m in self.edges.items())
        return float(self.compute_s[rows].sum()), float(self.communication_s[rows].sum()), reshard


def products_of(graph: StrategyGraph) -> Products | None:
    """The strategies of a graph's products; None where it does not know their shapes."""
    if not graph.product_runs.size:
        return None
    rows = graph.product_rows
    runs = np.repeat(graph.product_runs, graph.num_strategies)[rows]
    form = graph.product_form if graph.product_form.size else np.zeros(graph.num_nodes, np.int64)
    forms = np.repeat(form, graph.num_strategies)[rows]
    padding = graph.product_padding if graph.product_padding.size else np.ones(len(rows))
    return Products(rows, graph.product_shape, runs, graph.product_bytes, forms, padding)


def price(graph: StrategyGraph, mesh: LogicalMesh, device: DeviceSpec) -> PricedGraph:
    """Turns the volumes of a graph into seconds.

    A strategy takes what its operator takes (`cost.operators`) plus the plans of its unary terms;
    an edge entry is its weight times the seconds of its plan.

    Raises:
        MeshError: the graph was made for another mesh.
        CostError: an element type or a collective that the model does not know.
    """
    if tuple(graph.mesh_shape.tolist()) != mesh.shape:
        raise MeshError(
            f"strategy graph was made for mesh {tuple(graph.mesh_shape.tolist())}, "
            f"asked to price it on {mesh.shape}"
        )
    plan_s = {beside: plan_seconds(graph, beside, mesh, device) for beside in _besides(graph)}
    compute = operator_seconds(
        graph.node_op,
        graph.node_dtype,
        graph.num_strategies,
        graph.strategy_flops,
        graph.strategy_bytes,
        device,
        products_of(graph),
        graph.node_kernels if graph.node_kernels.size else None,
        graph.stream_bytes if graph.stream_bytes.size else None,
    )
    terms, links = range(len(graph.unary_node)), range(len(graph.edge_src))
    communication, edges = _term_seconds(graph, plan_s, terms), _edge_seconds(graph, plan_s, links)
    return PricedGraph(graph, plan_s[Beside.NOTHING], compute, communication, edges, plan_s)


def price_once(priced: PricedGraph, num_micro_batches: int) -> PricedGraph:
    """What of the prices of a pipeline's stage is spent once per step, not per micro-batch.

    That is what has to do with the update of its parameters: resharding that is done less often
    than there are micro-batches, and operators around which there is no other.
    """
    graph = priced.graph
    terms = graph.unary_weight < num_micro_batches
    links = graph.edge_weight < num_micro_batches
    has_any, has_often = _resharded(graph, num_micro_batches)
    is_once = np.repeat(has_any & ~has_often, graph.num_strategies)
    return replace(
        priced,
        compute_s=np.where(is_once, priced.compute_s, 0.0),
        communication_s=_term_seconds(graph, priced.beside_s, np.flatnonzero(terms)),
        edges=_edge_seconds(graph, priced.beside_s, np.flatnonzero(links)),
    )


def may_be_once(graph: StrategyGraph, num_micro_batches: int) -> Bool:
    """bool[S] strategies whose computing `price_once` counts, in any graph that this is part of.

    There operators may have more around them than here.
    """
    _, has_often = _resharded(graph, num_micro_batches)
    return np.repeat(~has_often, graph.num_strategies)


def _resharded(graph: StrategyGraph, num_micro_batches: int) -> tuple[Bool, Bool]:
    """bool[N], bool[N] operators that are resharded at all, and per micro-batch."""
    nodes = np.concatenate([graph.unary_node, graph.edge_src, graph.edge_dst])
    weights = np.concatenate([graph.unary_weight, graph.edge_weight, graph.edge_weight])
    has_any, has_often = np.zeros((2, graph.num_nodes), np.bool_)
    has_any[nodes] = True
    has_often[nodes[weights >= num_micro_batches]] = True
    return has_any, has_often


def _term_seconds(
    graph: StrategyGraph, beside_s: Mapping[Beside, Float], terms: Iterable[int]
) -> Float:
    """float64[S] seconds of each strategy's own collectives, some of them."""
    found = np.zeros(len(graph.strategy_label))
    seconds_of, beside = _by_number(beside_s, graph.unary_beside)
    for i in terms:
        plans = graph.unary_plan[graph.unary_offset[i] : graph.unary_offset[i + 1]]
        seconds = seconds_of[beside[i]] if beside else seconds_of[Beside.NOTHING]
        found[graph.span(int(graph.unary_node[i]))] += graph.unary_weight[i] * seconds[plans]
    return found


def _edge_seconds(
    graph: StrategyGraph, beside_s: Mapping[Beside, Float], links: Iterable[int]
) -> dict[tuple[int, int], Float]:
    """Resharding seconds between two nodes, of some edges; see `PricedGraph.edges`."""
    found: dict[tuple[int, int], Float] = {}
    seconds_of, beside = _by_number(beside_s, graph.edge_beside)
    # Lists: edges are many and most of them small.
    counts, offsets, weights, sources, targets = (
        one.tolist()
        for one in (
            graph.num_strategies,
            graph.edge_offset,
            graph.edge_weight,
            graph.edge_src,
            graph.edge_dst,
        )
    )
    for i in links:
        src, dst = sources[i], targets[i]
        seconds = seconds_of[beside[i]] if beside else seconds_of[Beside.NOTHING]
        plans = graph.edge_plan[offsets[i] : offsets[i + 1]]
        matrix = weights[i] * seconds[plans].reshape(counts[src], counts[dst])
        key = (src, dst) if src < dst else (dst, src)
        matrix = matrix if src < dst else matrix.T
        found[key] = found[key] + matrix if key in found else matrix
    return found


def plan_seconds(
    graph: StrategyGraph, beside: Beside, mesh: LogicalMesh, device: DeviceSpec
) -> Float:
    """float64[P] seconds of each reshard plan of values of a kind."""
    steps = added_seconds(
        graph.step_kind,
        graph.step_axes,
        graph.step_bytes,
        np.full(len(graph.step_kind), int(beside)),
        mesh,
        device,
    )
    plan_s: Float = np.zeros(len(graph.plan_offset) - 1)
    moving = np.flatnonzero(np.diff(graph.plan_offset))
    if moving.size:
        # Each plan is summed alone: equal plans stay equal to the last bit.
        plan_s[moving] = np.add.reduceat(steps, graph.plan_offset[moving])
    return plan_s


def _besides(graph: StrategyGraph) -> set[Beside]:
    found = np.concatenate([graph.unary_beside, graph.edge_beside, [Beside.NOTHING]])
    return set(map(Beside, np.unique(found).tolist()))


def _by_number(
    beside_s: Mapping[Beside, Float], given: npt.NDArray[np.int64]
) -> tuple[dict[int, Float], list[int]]:
    """Seconds of plans by the number of what runs beside, and that of each edge or term.

    Graphs that do not say it have none that runs beside anything.
    """
    return {int(beside): seconds for beside, seconds in beside_s.items()}, given.tolist()


@dataclass(frozen=True)
class Volume:
    """Collectives of one kind over one set of axes.

    Attributes:
        payload_bytes: sum of payload bytes per device and step (see `cost.collective`).
        count: how many are run per step.
    """

    payload_bytes: float
    count: float


def volumes(
    graph: StrategyGraph, choice: npt.ArrayLike
) -> dict[tuple[CollectiveKind, int], Volume]:
    """Bytes that a choice moves, per collective kind and mask of mesh axes.

    Args:
        graph: the strategy graph.
        choice: int[N] chosen strategy of each node.

    Returns:
        ``(kind, axes mask)`` -> volume, sorted; local steps are not among them.
    """
    choice = np.asarray(choice, np.int64)
    plans = [graph.unary_plan[graph.unary_offset[:-1] + choice[graph.unary_node]]]
    columns = graph.num_strategies[graph.edge_dst]
    entry = choice[graph.edge_src] * columns + choice[graph.edge_dst]
    plans.append(graph.edge_plan[graph.edge_offset[:-1] + entry])
    weights = np.concatenate([graph.unary_weight, graph.edge_weight])
    total: dict[tuple[CollectiveKind, int], tuple[float, float]] = {}
    for plan, weight in zip(np.concatenate(plans), weights, strict=True):
        for step in range(graph.plan_offset[plan], graph.plan_offset[plan + 1]):
            kind = CollectiveKind(int(graph.step_kind[step]))
            if kind is CollectiveKind.LOCAL:
                continue
            key = (kind, int(graph.step_axes[step]))
            moved, count = total.get(key, (0.0, 0.0))
            total[key] = (moved + weight * graph.step_bytes[step], count + weight)
    return {key: Volume(float(b), float(c)) for key, (b, c) in sorted(total.items())}
