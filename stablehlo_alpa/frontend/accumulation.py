"""Loops of a step that add up gradients: all of their turns at once, as micro-batches take them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.inner_jaxprs import equations, with_inner
from stablehlo_alpa.layers.flatten import flatten
from stablehlo_alpa.layers.grad import mark_gradients
from stablehlo_alpa.layers.scopes import GRADIENT_SCOPE

_ADDITIONS = {"add", "add_any"}
_CALLS = {"jit", "pjit"}

# Of a value in the body of a loop: which carried values it depends on, and `_TURN` if on what is of
# one turn, or on gradients.
_Causes: TypeAlias = frozenset[int]
_TURN = -1


def with_turns_at_once(
    name: str, closed: ClosedJaxpr, count: int, batch: Collection[int], arguments: Sequence[str]
) -> ClosedJaxpr:
    """A step in which micro-batches can take the place of the turns of its loops over gradients.

    A scan (or ``fori_loop``) that takes gradients of one part of the batch after the other and adds
    them to what it carries, or stacks them,

        carry_i+1 = carry_i + f(x_i)

    becomes ``carry_0 + sum(vmap(f)(x))``, of which one of ``count`` micro-batches has every turn of
    one part. Where gradients are not cut into layers, turns of one part stay a loop. What it
    carries otherwise must not depend on ``x`` (a counter, PRNG keys), and is made before. Loops
    that have all examples in each turn stay as they are.

    Args:
        name: of the step.
        closed: its jaxpr.
        count: micro-batches of a step.
        batch: flat inputs that may hold a batch.
        arguments: of which each flat input is a part. One with several sizes along dimension 0, as
            parameters have, is no batch that each turn has whole.

    Returns:
        the step; the same object if there is no such loop.

    Raises:
        TraceError: the number of turns is not a multiple of ``count``.
    """
    sizes = {i: closed.in_avals[i].shape[0] for i in batch if closed.in_avals[i].shape}

    of_argument: dict[str, set[int]] = {}
    for i, size in sizes.items():
        of_argument.setdefault(arguments[i], set()).add(size)
    mixed = frozenset(i for i in sizes if len(of_argument[arguments[i]]) > 1)

    def rewrite(jaxpr: Jaxpr, sources: Sequence[_Causes]) -> Jaxpr:
        known = dict(zip(jaxpr.invars, sources, strict=True))
        made = []
        for equation in jaxpr.eqns:
            own = [_of(known, atom) for atom in equation.invars]
            made.append(_rewritten(_Parts(name, count, sizes, mixed, own), equation, rewrite))
            known |= dict.fromkeys(equation.outvars, frozenset().union(*own))
        is_other = any(new is not old for new, old in zip(made, jaxpr.eqns, strict=True))
        return jaxpr.replace(eqns=made) if is_other else jaxpr

    inputs = [frozenset({i} & sizes.keys()) for i in range(len(closed.in_avals))]
    jaxpr = rewrite(closed.jaxpr, inputs)
    return closed if jaxpr is closed.jaxpr else closed.replace(jaxpr=jaxpr)


@dataclass(frozen=True)
class _Parts:
    """What an equation may have of a batch.

    Attributes:
        name: of the step.
        count: micro-batches of a step.
        sizes: along dimension 0, of inputs of the step that may hold a batch.
        mixed: those whose arguments have several sizes.
        sources: of every operand, from which of these it is made.
    """

    name: str
    count: int
    sizes: dict[int, int]
    mixed: _Causes
    sources: Sequence[_Causes]

    def is_taken(self, loop: _Loop) -> bool:
        """Whether each turn of a loop has a part of the batch, and micro-batches all of some."""
        if self.count == 1 and not loop.marks:
            return False
        turns = frozenset().union(*(self.sources[i] for i in loop.of_turns))
        whole = frozenset().union(*(self.sources[i] for i in loop.of_all)) - self.mixed
        examples = {self.sizes[i] for i in turns}
        is_part = any(self.sources[i] and loop.is_part(i, examples) for i in loop.of_turns)
        if not is_part or examples & {self.sizes[i] for i in whole}:
            return False
        is_multiple = loop.length % self.count == 0
        if not is_multiple and not whole:
            raise TraceError(
                f"{self.name} adds up gradients itself, in a loop of {loop.length} turns, which "
                f"are not a multiple of {self.count} micro-batches: take gradients of the whole "
                "batch without a loop, which micro-batches make, or let the loop go over all of "
                f"the batch and pass num_micro_batches={loop.length} or what divides it"
            )
        return is_multiple


def _rewritten(parts: _Parts, equation: Any, rewrite: Callable[[Any, Any], Any]) -> Any:
    if equation.primitive.name in _CALLS:
        params = with_inner(equation.params, lambda inner: rewrite(inner, parts.sources))
        is_other = any(params[key] is not equation.params[key] for key in params)
        return equation.replace(params=params) if is_other else equation
    loop = _Loop.of(equation)
    if loop is None or not parts.is_taken(loop):
        return equation
    run = loop.at_once(1 if loop.marks else loop.length // parts.count)
    avals = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=_is_weak(a)) for a in loop.avals]
    made = jax.make_jaxpr(jax.jit(run))(*avals).jaxpr
    if made.constvars or len(made.eqns) != 1:
        return equation
    return made.eqns[0].replace(
        invars=equation.invars, outvars=equation.outvars, source_info=equation.source_info
    )


def _is_weak(aval: Any) -> bool:
    return bool(getattr(aval, "weak_type", False))


@dataclass(frozen=True)
class _Loop:
    """A scan over gradients.

    Attributes:
        equation: of the scan.
        own: carried values that are made of each other and of what is the same in every turn.
        sums: per other carried value, what each turn adds to it.
        marks: whether its gradients are cut into layers.
    """

    equation: Any
    own: tuple[int, ...]
    sums: dict[int, tuple[Any, ...]]
    marks: bool

    @classmethod
    def of(cls, equation: Any) -> _Loop | None:
        """The loop of an equation; None if it adds up no gradients, or does something else too."""
        if equation.primitive.name != "scan" or "jvp(" in str(equation.source_info.name_stack):
            return None
        scopes = [str(one.source_info.name_stack) for one in equations(_body(equation))]
        marks = any(GRADIENT_SCOPE in scope for scope in scopes)
        if not marks and not any("transpose(jvp(" in scope for scope in scopes):
            return None
        body = flatten(equation.params["jaxpr"], lambda one: int(one.primitive.name in _CALLS))
        equation = equation.replace(params={**equation.params, "jaxpr": body})
        causes = _causes(equation)
        own = _own(equation, causes)
        rest = [i for i in range(equation.params["num_carry"]) if i not in own]
        sums = {i: _summands(_body(equation), _carried(equation)[i], i, causes) for i in rest}
        found = {i: added for i, added in sums.items() if added is not None}
        used = [atom for added in found.values() for atom in added] + _stacked(equation)
        is_free = all(not _of(causes, atom) & {*rest} for atom in used)
        has_effects = bool(_body(equation).effects)
        is_backwards = equation.params["reverse"] and own
        if (
            not (rest or _stacked(equation))
            or len(found) < len(rest)
            or not is_free
            or has_effects
            or is_backwards
        ):
            return None
        return cls(equation, own, found, marks)

    @property
    def length(self) -> int:
        """Turns."""
        return int(self.equation.params["length"])

    @property
    def of_turns(self) -> list[int]:
        """Operands of which each turn has its part."""
        before = self.equation.params["num_consts"] + self.equation.params["num_carry"]
        return [*self._sliced(), *range(before, len(self.equation.invars))]

    @property
    def of_all(self) -> list[int]:
        """Operands that each turn has as they are."""
        return [i for i in range(self.equation.params["num_consts"]) if i not in self._sliced()]

    def is_part(self, operand: int, examples: Collection[int]) -> bool:
        """Whether a turn has some of the examples of an operand, not a time of all of them."""
        shape = self.avals[operand].shape
        is_sliced = operand < self.equation.params["num_consts"]
        return is_sliced or bool({shape[0], math.prod(shape[:2])} & {*examples})

    def _sliced(self) -> list[int]:
        """What turns have slices of, and nothing else."""
        body = _body(self.equation)
        same = body.invars[: self.equation.params["num_consts"]]
        slices = _slices(self.equation, body.eqns, self.own)
        uses = [atom for one in body.eqns for atom in one.invars if not isinstance(atom, Literal)]
        return [
            i
            for i, one in enumerate(same)
            if uses.count(one) == sum(part.operand is one for part in slices) > 0
        ]

    @property
    def avals(self) -> list[Any]:
        """Types of what goes in."""
        return [atom.aval for atom in self.equation.invars]

    def at_once(self, num_inner: int) -> Callable[..., list[Any]]:
        """The loop as a function of its operands.

        Args:
            num_inner: turns of each part that stay a loop.
        """
        equation, body = self.equation, _body(self.equation)
        num_consts, num_carry = equation.params["num_consts"], equation.params["num_carry"]
        added = [atom for i in sorted(self.sums) for atom in self.sums[i]]
        results = _without_barriers(body, [*added, *_stacked(equation)])
        own = [_carried(equation)[i] for i in self.own]
        slices = _slices(equation, results.eqns, self.own)
        replaced = {atom for one in slices for atom in one.equation.outvars}
        kept = [one for one in results.eqns if not replaced.intersection(one.outvars)]
        consts, of_turn = body.invars[:num_consts], body.invars[num_consts + num_carry :]
        inputs = [*consts, *own, *of_turn, *(one.equation.outvars[0] for one in slices)]
        turn = _function(results, inputs, kept, results.outvars)

        def run(*operands: Any) -> list[Any]:
            shared = operands[:num_consts]
            start = operands[num_consts : num_consts + num_carry]
            last, steps = self._recurrence(shared, [start[i] for i in self.own])
            turns = [*steps, *operands[num_consts + num_carry :]]
            turns += [one.turns(shared[consts.index(one.operand)]) for one in slices]
            found = _all(lambda *one: turn(*shared, *one), turns, num_inner, len(added))
            if self.marks:
                found = mark_gradients(found)
            carried = dict(zip(self.own, last, strict=True))
            totals = iter(found)
            for i in sorted(self.sums):
                carried[i] = sum((next(totals) for _ in self.sums[i]), start=start[i])
                carried[i] = lax.convert_element_type(carried[i], self._type(i).dtype)
            return [*(carried[i] for i in range(num_carry)), *totals]

        return run

    def _type(self, number: int) -> Any:
        return _carried(self.equation)[number].aval

    def _recurrence(self, shared: Sequence[Any], start: Sequence[Any]) -> tuple[Any, Any]:
        """What own carried values are at last, and before every turn."""
        if not self.own:
            return [], []
        equation, body = self.equation, _body(self.equation)
        own = [_carried(equation)[i] for i in self.own]
        results = [body.outvars[i] for i in self.own]
        inputs = [*body.invars[: len(shared)], *own]
        step = _function(body, inputs, body.eqns, results)
        return lax.scan(lambda now, _: (step(*shared, *now), now), [*start], None, self.length)


@dataclass(frozen=True)
class _Slice:
    """A slice that a loop takes where its counter says: of one block after the other.

    Attributes:
        equation: of the slice.
        dim: dimension along which blocks lie.
        begin: where the first begins in every dimension.
        length: turns.
    """

    equation: Any
    dim: int
    begin: tuple[int, ...]
    length: int

    @property
    def operand(self) -> Any:
        """What it is a slice of."""
        return self.equation.invars[0]

    def turns(self, array: Any) -> Any:
        """All slices, those of a turn along dimension 0."""
        sizes = list(self.equation.params["slice_sizes"])
        whole = [*sizes]
        whole[self.dim] *= self.length
        cut = lax.slice(array, self.begin, [b + s for b, s in zip(self.begin, whole, strict=True)])
        shape = [*sizes[: self.dim], self.length, *sizes[self.dim :]]
        return jnp.moveaxis(cut.reshape(shape), self.dim, 0)


def _slices(equation: Any, inner: Sequence[Any], own: Sequence[int]) -> list[_Slice]:
    """Slices of what every turn has, at places that are known."""
    params, start = equation.params, equation.invars[equation.params["num_consts"] :]
    known = [i for i in own if isinstance(start[i], Literal)]
    carried = _carried(equation)
    found = []
    for one in inner:
        is_slice = one.primitive.name == "dynamic_slice"
        if not is_slice or one.invars[0] not in _body(equation).invars[: params["num_consts"]]:
            continue
        atoms = [*(_body(equation).outvars[i] for i in known), *one.invars[1:]]
        needed = _needed(inner_all := _body(equation).eqns, atoms)
        if needed - {carried[i] for i in known}:
            continue
        step = _function(_body(equation), [carried[i] for i in known], inner_all, atoms)
        places, now = [], [np.asarray(start[i].val, carried[i].aval.dtype) for i in known]
        for _ in range(params["length"]):
            made = _compute(step, now)
            now = made[: len(known)]
            places.append([int(place) for place in made[len(known) :]])
        block = _blocks(one, np.array(places), params["length"])
        if block is not None:
            found.append(block)
    return found


def _compute(step: Callable[..., list[Any]], operands: Sequence[Any]) -> list[Any]:
    with jax.ensure_compile_time_eval():
        return [np.asarray(one) for one in step(*operands)]


def _blocks(equation: Any, places: Any, length: int) -> _Slice | None:
    """A slice whose places are one block after the other; None of others."""
    sizes, shape = np.array(equation.params["slice_sizes"]), equation.invars[0].aval.shape
    steps = np.diff(places, axis=0)
    moving = np.flatnonzero(steps.any(0))
    if length < 2 or len(moving) != 1:
        return None
    dim = int(moving[0])
    is_inside = (places >= 0).all() and (places + sizes <= np.array(shape)).all()
    if not is_inside or (steps[:, dim] != sizes[dim]).any():
        return None
    return _Slice(equation, dim, tuple(int(one) for one in places[0]), length)


def _all(
    turn: Callable[..., list[Any]], turns: Sequence[Any], num_inner: int, num_sums: int
) -> list[Any]:
    """Sums over all turns of the first results, and what each turn makes of the others."""
    if num_inner == 1:
        results = jax.vmap(turn)(*turns)
    else:
        outer = len(turns[0]) // num_inner
        parts = [one.reshape(outer, num_inner, *one.shape[1:]) for one in turns]

        def part(*own: Any) -> list[Any]:
            def step(total: Any, one: Any) -> Any:
                made = turn(*one)
                added = [a + b for a, b in zip(total, made[:num_sums], strict=True)]
                return added, made[num_sums:]

            made = jax.eval_shape(turn, *(one[0] for one in own))[:num_sums]
            zeros = [jnp.zeros(one.shape, one.dtype) for one in made]
            total, stacks = lax.scan(step, zeros, [*own])
            return [*total, *stacks]

        results = jax.vmap(part)(*parts)
        stacks = [one.reshape(-1, *one.shape[2:]) for one in results[num_sums:]]
        results = [*results[:num_sums], *stacks]
    sums = [jnp.sum(one, 0, dtype=one.dtype) for one in results[:num_sums]]
    return [*sums, *results[num_sums:]]


def _body(equation: Any) -> Any:
    return equation.params["jaxpr"].jaxpr


def _carried(equation: Any) -> list[Any]:
    start = equation.params["num_consts"]
    return list(_body(equation).invars[start : start + equation.params["num_carry"]])


def _stacked(equation: Any) -> list[Any]:
    return list(_body(equation).outvars[equation.params["num_carry"] :])


def _causes(equation: Any) -> dict[Any, _Causes]:
    """Of every value of the body; see `_Causes`."""
    found: dict[Any, _Causes] = {one: frozenset({i}) for i, one in enumerate(_carried(equation))}
    num_same = equation.params["num_consts"] + equation.params["num_carry"]
    found |= dict.fromkeys(_body(equation).invars[num_same:], frozenset({_TURN}))
    for one in _body(equation).eqns:
        causes: _Causes = frozenset().union(*(_of(found, atom) for atom in one.invars))
        if "jvp(" in (scope := str(one.source_info.name_stack)) or GRADIENT_SCOPE in scope:
            causes |= {_TURN}
        found |= dict.fromkeys(one.outvars, causes)
    return found


def _of(causes: dict[Any, _Causes], atom: Any) -> _Causes:
    return frozenset() if isinstance(atom, Literal) else causes.get(atom, frozenset())


def _own(equation: Any, causes: dict[Any, _Causes]) -> tuple[int, ...]:
    """Carried values that are made of each other and of what is the same in every turn."""
    results = _body(equation).outvars
    own = set(range(equation.params["num_carry"]))
    while others := {i for i in own if not _of(causes, results[i]) <= own}:
        own -= others
    return tuple(sorted(own))


def _summands(
    body: Any, carried: Any, number: int, causes: dict[Any, _Causes]
) -> tuple[Any, ...] | None:
    """What is added to a carried value in a turn; None if anything else is done with it."""
    uses: dict[Any, int] = {}
    makers: dict[Any, Any] = {}
    for equation in body.eqns:
        makers |= dict.fromkeys(equation.outvars, equation)
        for atom in equation.invars:
            if not isinstance(atom, Literal):
                uses[atom] = uses.get(atom, 0) + 1
    for atom in body.outvars:
        if not isinstance(atom, Literal):
            uses[atom] = uses.get(atom, 0) + 1
    atom, added = body.outvars[number], []
    while atom is not carried:
        maker = makers.get(atom)
        if maker is None or uses[atom] != 1:
            return None
        of_carried = [one for one in maker.invars if number in _of(causes, one)]
        is_same = maker.primitive.name == "convert_element_type"
        is_same &= maker.invars[0].aval.dtype == maker.outvars[0].aval.dtype
        if len(of_carried) != 1 or not (is_same or maker.primitive.name in _ADDITIONS):
            return None
        added += [one for one in maker.invars if one is not of_carried[0]]
        atom = of_carried[0]
    if uses.get(carried, 0) != 1 or any(isinstance(one, Literal) for one in added):
        return None
    return tuple(added)


def _without_barriers(body: Any, results: Sequence[Any]) -> Any:
    """The body with other results, its gradients unmarked, and only what they need."""
    same: dict[Any, Any] = {}
    kept = []
    for equation in body.eqns:
        atoms = [one if isinstance(one, Literal) else same.get(one, one) for one in equation.invars]
        is_barrier = equation.primitive.name == "optimization_barrier"
        if is_barrier and GRADIENT_SCOPE in str(equation.source_info.name_stack):
            same |= dict(zip(equation.outvars, atoms, strict=True))
        else:
            kept.append(equation.replace(invars=atoms))
    outputs = [one if isinstance(one, Literal) else same.get(one, one) for one in results]
    return body.replace(
        eqns=_used(kept, outputs),
        outvars=outputs,
        debug_info=body.debug_info.with_unknown_names(),
    )


def _used(inner: Sequence[Any], results: Iterable[Any]) -> list[Any]:
    """The equations that results are made by."""
    needed = {one for one in results if not isinstance(one, Literal)}
    kept = []
    for equation in reversed(inner):
        if needed.intersection(equation.outvars):
            kept.append(equation)
            needed.update(one for one in equation.invars if not isinstance(one, Literal))
    return kept[::-1]


def _needed(inner: Sequence[Any], results: Iterable[Any]) -> set[Any]:
    """What results are made of that no equation makes."""
    used = _used(inner, [*results])
    made = {one for equation in used for one in equation.outvars}
    atoms = {
        *(atom for one in used for atom in one.invars if not isinstance(atom, Literal)),
        *(atom for atom in results if not isinstance(atom, Literal)),
    }
    return atoms - made


def _function(
    body: Any, inputs: Sequence[Any], inner: Sequence[Any], results: Sequence[Any]
) -> Callable[..., list[Any]]:
    """A part of a body as a function."""
    used = _used(inner, results)
    names = body.debug_info.with_unknown_names()
    return jaxpr_as_fun(ClosedJaxpr(Jaxpr((), [*inputs], [*results], used, set(), names), ()))
