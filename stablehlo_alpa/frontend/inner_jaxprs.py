"""Jaxprs in the parameters of equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from jax.extend.core import ClosedJaxpr, Jaxpr, jaxprs_in_params

# What a jaxpr consists of is asked for several times while it lives, and it never changes.
_found: MutableMapping[Any, tuple[Any, ...]] = WeakKeyDictionary()


def equations(jaxpr: Any) -> tuple[Any, ...]:
    """Every equation of a jaxpr, those of inner jaxprs included, each in front of its own."""
    if jaxpr not in _found:
        _found[jaxpr] = tuple(_equations(jaxpr))
    return _found[jaxpr]


def inner_equations(equation: Any) -> Iterator[Any]:
    """Every equation that is inside of one."""
    return (one for jaxpr in jaxprs_in_params(equation.params) for one in equations(jaxpr))


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for inner in jaxprs_in_params(equation.params):
            yield from _equations(inner)


def with_equations(jaxpr: Jaxpr, made: Sequence[Any]) -> Jaxpr:
    """A jaxpr of other equations; the same object where they are its own."""
    is_other = any(new is not old for new, old in zip(made, jaxpr.eqns, strict=True))
    return jaxpr.replace(eqns=[*made]) if is_other else jaxpr


def with_inner_jaxprs(equation: Any, rewrite: Callable[[Any], Any]) -> Any:
    """An equation with other jaxprs, see `with_inner`; the same object where they are its own."""
    params = with_inner(equation.params, rewrite)
    is_other = any(params[key] is not equation.params[key] for key in params)
    return equation.replace(params=params) if is_other else equation


def with_inner(params: dict[str, Any], rewrite: Callable[[Any], Any]) -> dict[str, Any]:
    """Parameters of an equation with other jaxprs.

    Args:
        params: of the equation.
        rewrite: takes and returns an open jaxpr; what holds those that it returns as they are stays
            the same object.
    """
    return {key: _with_inner(value, rewrite) for key, value in params.items()}


def _with_inner(value: Any, rewrite: Callable[[Any], Any]) -> Any:
    if isinstance(value, ClosedJaxpr):
        inner = rewrite(value.jaxpr)
        return value if inner is value.jaxpr else value.replace(jaxpr=inner)
    if isinstance(value, Jaxpr):
        return rewrite(value)
    if isinstance(value, tuple):
        parts = [_with_inner(part, rewrite) for part in value]
        if all(new is old for new, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value
