"""Calls of the host that look at what a step has computed: done behind it, by who calls the step.

A step that is a pipeline, or works on micro-batches, is many programs, and its values lie on many
meshes, perhaps in other processes. What ``jax.debug.print`` and other callbacks without results
look at outside of the gradients is whole all the same: it becomes a result of the step that the
caller never sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from alpa_runtime.callbacks import failure_of
from alpa_runtime.fetched import FetchedOperations
from jax.experimental import multihost_utils
from jax.extend.core import (
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    Literal,
    jaxpr_as_fun,
)

from stablehlo_alpa.frontend.callbacks import CALLBACKS, callback_name, flat_call
from stablehlo_alpa.frontend.inner_jaxprs import inner_equations
from stablehlo_alpa.layers.scopes import is_differentiated


@dataclass(frozen=True, eq=False)
class Report:
    """One call behind the step.

    Attributes:
        name: what messages call it.
        call: takes flat operands, arrays in this process.
        outputs: flat outputs of the program that are its operands, behind those of the function.
    """

    name: str
    call: Callable[..., Any]
    outputs: tuple[int, ...]

    def send(self, outputs: Sequence[Any], program: str) -> None:
        """Calls the function, in the first process.

        Args:
            outputs: all flat outputs of a step.
            program: its name, for messages.

        Raises:
            jax.errors.JaxRuntimeError: the function failed, as under ``jax.jit``.
        """
        operands = [_fetched(outputs[i]) for i in self.outputs]
        if jax.process_index() != 0:
            return
        try:
            self.call(*operands)
        except Exception as error:
            raise failure_of(program, error) from error


def take_reports(closed: Any) -> tuple[Any, tuple[Report, ...]]:
    """A jaxpr whose operands of reports are more of its results, and the reports, in order.

    Those inside of gradients stay: there every micro-batch has values of its own.
    """
    jaxpr = closed.jaxpr
    outputs, kept = list(jaxpr.outvars), []
    reports: list[Report] = []
    for equation in jaxpr.eqns:
        name = _reported(equation)
        if name is None:
            kept.append(equation)
            continue
        operands, call = _call_of(equation, jaxpr.debug_info.with_unknown_names())
        places = range(len(outputs), len(outputs) + len(operands))
        reports.append(Report(name, call, tuple(places)))
        outputs += operands
    if not reports:
        return closed, ()
    rest = jaxpr.replace(
        eqns=kept,
        outvars=outputs,
        effects=frozenset().union(*(equation.effects for equation in kept)),
        debug_info=jaxpr.debug_info.with_unknown_names(),
    )
    return closed.replace(jaxpr=rest), tuple(reports)


def _reported(equation: Any) -> str | None:
    """The name of what an equation is there to call; None of others.

    That may stand in branches, and in functions that return nothing.
    """
    if is_differentiated(equation):
        return None
    if not all(isinstance(variable, DropVar) for variable in equation.outvars):
        return None
    called = [
        one for one in (equation, *inner_equations(equation)) if one.primitive.name in CALLBACKS
    ]
    return callback_name(called[0]) if called and equation.effects else None


def _call_of(equation: Any, debug_info: Any) -> tuple[list[Any], Callable[..., Any]]:
    """The operands of an equation, and what it does with them on the host."""
    if equation.primitive.name in CALLBACKS:
        return list(equation.invars), flat_call(equation)
    atoms = (atom for atom in equation.invars if not isinstance(atom, Literal))
    operands = list(dict.fromkeys(atoms))
    body = ClosedJaxpr(Jaxpr((), operands, (), [equation], equation.effects, debug_info), ())
    run = jax.jit(jaxpr_as_fun(body))

    def call(*arrays: Any) -> None:
        run(*arrays)
        jax.effects_barrier()

    return operands, call


def _fetched(value: Any) -> Any:
    """A value in this process, as callbacks get it."""
    if isinstance(value, FetchedOperations):
        value = value.fetch()
    if isinstance(value, jax.Array) and not value.is_fully_addressable:
        if not value.is_fully_replicated:
            return multihost_utils.process_allgather(value, tiled=True)
        value = value.addressable_data(0)
    if jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return value
    return np.asarray(value)
