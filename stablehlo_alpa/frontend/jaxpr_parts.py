"""Parts of a jaxpr as functions, and the values that a loop's jaxpr carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
from alpa_runtime.host_memory import type_of
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

from stablehlo_alpa.layers.flatten import used_equations


def body_of(equation: Any) -> Any:
    """The jaxpr of a scan's turn."""
    return equation.params["jaxpr"].jaxpr


def carried_values(equation: Any) -> list[Any]:
    """What a scan carries, as its turn takes it."""
    start = equation.params["num_consts"]
    return list(body_of(equation).invars[start : start + equation.params["num_carry"]])


def needed_values(inner: Sequence[Any], results: Iterable[Any]) -> set[Any]:
    """What results are made of that no equation makes."""
    results = [*results]
    used = used_equations(inner, results)
    made = {one for equation in used for one in equation.outvars}
    atoms = {
        *(atom for one in used for atom in one.invars if not isinstance(atom, Literal)),
        *(atom for atom in results if not isinstance(atom, Literal)),
    }
    return atoms - made


def as_function(
    body: Any, inputs: Sequence[Any], inner: Sequence[Any], results: Sequence[Any]
) -> Callable[..., list[Any]]:
    """A part of a body as a function."""
    used = used_equations(inner, results)
    names = body.debug_info.with_unknown_names()
    return jaxpr_as_fun(ClosedJaxpr(Jaxpr((), [*inputs], [*results], used, set(), names), ()))


def as_call(equation: Any, name: str, closed: Any) -> Any:
    """An equation that calls a jaxpr in place of what it did, of the same operands and results."""

    def fun(*args: Any) -> list[Any]:
        return list(jaxpr_as_fun(closed)(*args))

    fun.__name__ = fun.__qualname__ = name
    avals = [type_of(variable.aval) for variable in closed.jaxpr.invars]
    call = jax.make_jaxpr(jax.jit(fun, keep_unused=True))(*avals).jaxpr.eqns[-1]
    return equation.replace(primitive=call.primitive, params=call.params, effects=call.effects)
