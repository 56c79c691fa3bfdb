"""Opens equations that hold more than one layer: calls, checkpoints and loops over layers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from alpa_runtime.host_memory import type_of
from jax.extend.core import ClosedJaxpr, DropVar, Jaxpr, Literal, jaxpr_as_fun

from stablehlo_alpa.layers.scopes import STACK_SCOPE, TURNS_SCOPE

_log = logging.getLogger(__name__)

CALLS = frozenset({"jit", "pjit", "closed_call", "core_call"})
"""What calls a jaxpr."""

_CHECKPOINTS = frozenset({"checkpoint", "remat2"})
_OPENED = CALLS | _CHECKPOINTS | {"scan"}


def flatten(closed: ClosedJaxpr, count_parts: Callable[[Any], int]) -> ClosedJaxpr:
    """A jaxpr of the same function in which some equations are replaced by what is in them.

    Calls and checkpoints are inlined; a scan becomes one after the other of scans over parts of its
    turns, or what is in it where a part is one turn. Other equations stay as they are. What comes
    out of an inlined equation, or out of one turn, is looked at again.

    Args:
        closed: the function; its constants may be tracers.
        count_parts: asked for every equation that can be opened: parts of a scan, 1 for what is
            inlined, 0 for what stays as it is.

    Returns:
        the flat jaxpr; its arguments are the constants of ``closed``, then its arguments.
    """

    def run(*args: Any) -> list[Any]:
        consts = args[: len(closed.consts)]
        return _evaluate(closed.jaxpr, consts, args[len(closed.consts) :], count_parts)

    avals = [variable.aval for variable in (*closed.jaxpr.constvars, *closed.jaxpr.invars)]
    shapes = list(map(type_of, avals))
    return jax.make_jaxpr(run)(*shapes)


def without_unused(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The function without the equations that nothing uses: what they cost makes no layer."""
    jaxpr = closed.jaxpr
    # One without results, the boundary of a layer, is there for its own sake.
    kept = used_equations(
        jaxpr.eqns, jaxpr.outvars, lambda one: not one.outvars or bool(one.effects)
    )
    return ClosedJaxpr(jaxpr.replace(eqns=kept), closed.consts)


def used_equations(
    equations: Sequence[Any],
    results: Iterable[Any],
    keeps: Callable[[Any], bool] = lambda equation: False,
) -> list[Any]:
    """The equations that results are made by, and those that are kept, with what makes these."""
    used = {atom for atom in results if not isinstance(atom, Literal)}
    kept = []
    for equation in reversed(equations):
        if used.intersection(equation.outvars) or keeps(equation):
            kept.append(equation)
            used.update(atom for atom in equation.invars if not isinstance(atom, Literal))
    return kept[::-1]


def _evaluate(
    jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], count_parts: Callable[[Any], int]
) -> list[Any]:
    values: dict[Any, Any] = {}
    values.update(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        name = equation.primitive.name
        parts = count_parts(equation) if name in _OPENED else 0
        if parts:
            with jax.named_scope(str(equation.source_info.name_stack) or name):
                if name == "scan":
                    results = _ScanParts(equation, parts, count_parts).run(operands)
                else:
                    results = _inline(equation, operands, count_parts)
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


def _inline(equation: Any, operands: Sequence[Any], count_parts: Callable[[Any], int]) -> list[Any]:
    if equation.primitive.name in _CHECKPOINTS:
        _log.info(
            "a jax.checkpoint holds more than one layer and is left out; use remat=True of the "
            "layers instead"
        )
    return _evaluate(_jaxpr(equation), _consts(equation), operands, count_parts)


def _jaxpr(equation: Any) -> Any:
    body = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    return getattr(body, "jaxpr", body)


def _consts(equation: Any) -> Sequence[Any]:
    body = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    return tuple(getattr(body, "consts", ()))


class _ScanParts:
    """A scan as several, each over a part of its turns; ``xs`` are split, ``ys`` are joined."""

    def __init__(self, equation: Any, count: int, count_parts: Callable[[Any], int]) -> None:
        """Cuts the turns.

        Args:
            equation: the scan.
            count: how many parts it becomes, of about as many turns each.
            count_parts: see `flatten`.
        """
        params = equation.params
        self._equation, self._count_parts = equation, count_parts
        self._num_consts, self._num_carry = params["num_consts"], params["num_carry"]
        length = params["length"]
        self._ends = [length * (number + 1) // count for number in range(count)]
        self._sizes = [end - start for start, end in pairwise([0, *self._ends])]
        self._is_reversed = params["reverse"]

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """The results of the scan."""
        consts = operands[: self._num_consts]
        carry = list(operands[self._num_consts : self._num_consts + self._num_carry])
        with jax.named_scope(STACK_SCOPE):
            xs = [_split(x, self._sizes) for x in operands[self._num_consts + self._num_carry :]]
        numbers = list(range(len(self._sizes)))
        stacked: list[list[Any]] = [[] for _ in self._equation.outvars[self._num_carry :]]
        for number in reversed(numbers) if self._is_reversed else numbers:
            with jax.named_scope(f"step_{self._ends[number] - self._sizes[number]}"):
                results = self._part(self._sizes[number], consts, carry, [x[number] for x in xs])
            carry = results[: self._num_carry]
            for column, value in zip(stacked, results[self._num_carry :], strict=True):
                column.append(value)
        with jax.named_scope(STACK_SCOPE):
            return carry + [
                None if isinstance(variable, DropVar) else self._joined(column)
                for variable, column in zip(
                    self._equation.outvars[self._num_carry :], stacked, strict=True
                )
            ]

    def _part(
        self, size: int, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any]
    ) -> list[Any]:
        """Some turns of the scan: its carry behind them, and their ``ys``."""
        equation = self._equation
        if size > 1:
            unroll = min(equation.params["unroll"], size)
            params = dict(equation.params, length=size, unroll=unroll)
            with jax.named_scope(TURNS_SCOPE):
                return list(equation.primitive.bind(*consts, *carry, *xs, **params))
        rows = [jax.lax.squeeze(x, (0,)) for x in xs]
        operands = [*consts, *carry, *rows]
        results = _evaluate(_jaxpr(equation), _consts(equation), operands, self._count_parts)
        ys = [jax.lax.expand_dims(y, (0,)) for y in results[self._num_carry :]]
        return results[: self._num_carry] + ys

    def _joined(self, column: Sequence[Any]) -> Any:
        """What all parts have stacked, in the order of the turns."""
        rows = column[::-1] if self._is_reversed else column
        return jax.lax.concatenate(rows, 0)


def _split(stack: Any, sizes: Sequence[int]) -> list[Any]:
    """Rows of a stack, so many each."""
    if jax.dtypes.issubdtype(stack.dtype, jax.dtypes.extended):
        ends = np.cumsum(sizes)
        return [stack[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return list(jax.lax.split(stack, sizes))
