"""Checks of equinox inside of a function: what they look at is fetched, who calls the step raises.

`equinox.error_if`, and so the solvers of diffrax, lineax and optimistix, write a check as a branch
that calls the host, which raises; the other branch hands on what was checked. A step that is a
pipeline, or works on micro-batches, has nobody to call: it goes on with the other branch, and
whether it should have raised is a result that the caller never sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal, Var

from stablehlo_alpa.frontend.callbacks import callback_name, flat_call, is_check
from stablehlo_alpa.frontend.inner_jaxprs import equations
from stablehlo_alpa.frontend.jaxpr_parts import as_call
from stablehlo_alpa.frontend.reports import Report

_CALLS = frozenset({"jit", "pjit", "closed_call", "core_call", "checkpoint", "remat2"})
# Their rules of differentiation have been used: what is left is what they compute.
_CUSTOM = frozenset({"custom_jvp_call", "custom_vjp_call"})


@dataclass(frozen=True, eq=False)
class _Check:
    """A branch that raises.

    Attributes:
        equation: the call of the host that does.
        branch: the value of the predicate that takes it.
        operands: of the call: a constant, or None for the next of what the check looks at.
        num_results: what it looks at: the predicate, then operands.
    """

    equation: Any
    branch: int
    operands: tuple[Any, ...]
    num_results: int

    def report(self, first: int) -> Report:
        """The check behind the step, of outputs from the ``first`` on."""
        call = flat_call(self.equation)

        def check(predicate: Any, *values: Any) -> None:
            if int(predicate) != self.branch:
                return
            given = iter(values)
            call(*(next(given) if one is None else one for one in self.operands))

        places = tuple(range(first, first + self.num_results))
        return Report(callback_name(self.equation), check, places)


def take_checks(closed: Any) -> tuple[Any, tuple[Report, ...]]:
    """A jaxpr that goes on where a check would raise, and the checks, in order.

    What they look at are more of its results. Those in loops and branches stay.
    """
    if not any(map(is_check, equations(closed.jaxpr))):
        return closed, ()
    jaxpr, checks = _Taking().jaxpr(closed.jaxpr)
    first, reports = len(closed.jaxpr.outvars), []
    for check in checks:
        reports.append(check.report(first))
        first += check.num_results
    return closed.replace(jaxpr=jaxpr), tuple(reports)


class _Taking:
    """Jaxprs without checks: what is called twice stays one function."""

    def __init__(self) -> None:
        self._made: dict[Any, tuple[Any, list[_Check]]] = {}

    def jaxpr(self, jaxpr: Any) -> tuple[Any, list[_Check]]:
        """A jaxpr that has, behind its own results, what its checks look at; and these."""
        if jaxpr not in self._made:
            self._made[jaxpr] = self._taken(jaxpr)
        return self._made[jaxpr]

    def _taken(self, jaxpr: Any) -> tuple[Any, list[_Check]]:
        made, results, checks = [], [], []
        for equation in jaxpr.eqns:
            found = _check(equation, jaxpr) or self._called(equation)
            new, more, own = found or (equation, [], [])
            made.append(new)
            results += more
            checks += own
        if not checks:
            return jaxpr, []
        debug_info = jaxpr.debug_info.with_unknown_names()
        outvars = [*jaxpr.outvars, *results]
        return jaxpr.replace(eqns=made, outvars=outvars, debug_info=debug_info), checks

    def _called(self, equation: Any) -> tuple[Any, list[Any], list[_Check]] | None:
        """An equation that calls a jaxpr with checks, as one that returns what they look at."""
        name = equation.primitive.name
        if name not in _CALLS | _CUSTOM:
            return None
        key = "jaxpr" if "jaxpr" in equation.params else "call_jaxpr"
        body = equation.params[key]
        inner = getattr(body, "jaxpr", body)
        taken, checks = self.jaxpr(inner)
        if not checks:
            return None
        results: list[Any] = [Var(atom.aval) for atom in taken.outvars[len(inner.outvars) :]]
        new = equation.replace(outvars=[*equation.outvars, *results])
        closed = ClosedJaxpr(taken, getattr(body, "consts", ()))
        call = as_call(new, equation.params.get("name", name), closed)
        if name in _CUSTOM:
            return call, results, checks
        whole = closed if isinstance(body, ClosedJaxpr) else taken
        params = {**equation.params, key: whole}
        for option in {"out_shardings", "out_layouts"} & params.keys():
            params[option] = (*params[option], *call.params[option][len(inner.outvars) :])
        return new.replace(params=params), results, checks


def _check(equation: Any, jaxpr: Any) -> tuple[Any, list[Any], list[_Check]] | None:
    """A check as a call of the branch that hands on, with what it looks at; None of others."""
    if equation.primitive.name != "cond":
        return None
    branches = [branch.jaxpr for branch in equation.params["branches"]]
    raising = [(i, one) for i, each in enumerate(branches) for one in each.eqns if is_check(one)]
    if len(branches) != 2 or len(raising) != 1:
        return None
    (branch, call) = raising[0]
    given = dict(zip(branches[branch].invars, equation.invars[1:], strict=True))
    atoms = [atom if isinstance(atom, Literal) else given.get(atom) for atom in call.invars]
    if None in atoms:
        return None
    seen = [_predicate(equation.invars[0], jaxpr), *atoms]
    results = [atom for atom in seen if not isinstance(atom, Literal)]
    if isinstance(seen[0], Literal):
        return None
    constants = (np.asarray(atom.val) if isinstance(atom, Literal) else None for atom in atoms)
    check = _Check(call, branch, tuple(constants), len(results))
    new = equation.replace(invars=equation.invars[1:])
    return as_call(new, "checked", equation.params["branches"][1 - branch]), results, [check]


def _predicate(atom: Any, jaxpr: Any) -> Any:
    """The boolean that is made the number of a branch, which micro-batches can put together."""
    for equation in jaxpr.eqns:
        if atom in equation.outvars and equation.primitive.name == "convert_element_type":
            return equation.invars[0]
    return atom
