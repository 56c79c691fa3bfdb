"""A layer's strategies on a mesh in seconds and bytes, and two layers joined at their border."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.compiler import Module, Source, enumerate_strategies
from stablehlo_alpa.cost import may_be_once, price, price_once
from stablehlo_alpa.cost.strategy_graph import Float, Int, StrategyGraph
from stablehlo_alpa.inter_op.layer_parts import LayerPart
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.in_flight import StageMemory
from stablehlo_alpa.planning.stage import SlotKind
from stablehlo_alpa.store import Record, Store, digest


@dataclass(frozen=True, eq=False)
class Place:
    """Where a value on a layer's border lies.

    Attributes:
        node: whose choice says how it is split; -1: every device has all of it.
        rows: int64[strategies of the node, mesh axes] per strategy and axis the dimension that is
            split, -1 for none.
    """

    node: int
    rows: Int


class Layer(Protocol):
    """A layer on a mesh.

    Attributes:
        content: what it was made of, for the store.
    """

    @property
    def content(self) -> str:
        """See above."""

    @property
    def whole(self) -> LayerCosts:
        """All that is known of it."""

    def least_bytes(self, in_flight: int, *, is_last: bool = False) -> float:
        """See `LayerCosts.least_bytes`."""


class KeptLayer:
    """A layer whose costs, which are many, are read or made when they are asked for."""

    def __init__(self, content: str, held: Record, make: Callable[[], LayerCosts]) -> None:
        """Takes what it was made of, its bytes as `_held` has them, and what makes it."""
        self.content, self._held, self._make = content, held, make
        self._lock, self._whole = threading.Lock(), list[LayerCosts]()

    @property
    def whole(self) -> LayerCosts:
        """All that is known of it."""
        with self._lock:
            if not self._whole:
                self._whole.append(self._make())
            return self._whole[0]

    def least_bytes(self, in_flight: int, *, is_last: bool = False) -> float:
        """See `LayerCosts.least_bytes`."""
        rest, activation, transient = self._held["bytes"]
        starts = self._held["starts"]
        return _least_bytes(starts, rest, activation, transient, in_flight, is_last)


@dataclass(frozen=True, eq=False)
class LayerCosts:
    """One layer, or several joined, on a mesh.

    Attributes:
        costs: seconds per step.
        once: of these what is spent once per step, not per micro-batch.
        once_least, once_most: float64[C] between which seconds of `once` lie that are of nodes, in
            any stage that the layer is part of: what is around a node there says which they are.
        rest, activation, transient: float64[C] see `StageMemory`; of several layers, what is
            transient is that of the last.
        inputs, outputs: places of arguments and results; of a single layer.
        content: what it was made of, for the store.
    """

    costs: Costs
    once: Costs
    once_least: Float
    once_most: Float
    rest: Float
    activation: Float
    transient: Float
    inputs: tuple[Place, ...] = ()
    outputs: tuple[Place, ...] = ()
    content: str = ""

    @classmethod
    def kept(
        cls, part: LayerPart, module: Module, mesh: LogicalMesh, count: int, store: Store
    ) -> Layer:
        """As `of`, from the store where it is there; then most of it is not read before its time.

        Args:
            part: the layer.
            module: it, to be parsed by this thread alone.
            mesh: where it runs.
            count: micro-batches of a step.
            store: keeps it.
        """
        device = mesh.cluster.device
        if not store.is_on:
            return cls.of(part, module, mesh, device, count)
        kinds = tuple(slot.kind for slot in part.inputs)
        content = digest((part.merged, kinds, part.is_owned, mesh, count))

        def found_in(source: Source) -> LayerCosts:
            record = store.remember(
                "layer costs",
                (content,),
                lambda: _record(cls.of(part, source, mesh, device, count)),
            )
            return _from_record(record, content)

        key = store.key("layer bytes", content)
        held = store.get(key)
        if held is not None:
            return KeptLayer(content, held, lambda: found_in(part.merged))
        found = found_in(module)
        store.put(key, _held(found))
        return found

    @classmethod
    def of(
        cls,
        part: LayerPart,
        module: Source,
        mesh: LogicalMesh,
        device: DeviceSpec,
        num_micro_batches: int,
    ) -> LayerCosts:
        """The strategies of a layer, priced.

        Args:
            part: the layer.
            module: it, parsed where several meshes are asked for.
            mesh: where it runs.
            device: of the mesh.
            num_micro_batches: of a step.
        """
        graph = enumerate_strategies(module, mesh, "a layer")
        memory = StageMemory.of(
            graph,
            _owned(graph, part, SlotKind.INPUT),
            _owned(graph, part, SlotKind.BATCH),
            np.array(part.is_owned, np.bool_) & graph.input_is_transfer,
            num_micro_batches,
        )
        sides = (
            (graph.input_node, graph.input_specs),
            (graph.output_node, graph.output_specs),
        )
        inputs, outputs = (
            tuple(
                Place(int(node), np.array([] if rows is None else rows, np.int64))
                for node, rows in zip(nodes, specs, strict=True)
            )
            for nodes, specs in sides
        )
        priced = price(graph, mesh, device)
        once = price_once(priced, num_micro_batches)
        may_be = may_be_once(graph, num_micro_batches)
        most = once.communication_s + np.where(may_be, priced.compute_s, 0.0)
        return cls(
            Costs.of(priced),
            Costs.of(once),
            once.communication_s[graph.allowed],
            most[graph.allowed],
            memory.rest,
            memory.activation,
            memory.transient,
            inputs,
            outputs,
        )

    def weighted(self, once: float) -> Costs:
        """The seconds, those that are spent once counting so much: never more than in a stage."""
        if once == 1.0:
            return self.costs
        more = once - 1.0
        node_s = self.costs.node_s + more * (self.once_least if more > 0 else self.once_most)
        tables = list(self.costs.tables)
        places = {edge: at for at, edge in enumerate(map(tuple, self.costs.edges.tolist()))}
        for edge, table in zip(map(tuple, self.once.edges.tolist()), self.once.tables, strict=True):
            at = places[edge]
            # Where both are infinite, so is the sum.
            tables[at] = tables[at] + np.where(np.isfinite(table), more * table, 0.0)
        return replace(self.costs, node_s=node_s, tables=tuple(tables))

    def resting(self, *, is_last: bool) -> Float:
        """float64[C] what is there once; of the last layer what is transient as well."""
        return self.rest + self.transient if is_last else self.rest

    @property
    def whole(self) -> LayerCosts:
        """Itself; see `Layer`."""
        return self

    def least_bytes(self, in_flight: int, *, is_last: bool = False) -> float:
        """No choice holds less with some micro-batches in flight, as the last layer or before."""
        starts, transient = self.costs.start[:-1], self.transient
        return _least_bytes(starts, self.rest, self.activation, transient, in_flight, is_last)


def join(
    one: LayerCosts, two: LayerCosts, crossings: tuple[tuple[bool, int, bool, int], ...]
) -> LayerCosts:
    """Two neighbouring layers as one, the values that they share split alike in both.

    Args:
        one: the first layer.
        two: the second.
        crossings: see `LayerParts.crossings`.
    """
    both = _beside(one.costs, two.costs)
    shift, start, node_s = len(one.costs.sizes), both.start, both.node_s.copy()
    edges, tables = both.edges.tolist(), list(both.tables)
    for is_result, at, is_other_result, other_at in crossings:
        first = (one.outputs if is_result else one.inputs)[at]
        second = (two.outputs if is_other_result else two.inputs)[other_at]
        for place, base, other in ((first, 0, second), (second, shift, first)):
            if place.node >= 0 and other.node < 0:
                # The other layer has all of it on every device.
                begin = start[place.node + base]
                is_split = np.any(place.rows >= 0, axis=1)
                node_s[begin : begin + len(place.rows)][is_split] = np.inf
        if first.node >= 0 and second.node >= 0:
            is_equal = (first.rows[:, None] == second.rows[None]).all(axis=2)
            edges.append([first.node, second.node + shift])
            tables.append(np.where(is_equal, 0.0, np.inf))
    costs = replace(
        both,
        node_s=node_s,
        edges=np.array(edges, np.int64).reshape(-1, 2),
        tables=tuple(tables),
    )
    return LayerCosts(
        costs,
        _beside(one.once, two.once),
        np.concatenate([one.once_least, two.once_least]),
        np.concatenate([one.once_most, two.once_most]),
        np.concatenate([one.rest, two.rest]),
        np.concatenate([one.activation, two.activation]),
        np.concatenate([np.zeros_like(one.transient), two.transient]),
        content=joined_content(one.content, two.content, crossings),
    )


def joined_content(one: str, two: str, crossings: tuple[tuple[bool, int, bool, int], ...]) -> str:
    """What two layers joined are made of, for the store; empty where it is not asked."""
    return digest(one, two, crossings) if one else ""


def _beside(one: Costs, two: Costs) -> Costs:
    """Two problems as one, with nothing between them."""
    sizes = np.concatenate([one.sizes, two.sizes])
    return Costs(
        rows=np.arange(sizes.sum()),
        sizes=sizes,
        node_s=np.concatenate([one.node_s, two.node_s]),
        edges=np.concatenate([one.edges, two.edges + len(one.sizes)]),
        tables=(*one.tables, *two.tables),
        first=np.concatenate([[0], np.cumsum(sizes)])[:-1],
    )


def _least_bytes(
    starts: Int, rest: Float, activation: Float, transient: Float, in_flight: int, is_last: bool
) -> float:
    held = (rest + transient if is_last else rest) + in_flight * activation
    return float(np.minimum.reduceat(held, starts).sum())


def _held(found: LayerCosts) -> Record:
    """What is kept of the bytes of a single layer."""
    held = [found.rest, found.activation, found.transient]
    return {"starts": found.costs.start[:-1], "bytes": held}


def _record(found: LayerCosts) -> Record:
    """What is kept of a single layer."""
    costs, once = found.costs, found.once
    return {
        "sizes": costs.sizes,
        "rows": costs.rows,
        "first": costs.first,
        "edges": costs.edges,
        "seconds": [costs.node_s, costs.flat_tables],
        "once_edges": once.edges,
        "once": [once.node_s, once.flat_tables],
        "once_between": [found.once_least, found.once_most],
        "bytes": [found.rest, found.activation, found.transient],
        "places": [
            [[one.node, one.rows] for one in side] for side in (found.inputs, found.outputs)
        ],
    }


def _from_record(record: Record, content: str) -> LayerCosts:
    inputs, outputs = (tuple(Place(*one) for one in side) for side in record["places"])
    costs = _costs(record, record["edges"], *record["seconds"])
    once = _costs(record, record["once_edges"], *record["once"])
    least, most = record["once_between"]
    rest, activation, transient = record["bytes"]
    return LayerCosts(
        costs, once, least, most, rest, activation, transient, inputs, outputs, content
    )


def _costs(record: Record, edges: Int, node_s: Float, tables: Float) -> Costs:
    sizes = record["sizes"]
    ends = np.cumsum(sizes[edges].prod(axis=1))
    return Costs(
        rows=record["rows"],
        sizes=sizes,
        node_s=node_s,
        edges=edges,
        tables=tuple(
            table.reshape(sizes[u], sizes[v])
            for table, (u, v) in zip(np.split(tables, ends[:-1]), edges.tolist(), strict=True)
        )
        if len(edges)
        else (),
        first=record["first"],
    )


def _owned(graph: StrategyGraph, part: LayerPart, kind: SlotKind) -> Int:
    """int64[...] nodes of the arguments of a kind that a layer owns."""
    arguments = zip(graph.input_node.tolist(), part.inputs, part.is_owned, strict=True)
    nodes = [node for node, slot, is_owned in arguments if is_owned and slot.kind is kind]
    return np.array([node for node in nodes if node >= 0], np.int64)
