"""What is known of equations before they are cut: their work, their kinds, what goes between."""

from __future__ import annotations

from typing import Any, TypeAlias

from jax.extend.core import Literal

from stablehlo_alpa.layers.flops import equation_flops

Tensor: TypeAlias = tuple[float, int, list[int]]
"""Bytes, the equation that makes it, those that use it, ascending."""


def work_of(jaxpr: Any) -> list[float]:
    """FLOPs per equation; none of those on constants alone, which are of no layer."""
    made: set[Any] = {*jaxpr.constvars, *jaxpr.invars}
    work = []
    for equation in jaxpr.eqns:
        is_open = any(not isinstance(a, Literal) and a in made for a in equation.invars)
        work.append(equation_flops(equation) if is_open else 0.0)
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
