"""What of a layer the backward pass computes again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import jax
from alpa_runtime.host_memory import type_of
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from stablehlo_alpa.layers.attention import function_of, recomputing_attention
from stablehlo_alpa.layers.options import Remat
from stablehlo_alpa.layers.scopes import STACK_SCOPE, TURNS_SCOPE


def recomputing(layer: ClosedJaxpr, remat: Remat) -> Callable[..., list[Any]]:
    """A layer as a function whose backward pass computes so much again.

    A loop over several of the model's layers keeps what goes from one turn to the next; what is in
    a turn is computed again. What cuts stacks for layers stays outside: gradients of one layer must
    not wait for those of another.

    Args:
        layer: of the forward function.
        remat: see `LayerOption`.
    """
    if not remat:
        return _kept(layer)
    runs = list(_runs(layer))
    if len(runs) == 1 and runs[0][0] is not _turns:
        return runs[0][0](layer, remat)
    parts = [
        (inputs, outputs, run(part, remat))
        for run, numbers in runs
        for inputs, outputs, part in [function_of(layer.jaxpr, numbers)]
    ]

    def call(*args: Any) -> list[Any]:
        jaxpr = layer.jaxpr
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, layer.consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))
        for inputs, outputs, part in parts:
            results = part(*(values[variable] for variable in inputs))
            values.update(zip(outputs, results, strict=True))
        return [atom.val if isinstance(atom, Literal) else values[atom] for atom in jaxpr.outvars]

    return call


def _runs(layer: ClosedJaxpr) -> Iterator[tuple[Callable[..., Any], list[int]]]:
    """Equations that stand beside each other, and what makes a function of them."""
    equations = layer.jaxpr.eqns
    for (make, _), group in groupby(range(len(equations)), lambda i: _maker(i, equations[i])):
        yield make, list(group)


def _maker(number: int, equation: Any) -> tuple[Callable[..., Any], int]:
    """What makes a function of an equation; loops are functions by themselves."""
    scopes = str(equation.source_info.name_stack).split("/")
    if STACK_SCOPE in scopes:
        return _kept, -1
    if equation.primitive.name == "scan" and TURNS_SCOPE in scopes:
        return _turns, number
    return _straight, -1


def _kept(part: ClosedJaxpr, remat: Remat = False) -> Callable[..., list[Any]]:
    """What is not computed again."""
    run: Callable[..., list[Any]] = jaxpr_as_fun(part)
    return run


def _straight(layer: ClosedJaxpr, remat: Remat) -> Callable[..., list[Any]]:
    """What has no loop over layers."""
    if remat == "attention":
        return recomputing_attention(layer)
    run: Callable[..., list[Any]] = jax.checkpoint(jaxpr_as_fun(layer))
    return run


def _turns(part: ClosedJaxpr, remat: Remat) -> Callable[..., list[Any]]:
    """A loop whose turns are computed again."""
    (equation,) = part.jaxpr.eqns
    body = equation.params["jaxpr"]
    avals = [variable.aval for variable in body.jaxpr.invars]
    shapes = list(map(type_of, avals))
    again = jax.make_jaxpr(recomputing(body, remat))(*shapes)

    def run(*args: Any) -> list[Any]:
        given = dict(zip(part.jaxpr.invars, args, strict=True))
        operands = [a.val if isinstance(a, Literal) else given[a] for a in equation.invars]
        results = equation.primitive.bind(*operands, **dict(equation.params, jaxpr=again))
        made = dict(zip(equation.outvars, results, strict=True))
        return [made[variable] for variable in part.jaxpr.outvars]

    return run
