"""Layers of a step whose gradients jax has taken: by ``jax.grad``, or by a library that calls it.

`grad` and `value_and_grad` of this package cut a loss into layers before it is differentiated. What
jax has differentiated is cut behind that: its forward phase as every forward function is, and its
backward phase by what it reads. Nothing can be computed again there but what the model says itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
from alpa_runtime.host_memory import type_of
from jax.extend.core import ClosedJaxpr, DropVar, Jaxpr, Literal, jaxpr_as_fun, jaxprs_in_params

from stablehlo_alpa.layers.assignment import assign, is_even
from stablehlo_alpa.layers.boundary import layer_boundary_p
from stablehlo_alpa.layers.flatten import CALLS, flatten
from stablehlo_alpa.layers.grad import mark_gradients
from stablehlo_alpa.layers.options import AutoLayers, FollowInputs, LayerOption, ManualLayers
from stablehlo_alpa.layers.scopes import is_backward, is_differentiated, layer_scope


def cut_differentiated(option: LayerOption, closed: ClosedJaxpr) -> ClosedJaxpr | None:
    """A step in layers, with marked gradients; None where it stays one layer.

    Only gradients that are taken once are cut: the whole forward phase is in front of the whole
    backward phase, and what else uses either is behind both.

    Args:
        option: what makes a layer.
        closed: a step in which nothing is marked.
    """
    closed = _opened(closed, _holds_both)
    ends = None if isinstance(option, FollowInputs) else _ends(closed.jaxpr.eqns)
    if ends is None:
        return None
    if not _has_layers(option, _part(closed, _forward(closed, ends))):
        # A loss that is jitted as a whole, or calls that are no layers.
        closed = _opened(closed, _is_of_phase)
        ends = _ends(closed.jaxpr.eqns)
    if ends is None:
        return None
    equations, forward = closed.jaxpr.eqns, _forward(closed, ends)
    is_manual = isinstance(option, ManualLayers)
    if is_manual and not any(one.primitive is layer_boundary_p for one in forward):
        return None
    layers = _Layers(forward, assign(option, _part(closed, forward)))
    phases = [layers.named(one) if is_differentiated(one) else one for one in equations[: ends[1]]]
    return _marked(closed, phases, equations[ends[1] :])


def _forward(closed: ClosedJaxpr, ends: tuple[int, int]) -> list[Any]:
    return [one for one in closed.jaxpr.eqns[: ends[0]] if is_differentiated(one)]


def _has_layers(option: LayerOption, forward: ClosedJaxpr) -> bool:
    """Whether no call is in the way of the layers that are asked for."""
    if not any(one.primitive.name in CALLS for one in forward.jaxpr.eqns):
        return True
    return isinstance(option, AutoLayers) and is_even(option, forward)


def _is_of_phase(equation: Any) -> bool:
    return equation.primitive.name in CALLS and is_differentiated(equation)


def _opened(closed: ClosedJaxpr, opens: Callable[[Any], bool]) -> ClosedJaxpr:
    """The step with what is in some calls in place of them.

    Args:
        closed: the step.
        opens: says of which; those that hold both phases are of a function that is jitted itself.
    """
    if not any(map(opens, closed.jaxpr.eqns)):
        return closed
    flat, count = flatten(closed, lambda one: int(opens(one))), len(closed.consts)
    jaxpr = flat.jaxpr.replace(
        constvars=[*flat.jaxpr.constvars, *flat.jaxpr.invars[:count]],
        invars=flat.jaxpr.invars[count:],
        debug_info=flat.jaxpr.debug_info.with_unknown_names(),
    )
    return ClosedJaxpr(jaxpr, [*flat.consts, *closed.consts])


def _holds_both(equation: Any) -> bool:
    if equation.primitive.name not in CALLS or is_differentiated(equation):
        return False
    inside = [one for body in jaxprs_in_params(equation.params) for one in body.eqns]
    return any(is_backward(one) or _holds_both(one) for one in inside)


def _ends(equations: Sequence[Any]) -> tuple[int, int] | None:
    """Where the backward phase begins, and where it ends; None if there is not one of each."""
    places = [i for i, one in enumerate(equations) if is_differentiated(one)]
    backward = [i for i in places if is_backward(equations[i])]
    if not backward or backward != places[-len(backward) :] or len(backward) == len(places):
        return None
    end = places[-1] + 1
    made = {v for i in places for v in equations[i].outvars}
    others = (one for one in equations[:end] if not is_differentiated(one))
    if any(a in made for one in others for a in _variables(one.invars)):
        return None
    return backward[0], end


def _variables(atoms: Iterable[Any]) -> list[Any]:
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def _part(closed: ClosedJaxpr, equations: Sequence[Any]) -> ClosedJaxpr:
    """Equations as a function of what they read, which returns all that they make."""
    made = [v for e in equations for v in e.outvars if not isinstance(v, DropVar)]
    inside = set(made)
    read = dict.fromkeys(a for e in equations for a in _variables(e.invars) if a not in inside)
    effects = set().union(*(one.effects for one in equations))
    names = closed.jaxpr.debug_info.with_unknown_names()
    return ClosedJaxpr(Jaxpr((), list(read), made, list(equations), effects, names), ())


class _Layers:
    """The layer of every equation of both phases.

    An equation of the backward phase is of the last layer that it can be of: none behind those that
    made the cotangents it takes, and none behind the last that uses what it reads of the forward
    phase. So it is where the forward phase has made that, or behind it.
    """

    def __init__(self, forward: Sequence[Any], layers: Sequence[int]) -> None:
        """Takes the equations of the forward phase and the layer of each."""
        self._of = {id(one): layer for one, layer in zip(forward, layers, strict=True)}
        self._last = max(layers)
        # The last layer that makes or uses a value.
        self._until: dict[Any, int] = {}
        for one, layer in zip(forward, layers, strict=True):
            self._until.update(dict.fromkeys((*one.outvars, *_variables(one.invars)), layer))

    def named(self, equation: Any) -> Any:
        """The equation in the scope of its layer; those of the backward phase come in order."""
        layer = self._of.get(id(equation))
        if layer is None:
            read = (self._until.get(atom) for atom in _variables(equation.invars))
            layer = min((one for one in read if one is not None), default=self._last)
            self._until.update(dict.fromkeys(equation.outvars, layer))
        info = equation.source_info
        stack = info.name_stack.extend(layer_scope(layer))
        return equation.replace(source_info=info.replace(name_stack=stack))


def _marked(closed: ClosedJaxpr, phases: Sequence[Any], rest: Sequence[Any]) -> ClosedJaxpr:
    """The step with a mark around what both phases have made and others use."""
    jaxpr = closed.jaxpr
    first, second = _part(closed, phases), _part(closed, rest)
    used = {*second.jaxpr.invars, *_variables(jaxpr.outvars)}
    made = (v for one in phases if is_differentiated(one) for v in one.outvars)
    crossing = [variable for variable in made if variable in used]

    def run(*args: Any) -> list[Any]:
        values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        values.update(zip(jaxpr.invars, args, strict=True))
        for part in (first, second):
            results = jaxpr_as_fun(part)(*(values[atom] for atom in part.jaxpr.invars))
            values.update(zip(part.jaxpr.outvars, results, strict=True))
            if part is first:
                marked = mark_gradients([values[variable] for variable in crossing])
                values.update(zip(crossing, marked, strict=True))
        return [atom.val if isinstance(atom, Literal) else values[atom] for atom in jaxpr.outvars]

    return jax.make_jaxpr(run)(*(type_of(variable.aval) for variable in jaxpr.invars))
