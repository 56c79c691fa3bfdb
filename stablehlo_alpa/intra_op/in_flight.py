"""Memory of a pipeline's stage: what is there once, and what every micro-batch in flight keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stablehlo_alpa.cost.strategy_graph import Bool, Float, Int, StrategyGraph


@dataclass(frozen=True, eq=False)
class StageMemory:
    """Bytes per device that a stage holds between its programs, linear in the one-hot choice.

    A stage with ``s`` micro-batches in flight holds at least ``rest + s * activation`` bytes when
    the last of them has gone forward (paper, Eq. 5), and ``transient`` beside that while its last
    layer works.

    Attributes:
        rest: float64[S] arguments of the step, those of a batch with all micro-batches, and the
            sums over them.
        activation: float64[S] what the forward phase leaves to the backward phase.
        transient: float64[S] all else at one program point, that where no choice avoids the most.
    """

    rest: Float
    activation: Float
    transient: Float

    @classmethod
    def of(
        cls,
        graph: StrategyGraph,
        arguments: Int,
        batches: Int,
        is_kept_here: Bool,
        num_micro_batches: int,
    ) -> StageMemory:
        """Those of a part of a stage, so that no stage needs less than the sum of its parts.

        What one part makes and another reads is counted where it is read: between parts of one
        stage nothing is an argument or a result, whose buffers are there all the time.

        Args:
            graph: strategies of the part.
            arguments: nodes of the arguments that are there all the time.
            batches: nodes of arguments of which every micro-batch has a part, all there as well.
            is_kept_here: bool[inputs] what arrives in the forward phase, and no part before this
                one reads.
            num_micro_batches: of a step; sums over one are none.
        """
        rest = np.zeros(len(graph.strategy_label))
        activation = np.zeros(len(graph.strategy_label))
        # Arguments come before all else that their node holds.
        first: dict[int, int] = {}
        for value, node in enumerate(graph.value_node.tolist()):
            first.setdefault(node, value)
        held = [(node, 1) for node in arguments.tolist()]
        held += [(node, num_micro_batches) for node in batches.tolist()]
        for node, count in held:
            if node in first:
                rest[graph.span(node)] += count * _bytes(graph, first[node])
        is_kept = _kept_by_part(graph, is_kept_here)
        for value in np.flatnonzero(is_kept).tolist():
            activation[graph.span(int(graph.value_node[value]))] += _bytes(graph, value)
        if num_micro_batches > 1:
            for node, sizes in _accumulators(graph):
                rest[graph.span(node)] += sizes
        is_held = is_kept.copy()
        is_held[[first[node] for node, _ in held if node in first]] = True
        # Another part may hold what arrives.
        nodes = graph.input_node >= 0
        is_held[: nodes.sum()] |= graph.input_is_transfer[nodes]
        return cls(rest, activation, _transient(graph, is_held, is_kept))


def kept_values(graph: StrategyGraph) -> Bool:
    """bool[V] values that the forward phase leaves to the backward phase."""
    last = graph.num_forward_points - 1
    is_kept = (graph.value_start <= last) & (graph.value_end > last)
    # Arguments come first; what other stages send is there for a micro-batch, the rest all along.
    nodes = graph.input_node >= 0
    is_kept[: nodes.sum()] &= graph.input_is_transfer[nodes]
    return is_kept


def _kept_by_part(graph: StrategyGraph, is_kept_here: Bool) -> Bool:
    """bool[V] of the kept values those that a part of a stage answers for.

    Results, which are there to the end, are for who reads them.
    """
    is_kept = kept_values(graph)
    nodes = graph.input_node >= 0
    count = int(nodes.sum())
    is_kept[:count] &= is_kept_here[nodes]
    is_kept[count:] &= graph.value_end[count:] < graph.num_points - 1
    return is_kept


def _transient(graph: StrategyGraph, is_held: Bool, is_kept: Bool) -> Float:
    """float64[S] bytes of values that are not held anyway, at one point where all kept ones are.

    What is held is there until the update of the parameters begins, which takes its place.
    """
    found = np.zeros(len(graph.strategy_label))
    values = np.flatnonzero(~is_held)
    if not values.size:
        return found
    least = np.minimum.reduceat(graph.value_bytes, graph.value_offset[:-1])[values]
    change = np.zeros(graph.num_points + 1)
    np.add.at(change, graph.value_start[values], least)
    np.add.at(change, graph.value_end[values] + 1, -least)
    begin = int(graph.value_start[is_kept].max(initial=0))
    before_update = graph.num_backward_points or graph.num_points
    end = int(graph.value_end[is_kept].min(initial=before_update - 1))
    point = begin + int(np.argmax(np.cumsum(change)[begin : end + 1]))
    for value in values.tolist():
        if graph.value_start[value] <= point <= graph.value_end[value]:
            found[graph.span(int(graph.value_node[value]))] += _bytes(graph, value)
    return found


def in_pipeline(graph: StrategyGraph, in_flight: int, num_micro_batches: int) -> StrategyGraph:
    """The stage with what its pipeline keeps beside the micro-batch that runs.

    The phases of a stage are programs: what the forward phase leaves to the backward phase is an
    input of that program, and there until it ends.

    Args:
        graph: strategies of the stage, its live values those of one micro-batch alone.
        in_flight: micro-batches whose activations are kept, the running one included.
        num_micro_batches: of a step; sums over one are none.
    """
    nodes: list[int] = []
    names: list[str] = []
    sizes: list[Float] = []
    is_kept = kept_values(graph)
    if is_kept.any() and graph.num_backward_points:
        end = np.maximum(graph.value_end, graph.num_backward_points - 1)
        graph = replace(graph, value_end=np.where(is_kept, end, graph.value_end))
    if in_flight > 1:
        for value in np.flatnonzero(is_kept).tolist():
            nodes.append(int(graph.value_node[value]))
            names.append(f"{graph.value_name[value]} of {in_flight - 1} more micro-batches")
            sizes.append((in_flight - 1) * _bytes(graph, value))
    if num_micro_batches > 1:
        # Arguments come first among the values.
        of_batch = graph.input_is_batch[graph.input_node >= 0]
        for value in np.flatnonzero(of_batch).tolist():
            nodes.append(int(graph.value_node[value]))
            names.append(f"{graph.value_name[value]} of the other micro-batches")
            sizes.append((num_micro_batches - 1) * _bytes(graph, value))
        for node, one in _accumulators(graph):
            nodes.append(node)
            names.append(f"sum at {graph.node_name[node]}")
            sizes.append(one)
    if not nodes:
        return graph
    counts = graph.num_strategies[nodes]
    return replace(
        graph,
        value_node=np.concatenate([graph.value_node, nodes]),
        value_start=np.concatenate([graph.value_start, np.zeros(len(nodes), np.int64)]),
        value_end=np.concatenate([graph.value_end, np.full(len(nodes), graph.num_points - 1)]),
        value_name=graph.value_name + tuple(names),
        value_offset=np.concatenate(
            [graph.value_offset, graph.value_offset[-1] + np.cumsum(counts)]
        ),
        value_bytes=np.concatenate([graph.value_bytes, *sizes]),
    )


def _bytes(graph: StrategyGraph, value: int) -> Float:
    """float64[strategies of its node] bytes of a value."""
    return graph.value_bytes[graph.value_offset[value] : graph.value_offset[value + 1]]


def _accumulators(graph: StrategyGraph) -> list[tuple[int, Float]]:
    """Node and bytes per strategy of each sum."""
    nodes = graph.accumulator_node
    if not nodes.size:
        return []
    ends = np.cumsum(graph.num_strategies[nodes])
    return list(zip(nodes.tolist(), np.split(graph.accumulator_bytes, ends[:-1]), strict=True))
