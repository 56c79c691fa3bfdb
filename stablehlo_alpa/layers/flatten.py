"""Opens equations that hold more than one layer: calls, checkpoints and loops over layers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

_log = logging.getLogger(__name__)

_CHECKPOINTS = {"checkpoint", "remat2"}
_OPENED = {"jit", "pjit", "closed_call", "core_call", "scan"} | _CHECKPOINTS


def flatten(closed: ClosedJaxpr, is_opened: Callable[[Any], bool]) -> ClosedJaxpr:
    """A jaxpr of the same function in which some equations are replaced by what is in them.

    Calls and checkpoints are inlined, scans are unrolled; other equations stay as they are. What
    comes out of an opened equation is looked at again.

    Args:
        closed: the function; its constants may be tracers.
        is_opened: asked for every equation that can be opened.

    Returns:
        the flat jaxpr; its arguments are the constants of ``closed``, then its arguments.
    """

    def run(*args: Any) -> list[Any]:
        consts = args[: len(closed.consts)]
        return _evaluate(closed.jaxpr, consts, args[len(closed.consts) :], is_opened)

    avals = [variable.aval for variable in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals]
    return jax.make_jaxpr(run)(*shapes)


def without_unused(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The function without the equations that nothing uses: what they cost makes no layer."""
    jaxpr = closed.jaxpr
    used = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    kept = []
    for equation in reversed(jaxpr.eqns):
        # One without results, the boundary of a layer, is there for its own sake.
        is_used = not equation.outvars or used.intersection(equation.outvars)
        if is_used or equation.effects:
            kept.append(equation)
            used.update(atom for atom in equation.invars if not isinstance(atom, Literal))
    return ClosedJaxpr(jaxpr.replace(eqns=kept[::-1]), closed.consts)


def _evaluate(
    jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], is_opened: Callable[[Any], bool]
) -> list[Any]:
    values: dict[Any, Any] = {}
    values.update(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        name = equation.primitive.name
        if name in _OPENED and is_opened(equation):
            open_equation = _unroll if name == "scan" else _inline
            with jax.named_scope(str(equation.source_info.name_stack) or name):
                results = open_equation(equation, operands, is_opened)
        else:
            results = _single(equation, jaxpr.debug_info)(*operands)
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _single(equation: Any, debug_info: Any) -> Callable[..., list[Any]]:
    """An equation as a function of the values of its operands, literals included."""
    operands = [atom for atom in equation.invars if not isinstance(atom, Literal)]
    unique = list(dict.fromkeys(operands))
    names = debug_info.with_unknown_names()
    jaxpr = Jaxpr((), unique, equation.outvars, [equation], equation.effects, names)
    run = jaxpr_as_fun(ClosedJaxpr(jaxpr, ()))

    def call(*values: Any) -> list[Any]:
        given = {
            atom: value
            for atom, value in zip(equation.invars, values, strict=True)
            if not isinstance(atom, Literal)
        }
        return list(run(*(given[atom] for atom in unique)))

    return call


def _inline(equation: Any, operands: Sequence[Any], is_opened: Callable[[Any], bool]) -> list[Any]:
    if equation.primitive.name in _CHECKPOINTS:
        _log.info(
            "a jax.checkpoint holds more than one layer and is left out; use remat=True of the "
            "layers instead"
        )
    return _evaluate(_jaxpr(equation), _consts(equation), operands, is_opened)


def _jaxpr(equation: Any) -> Any:
    body = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    return getattr(body, "jaxpr", body)


def _consts(equation: Any) -> Sequence[Any]:
    body = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    return tuple(getattr(body, "consts", ()))


def _unroll(equation: Any, operands: Sequence[Any], is_opened: Callable[[Any], bool]) -> list[Any]:
    """A scan as one copy of its body per step; ``xs`` are sliced, ``ys`` are stacked."""
    params = equation.params
    num_consts, num_carry = params["num_consts"], params["num_carry"]
    length, is_reversed = params["length"], params["reverse"]
    consts = list(operands[:num_consts])
    carry = list(operands[num_consts : num_consts + num_carry])
    xs = operands[num_consts + num_carry :]
    stacked: list[list[Any]] = [[None] * length for _ in equation.outvars[num_carry:]]
    for step in range(length):
        index = length - 1 - step if is_reversed else step
        with jax.named_scope(f"step_{index}"):
            slices = [jax.lax.index_in_dim(x, index, keepdims=False) for x in xs]
            results = _evaluate(
                _jaxpr(equation), _consts(equation), [*consts, *carry, *slices], is_opened
            )
        carry = results[:num_carry]
        for column, value in zip(stacked, results[num_carry:], strict=True):
            column[index] = value
    used = [type(variable).__name__ != "DropVar" for variable in equation.outvars[num_carry:]]
    return [
        *carry,
        *(
            jax.numpy.stack(column) if is_used else None
            for column, is_used in zip(stacked, used, strict=True)
        ),
    ]
