"""The layer of every operator of a stage, read off its module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax.extend.mlir import ir
from jax.interpreters.mlir import make_ir_context

from stablehlo_alpa.cost.strategy_graph import Int, StrategyGraph

NO_LAYER = -1
"""Of operators of a step that is not cut into layers."""

_LAYER, _ROLE, _LEADER, _INPUT = "alpa.layer", "alpa.role", "leader", "input"


def operator_layers(merged: str, graph: StrategyGraph) -> Int:
    """int64[N] the layer of each operator of a strategy graph; `NO_LAYER` where there is none.

    Operators say theirs (``alpa.layer``). Those that compilation has put in between (sums that are
    resolved) are of the layer that makes what they take; arguments of the first layer that reads
    them.

    Args:
        merged: the module that the graph was made of, in generic form.
        graph: the strategy graph.
    """
    with make_ir_context() as context:
        # Every dialect that JAX emits is registered; ours is not.
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(merged)
        (main,) = (op for op in module.body.operations if _name(op) == "main")
        return _aligned(main.operation, graph)


def _aligned(main: Any, graph: StrategyGraph) -> Int:
    """Operators of the graph stand in the order of the module, arguments first."""
    layers = np.full(graph.num_nodes, NO_LAYER, np.int64)
    ops = _all(main)
    found = _layers_of(ops)
    arguments = list(main.regions[0].blocks[0].arguments)
    for argument, node in zip(arguments, graph.input_node.tolist(), strict=True):
        if node >= 0:
            layers[node] = _of_argument(argument, found)
    others = iter([n for n, op in enumerate(graph.node_op) if op != _INPUT])
    for op in ops:
        if _ROLE not in op.attributes or ir.StringAttr(op.attributes[_ROLE]).value != _LEADER:
            continue
        # What loops and branches add besides stands between.
        for node in others:
            layers[node] = found.get(op, NO_LAYER)
            if graph.node_op[node] == op.name:
                break
    return layers


def _all(main: Any) -> list[Any]:
    """The operators of a function, those of regions behind what has them."""
    found: list[Any] = []

    def visit(op: Any) -> Any:
        found.append(op.operation)
        return ir.WalkResult.ADVANCE

    main.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def _layers_of(ops: Sequence[Any]) -> dict[Any, int]:
    """By operator its own layer, that of what makes its operands, or of what reads its results."""
    found = {op: _own(op) for op in ops if _LAYER in op.attributes}
    # What ends a block reads everything.
    ops = [op for op in ops if len(op.results)]
    for op in ops:
        if op not in found:
            makers = [operand.owner for operand in op.operands]
            _take(op, [one.operation for one in makers if not isinstance(one, ir.Block)], found)
    for op in reversed(ops):
        if op not in found:
            _take(op, _readers(op.results), found)
    return found


def _take(op: Any, others: Sequence[Any], found: dict[Any, int]) -> None:
    """An operator is of the layer of the first of others that has one."""
    known = [found[one] for one in others if one in found]
    if known:
        found[op] = known[0]


def _of_argument(argument: Any, found: dict[Any, int]) -> int:
    """The first layer that reads an argument, or that what is made of it is joined with."""
    readers = _readers([argument])
    own = [_own(one) for one in readers if _LAYER in one.attributes]
    return min(own or [found[one] for one in readers if one in found], default=NO_LAYER)


def _own(op: Any) -> int:
    return int(ir.IntegerAttr(op.attributes[_LAYER]).value)


def _readers(values: Sequence[Any]) -> list[Any]:
    return [use.owner.operation for value in values for use in value.uses]


def _name(op: Any) -> str | None:
    attributes = op.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else None
