"""Layers, or blocks, that compute the same: differentiated once, each under its own names.

JAX keeps what it makes of a function (its derivative, what that transposes to) by the identity of
the function. Equal layers are therefore run as one object. What comes out bears the names of the
first of them: a scope says how those of the others differ, and `with_own_names` puts them into the
text that the step is lowered to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params

_SCOPE = "alpa_names:"
_IN_SCOPE = re.compile(rf"/?{_SCOPE}([^/()]*)")
_NAME = re.compile(rf'loc\("[^"]*{_SCOPE}[^"]*')
_LIFTED = "/jit(core_fn)"
_PART = re.compile(r"[^/()]+")
# What a name must not have to be put into a scope.
_SPECIAL = re.compile(r'[/()=,"\\]')


@dataclass(frozen=True)
class Likeness:
    """What a layer is equal to.

    Attributes:
        first: the number of the first layer that computes the same, its own where there is none.
        names: parts of that one's scopes that are called otherwise in this layer.
    """

    first: int
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        """The name of a scope that says what is called otherwise; empty where nothing is."""
        if not self.names:
            return ""
        return _SCOPE + ",".join(f"{one}={other}" for one, other in self.names.items())


def find_likenesses(layers: Sequence[ClosedJaxpr]) -> list[Likeness]:
    """What each layer is equal to.

    Equations are compared one by one: primitives, parameters, contexts, literals, types, and what
    goes where. What cannot be told to be equal is not: functions, and arrays that layers are closed
    over, are equal where they are one object.
    """
    firsts: dict[Any, list[int]] = {}
    found = []
    for number, layer in enumerate(layers):
        alike = firsts.setdefault(_outline(layer.jaxpr), [])
        likeness = next(
            (
                Likeness(first, names)
                for first in alike
                if _are_equal(layers[first], layer)
                and (names := _renamed(layers[first].jaxpr, layer.jaxpr)) is not None
            ),
            Likeness(number),
        )
        if likeness.first == number:
            alike.append(number)
        found.append(likeness)
    return found


def with_own_names(text: str) -> str:
    """The text of a module, in its locations the names that scopes of likenesses say.

    And none that say nothing: what flax calls all functions that `nn.jit` makes.
    """
    text = text.replace(_LIFTED, "")
    return _NAME.sub(_own_name, text) if _SCOPE in text else text


def _own_name(name: re.Match[str]) -> str:
    scope = _IN_SCOPE.search(name[0])
    assert scope is not None
    names = dict(pair.split("=") for pair in scope[1].split(","))
    around, inside = name[0][: scope.start()], _IN_SCOPE.sub("", name[0][scope.start() :])
    return around + _PART.sub(lambda part: names.get(part[0], part[0]), inside)


def _renamed(one: Any, other: Any) -> dict[str, str] | None:
    """How parts of scopes differ; None where that cannot be said part by part."""
    names: dict[str, str] = {}
    for left, right in zip(_scopes(one), _scopes(other), strict=True):
        if len(left) != len(right):
            return None
        for before, after in zip(left, right, strict=True):
            if names.setdefault(before, after) != after:
                return None
    changed = {before: after for before, after in names.items() if before != after}
    is_plain = not any(map(_SPECIAL.search, (*changed, *changed.values())))
    return changed if is_plain else None


def _scopes(jaxpr: Any) -> Iterator[list[str]]:
    """Per equation the parts of its scope."""
    for equation in jaxpr.eqns:
        yield _PART.findall(str(equation.source_info.name_stack))
        for inner in jaxprs_in_params(equation.params):
            yield from _scopes(inner)


def _outline(jaxpr: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The same for equal functions."""
    primitives = tuple(equation.primitive.name for equation in jaxpr.eqns)
    return primitives, tuple(str(variable.aval) for variable in jaxpr.invars)


def _are_equal(one: Any, other: Any) -> bool:
    """Whether two values in a jaxpr, or jaxprs, are equal for sure."""
    if one is other:
        return True
    if type(one) is not type(other) or callable(one):
        return False
    match one:
        case ClosedJaxpr():
            return _are_equal(one.consts, other.consts) and _are_equal(one.jaxpr, other.jaxpr)
        case Jaxpr():
            return _are_equal_jaxprs(one, other)
        case Mapping():
            return one.keys() == other.keys() and all(_are_equal(one[k], other[k]) for k in one)
        case tuple() | list():
            return len(one) == len(other) and all(map(_are_equal, one, other))
        case np.ndarray() | np.generic():
            types = (one.dtype, one.shape) == (other.dtype, other.shape)
            return types and one.tobytes() == other.tobytes()
        case float() | complex():
            # Zeros have signs.
            return repr(one) == repr(other)
        case jax.Array():
            return False
        case _:
            return bool(one == other)


def _are_equal_jaxprs(one: Any, other: Any) -> bool:
    same: dict[Any, Any] = {}

    def define(left: Sequence[Any], right: Sequence[Any]) -> bool:
        same.update(zip(left, right, strict=False))
        return [each.aval for each in left] == [each.aval for each in right]

    def read(left: Sequence[Any], right: Sequence[Any]) -> bool:
        return len(left) == len(right) and all(map(reads_alike, left, right))

    def reads_alike(left: Any, right: Any) -> bool:
        if isinstance(left, Literal) or isinstance(right, Literal):
            is_literal = isinstance(left, Literal) and isinstance(right, Literal)
            return is_literal and left.aval == right.aval and _are_equal(left.val, right.val)
        return same.get(left) is right

    if len(one.eqns) != len(other.eqns) or one.effects != other.effects:
        return False
    if not define(one.constvars, other.constvars) or not define(one.invars, other.invars):
        return False
    for left, right in zip(one.eqns, other.eqns, strict=True):
        is_equal = (
            left.primitive is right.primitive
            and left.effects == right.effects
            and _are_equal(left.ctx, right.ctx)
            and read(left.invars, right.invars)
            and _are_equal(left.params, right.params)
            and define(left.outvars, right.outvars)
        )
        if not is_equal:
            return False
    return read(one.outvars, other.outvars)
