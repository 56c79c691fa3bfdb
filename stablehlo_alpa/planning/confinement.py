"""From a confinement of mesh axes to masks over the strategies of a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.cost import HANDED_ON, NO_CLASS, UNSPLIT, StrategyGraph
from stablehlo_alpa.planning.boundary import Boundary, Companions
from stablehlo_alpa.planning.prescription import Confinement, Dimension
from stablehlo_alpa.planning.work import splits_most


def confined(
    confinement: Confinement, boundary: Boundary, graph: StrategyGraph
) -> dict[int, npt.NDArray[np.bool_]]:
    """Strategies that a confinement leaves, per operator of a graph.

    Of an operator with FLOPs those that split them the most.

    Args:
        confinement: in dimensions of the inputs of the step.
        boundary: what the step calls the arguments of the graph's module.
        graph: of the step, or of a part of it.
    """
    owners = _owners(boundary, graph)
    axes = list(graph.mesh_axes)
    batch = _classes(owners, confinement.batch)
    own = [_limit(owners, confinement.axes.get(axis)) for axis in axes]
    more = [_classes(owners, confinement.light.get(axis, ())) for axis in axes]
    light = [None if limit is None else limit | m for limit, m in zip(own, more, strict=True)]
    # A micro-batch of one example has no dimension that counts them.
    examples = batch.union(*more)
    idle = [None if axis in confinement.idle else own[k] for k, axis in enumerate(axes)]
    owned = frozenset().union(*owners.values()) - examples
    found = {}
    for node in range(graph.num_nodes):
        span = graph.span(node)
        rows, flops = graph.strategy_class[span], graph.strategy_flops[span]
        has_flops = bool(flops.size and flops.max() > 0)
        works_on_examples = not examples.isdisjoint(graph.node_classes[node])
        limits = (own if graph.node_is_product[node] else light) if works_on_examples else idle
        # What is made of nothing but numbers, as random bits are, goes with what reads it: whole,
        # each device would make all of it.
        is_made = owned.isdisjoint(graph.node_classes[node])
        mask = _keeps(rows, limits, NO_CLASS if is_made else UNSPLIT)
        for axis in range(len(axes)):
            is_split = rows[:, axis] != UNSPLIT
            if limits is light and more[axis] and (mask & is_split).any():
                mask &= is_split
        if has_flops and mask.any():
            mask &= splits_most(np.where(mask, flops, np.inf))
        if not mask.all():
            found[node] = mask
    return found


def companions(boundary: Boundary, graph: StrategyGraph, position: int) -> Companions:
    """What the dimensions of a result go together with, by its position."""
    owners = _owners(boundary, graph)
    return tuple(
        frozenset(dim for dim, classes in owners.items() if number in classes)
        for number in graph.output_classes[position]
    )


def _owners(boundary: Boundary, graph: StrategyGraph) -> dict[Dimension, set[int]]:
    """The classes of the graph that go with a dimension of an input of the step."""
    found: dict[Dimension, set[int]] = {}
    for position, entry in enumerate(boundary.inputs):
        for dimension, number in enumerate(graph.input_classes[position]):
            if number < 0:
                continue
            if entry is not None:
                found.setdefault((entry[0], dimension), set()).add(number)
            elif position in boundary.companions:
                for one in boundary.companions[position][dimension]:
                    found.setdefault(one, set()).add(number)
    return found


def _classes(
    owners: Mapping[Dimension, set[int]], dimensions: Collection[Dimension]
) -> frozenset[int]:
    return frozenset(number for one in dimensions for number in owners.get(one, ()))


def _limit(
    owners: Mapping[Dimension, set[int]], dimensions: Collection[Dimension] | None
) -> frozenset[int] | None:
    return None if dimensions is None else _classes(owners, dimensions)


def _keeps(
    rows: npt.NDArray[np.int64], limits: list[frozenset[int] | None], made: int
) -> npt.NDArray[np.bool_]:
    """bool[S]: strategies all of whose axes split what they may.

    Args:
        rows: int64[S, K] classes that they split.
        limits: per axis what it may split; None for anything.
        made: what any axis may split besides.
    """
    mask = np.ones(len(rows), np.bool_)
    for axis, limit in enumerate(limits):
        if limit is not None:
            mask &= np.isin(rows[:, axis], [HANDED_ON, UNSPLIT, made, *limit])
    return mask
