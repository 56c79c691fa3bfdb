"""Operators of other packages that call the host only once they are lowered.

A primitive of equinox (`lineax.linear_solve` is one) is what its implementation computes, which jax
traces while it lowers the program. What that calls is an address in this process, which no plan can
carry out.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
from alpa_runtime.host_memory import type_of

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.callbacks import CALLBACKS
from stablehlo_alpa.frontend.inner_jaxprs import equations, with_equations, with_inner_jaxprs
from stablehlo_alpa.frontend.jaxpr_parts import as_call

# How the targets begin by which XLA calls Python.
_PYTHON = (
    "xla_python_",
    "xla_ffi_python_",
    "xla_ffi_partitioned_python_",
    "xla_buffer_python_",
)


def with_calls_seen(closed: Any) -> Any:
    """A jaxpr in which such operators are what they are made of; the same one without any."""
    if not any(map(_is_of_others, equations(closed.jaxpr))):
        return closed
    jaxpr = _opened(closed.jaxpr, {})
    return closed if jaxpr is closed.jaxpr else closed.replace(jaxpr=jaxpr)


def check_calls(name: str, text: str) -> None:
    """Refuses the text of a function that calls Python by an address, as a `TraceError`."""
    for target in _PYTHON:
        if f'call_target_name = "{target}' in text:
            raise TraceError(
                f"{name} calls back into Python ({target}*) from an operator that jax opens only "
                "when it lowers it, which a planned program cannot do; call jax.pure_callback or "
                "io_callback in the function itself, or switch the call off where a library makes "
                "it (EQX_ON_ERROR=nan for checks of equinox)"
            )


def _is_of_others(equation: Any) -> bool:
    """Whether a primitive is not of jax, and has an implementation to be traced."""
    implementation = getattr(equation.primitive, "impl", None)
    while isinstance(implementation, functools.partial):
        implementation = implementation.func
    module = getattr(implementation, "__module__", None) or "jax"
    return module.partition(".")[0] not in {"jax", "jaxlib", "stablehlo_alpa"}


def _opened(jaxpr: Any, made: dict[Any, Any]) -> Any:
    if jaxpr not in made:
        new = [_equation(equation, made) for equation in jaxpr.eqns]
        made[jaxpr] = with_equations(jaxpr, new)
    return made[jaxpr]


def _equation(equation: Any, made: dict[Any, Any]) -> Any:
    if not _is_of_others(equation):
        return with_inner_jaxprs(equation, lambda inner: _opened(inner, made))

    def run(*args: Any) -> Any:
        return equation.primitive.impl(*args, **equation.params)

    try:
        closed = jax.make_jaxpr(run)(*(type_of(atom.aval) for atom in equation.invars))
    except Exception:
        # It is lowered in a way of its own.
        return equation
    if not any(one.primitive.name in CALLBACKS for one in equations(closed.jaxpr)):
        return equation
    opened = closed.replace(jaxpr=_opened(closed.jaxpr, made))
    return as_call(equation, equation.primitive.name, opened)
