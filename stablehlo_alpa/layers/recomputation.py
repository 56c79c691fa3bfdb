"""What of a layer the backward pass computes again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun, jaxprs_in_params

from stablehlo_alpa.layers.attention import function_of, recomputing_attention
from stablehlo_alpa.layers.flops import has_matrix_product
from stablehlo_alpa.layers.options import Remat


def recomputing(layer: ClosedJaxpr, remat: Remat) -> Callable[..., list[Any]]:
    """A layer as a function whose backward pass computes so much again.

    A loop over several of the model's layers keeps what goes from one turn to the next; what is in
    a turn is computed again.

    Args:
        layer: of the forward function.
        remat: see `LayerOption`.
    """
    if not remat:
        run: Callable[..., list[Any]] = jaxpr_as_fun(layer)
        return run
    if not any(map(_is_stack, layer.jaxpr.eqns)):
        return _straight(layer, remat)
    parts = [
        (inputs, outputs, _turns(part, remat) if is_loop else _straight(part, remat))
        for is_loop, numbers in _runs(layer)
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


def _straight(layer: ClosedJaxpr, remat: Remat) -> Callable[..., list[Any]]:
    """What has no loop over layers."""
    if remat == "attention":
        return recomputing_attention(layer)
    run: Callable[..., list[Any]] = jax.checkpoint(jaxpr_as_fun(layer))
    return run


def _is_stack(equation: Any) -> bool:
    """Whether an equation is a loop over layers."""
    bodies = jaxprs_in_params(equation.params)
    return equation.primitive.name == "scan" and any(map(has_matrix_product, bodies))


def _runs(layer: ClosedJaxpr) -> list[tuple[bool, list[int]]]:
    """Loops over layers by themselves, and the equations before, between and behind them."""
    runs: list[tuple[bool, list[int]]] = []
    for number, equation in enumerate(layer.jaxpr.eqns):
        is_loop = _is_stack(equation)
        if is_loop or not runs or runs[-1][0]:
            runs.append((is_loop, []))
        runs[-1][1].append(number)
    return runs


def _turns(part: ClosedJaxpr, remat: Remat) -> Callable[..., list[Any]]:
    """A loop whose turns are computed again."""
    (equation,) = part.jaxpr.eqns
    body = equation.params["jaxpr"]
    avals = [variable.aval for variable in body.jaxpr.invars]
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    again = jax.make_jaxpr(recomputing(body, remat))(*shapes)

    def run(*args: Any) -> list[Any]:
        given = dict(zip(part.jaxpr.invars, args, strict=True))
        operands = [a.val if isinstance(a, Literal) else given[a] for a in equation.invars]
        results = equation.primitive.bind(*operands, **dict(equation.params, jaxpr=again))
        made = dict(zip(equation.outvars, results, strict=True))
        return [made[variable] for variable in part.jaxpr.outvars]

    return run
