"""The core of attention: what is computed again where memory is short and time is not.

Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", MLSys 2023,
section 5: scores, softmax and dropout take most of the memory of a layer and little of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun, jaxprs_in_params

from stablehlo_alpa.layers.flatten import CALLS, flatten

# Elements of what counts as a key or a number: the largest keys of jax's generators have four.
_KEY_SIZE = 4


def recomputing_attention(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A function whose backward pass computes the cores of its attentions again.

    A core is what lies between two products that both have batch dimensions (the heads), the first
    of whose results is an operand of the second by way of other operators: from the product of
    queries and keys to that with the values; and what it alone reads and is made of keys and
    numbers, such as the mask of a dropout. Its other inputs are kept.

    Args:
        closed: a layer, or the whole forward function. Calls that hold a core beside other products
            are opened.
    """
    opened = flatten(closed, lambda one: int(one.primitive.name in CALLS and _holds_core(one)))
    jaxpr = opened.jaxpr
    parts = []
    for numbers, is_core in _in_order(jaxpr, _cores(jaxpr)):
        inputs, outputs, part = function_of(jaxpr, numbers)
        call: Callable[..., Any] = jaxpr_as_fun(part)
        parts.append((inputs, outputs, jax.checkpoint(call) if is_core else call))

    def run(*args: Any) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, opened.consts, strict=True))
        values.update(zip(jaxpr.invars, (*closed.consts, *args), strict=True))
        for inputs, outputs, call in parts:
            values.update(zip(outputs, call(*(values[v] for v in inputs)), strict=True))
        return [atom.val if isinstance(atom, Literal) else values[atom] for atom in jaxpr.outvars]

    return run


def _products(equation: Any) -> list[bool]:
    """Of every product in an equation (an einsum is a call), whether it has batch dimensions."""
    if equation.primitive.name == "dot_general":
        _, (left, _) = equation.params["dimension_numbers"]
        return [bool(left)]
    return [
        is_batched
        for body in jaxprs_in_params(equation.params)
        for inner in body.eqns
        for is_batched in _products(inner)
    ]


def _holds_core(equation: Any) -> bool:
    """Whether a call may hold a core, and other products."""
    products = _products(equation)
    return any(products) and not all(products)


def _cores(jaxpr: Any) -> list[frozenset[int]]:
    """Numbers of the equations of every core; no two have one in common."""
    sources = _sources(jaxpr)
    held = [_products(equation) for equation in jaxpr.eqns]
    products = [i for i, one in enumerate(held) if one == [True]]
    # A call that is an attention by itself, jax.nn.dot_product_attention.
    found = [frozenset({i}) for i, one in enumerate(held) if len(one) > 1 and all(one)]
    taken: set[int] = set().union(*found)
    for last in products:
        above = _ancestors(sources, last)
        firsts = [one for one in products if one in above and one not in taken]
        if last in taken or not firsts:
            continue
        first = firsts[-1]
        core = (above & _descendants(sources, first, last)) | {first, last}
        if not core & taken:
            found.append(frozenset(core))
            taken |= core
    return [core | _made_for(jaxpr, sources, core, taken) for core in found]


def _made_for(
    jaxpr: Any, sources: Sequence[set[int]], core: frozenset[int], taken: set[int]
) -> set[int]:
    """Equations outside of cores that make something of keys and numbers for one core alone."""
    readers: list[set[int]] = [set() for _ in jaxpr.eqns]
    for number, own in enumerate(sources):
        for source in own:
            readers[source].add(number)
    returned = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    made: set[int] = set()
    for number, equation in enumerate(jaxpr.eqns):
        makers = {out for one in sources[number] & made for out in jaxpr.eqns[one].outvars}
        if not any(_products(equation)) and all(
            isinstance(atom, Literal) or atom in makers or atom.aval.size <= _KEY_SIZE
            for atom in equation.invars
        ):
            made.add(number)
    chosen: set[int] = set()
    for number in sorted(made - taken, reverse=True):
        if (
            readers[number]
            and readers[number] <= core | chosen
            and returned.isdisjoint(jaxpr.eqns[number].outvars)
        ):
            chosen.add(number)
    return chosen


def _sources(jaxpr: Any) -> list[set[int]]:
    """Per equation those whose results it takes."""
    makers = {out: i for i, equation in enumerate(jaxpr.eqns) for out in equation.outvars}
    return [
        {makers[a] for a in equation.invars if not isinstance(a, Literal) and a in makers}
        for equation in jaxpr.eqns
    ]


def _ancestors(sources: Sequence[set[int]], number: int) -> set[int]:
    found: set[int] = set()
    waiting = [number]
    while waiting:
        more = sources[waiting.pop()] - found
        found |= more
        waiting += more
    return found


def _descendants(sources: Sequence[set[int]], number: int, last: int) -> set[int]:
    """What takes the results of an equation, itself or by way of others, up to a last one."""
    found = {number}
    for later in range(number + 1, last + 1):
        if sources[later] & found:
            found.add(later)
    return found


def _in_order(jaxpr: Any, cores: Sequence[frozenset[int]]) -> list[tuple[list[int], bool]]:
    """Runs of equations outside of cores, and the cores, each behind what it needs."""
    sources = _sources(jaxpr)
    core_of = {number: core for core in cores for number in core}
    done: set[int] = set()
    parts: list[tuple[list[int], bool]] = []

    def add(numbers: list[int], is_core: bool) -> None:
        done.update(numbers)
        if parts and not is_core and not parts[-1][1]:
            parts[-1][0].extend(numbers)
        else:
            parts.append((numbers, is_core))

    def visit(number: int) -> None:
        if number in done:
            return
        group = core_of.get(number, frozenset((number,)))
        needed = set().union(*(sources[one] for one in group)) - group
        for one in sorted(needed):
            visit(one)
        add(sorted(group), number in core_of)

    for number in range(len(jaxpr.eqns)):
        visit(number)
    return parts


def function_of(jaxpr: Any, numbers: Sequence[int]) -> tuple[list[Any], list[Any], ClosedJaxpr]:
    """Some equations as a function: what goes in, and what is used elsewhere."""
    own = set(numbers)
    equations = [jaxpr.eqns[i] for i in numbers]
    made = dict.fromkeys(out for equation in equations for out in equation.outvars)
    needed: dict[Any, None] = {}
    for equation in equations:
        needed.update({a: None for a in equation.invars if not isinstance(a, Literal)})
    inputs = [variable for variable in needed if variable not in made]
    used = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    for i, equation in enumerate(jaxpr.eqns):
        if i not in own:
            used.update(atom for atom in equation.invars if not isinstance(atom, Literal))
    outputs = [variable for variable in made if variable in used]
    effects = set().union(*(equation.effects for equation in equations))
    names = jaxpr.debug_info.with_unknown_names()
    return inputs, outputs, ClosedJaxpr(Jaxpr((), inputs, outputs, equations, effects, names), ())
