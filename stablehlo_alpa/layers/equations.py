"""What is known of equations before they are cut: their work, their kinds, what goes between."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from jax.extend.core import Literal

from stablehlo_alpa.layers.flatten import used_equations
from stablehlo_alpa.layers.flops import equation_flops

Tensor: TypeAlias = tuple[float, int, list[int]]
"""Bytes, the equation that makes it, those that use it, ascending."""


def work_of(jaxpr: Any, results: Iterable[Any] | None = None) -> list[float]:
    """FLOPs per equation that results are made by, all of them unless some are named.

    None of those on constants alone, which are of no layer, nor of those of other results: what is
    looked at beside a loss may take the whole batch, and is of no layer then.
    """
    used = set(map(id, jaxpr.eqns if results is None else used_equations(jaxpr.eqns, results)))
    made: set[Any] = {*jaxpr.constvars, *jaxpr.invars}
    work = []
    for equation in jaxpr.eqns:
        is_open = any(not isinstance(a, Literal) and a in made for a in equation.invars)
        work.append(equation_flops(equation) if is_open and id(equation) in used else 0.0)
        if is_open:
            made.update(equation.outvars)
    return work


def kinds_of(jaxpr: Any) -> list[tuple[Any, ...]]:
    """Per equation what is done, with which types: the same for those of equal layers."""
    return [
        (
            equation.primitive.name,
            *(atom.aval for atom in (*equation.invars, *equation.outvars)),
        )
        for equation in jaxpr.eqns
    ]


def tensors_of(jaxpr: Any) -> list[Tensor]:
    """Everything that equations make and others use."""
    makers: dict[Any, int] = {}
    users: dict[Any, list[int]] = {}
    for index, equation in enumerate(jaxpr.eqns):
        for atom in equation.invars:
            if not isinstance(atom, Literal) and atom in makers:
                users.setdefault(atom, []).append(index)
        for variable in equation.outvars:
            makers[variable] = index
    return [(_bytes(variable.aval), makers[variable], found) for variable, found in users.items()]


def _bytes(aval: Any) -> float:
    size = getattr(aval, "size", 0)
    return float(size * getattr(getattr(aval, "dtype", None), "itemsize", 8))
