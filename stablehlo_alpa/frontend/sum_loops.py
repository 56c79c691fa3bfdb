"""Loops that add up what their turns make, or stack it: gradients, losses of examples."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Literal

from stablehlo_alpa.frontend.counter_slices import CounterSlice, counter_slices
from stablehlo_alpa.frontend.inner_jaxprs import equations
from stablehlo_alpa.frontend.jaxpr_parts import (
    as_function,
    body_of,
    carried_values,
)
from stablehlo_alpa.frontend.own_draws import with_own_draws
from stablehlo_alpa.layers.flatten import flatten, used_equations
from stablehlo_alpa.layers.grad import mark_gradients
from stablehlo_alpa.layers.scopes import is_backward, is_differentiated, is_mark

CALLS = frozenset({"jit", "pjit"})
"""Primitives that call a jaxpr."""

CHECKPOINTS = frozenset({"checkpoint", "remat2"})
"""Those that call one whose values are not kept for gradients."""

_ADDITIONS = {"add", "add_any"}

# Of a value in the body of a loop: which carried values it depends on, and `_TURN` if on what is of
# one turn, or on gradients.
_Causes: TypeAlias = frozenset[int]
_TURN = -1


@dataclass(frozen=True)
class SumLoop:
    """A scan that adds up what its turns make, or stacks it.

    Attributes:
        equation: of the scan.
        own: carried values that are made of each other and of what is the same in every turn.
        passed: of these, those that no turn changes.
        sums: per other carried value, what each turn adds to it.
        marks: whether its gradients are cut into layers.
    """

    equation: Any
    own: tuple[int, ...]
    passed: tuple[int, ...]
    sums: dict[int, tuple[Any, ...]]
    marks: bool

    @classmethod
    def over_gradients(cls, equation: Any) -> SumLoop | None:
        """The loop of an equation; None if it adds up no gradients, or does something else too."""
        if equation.primitive.name != "scan" or _is_inside_gradients(equation):
            return None
        inner = [*equations(body_of(equation))]
        if not any(map(is_backward, inner)):
            return None
        return cls._of(equation, CALLS, any(map(is_mark, inner)), is_differentiated)

    @classmethod
    def over_examples(cls, equation: Any) -> SumLoop | None:
        """The loop of an equation of a loss, or of its gradient; None if it does something else."""
        if equation.primitive.name != "scan" or not _is_inside_gradients(equation):
            return None
        # A turn is computed again inside of a loop of its own: nothing is kept that need not be.
        return cls._of(equation, CALLS | CHECKPOINTS, False, _takes_part)

    @classmethod
    def _of(
        cls,
        equation: Any,
        opened: frozenset[str],
        marks: bool,
        is_of_turn: Callable[[Any], bool],
    ) -> SumLoop | None:
        body = flatten(equation.params["jaxpr"], lambda one: int(one.primitive.name in opened))
        equation = equation.replace(params={**equation.params, "jaxpr": body})
        causes = _causes(equation, is_of_turn)
        own = _own(equation, causes)
        carried, results = carried_values(equation), body_of(equation).outvars
        makers = {made: one for one in body_of(equation).eqns for made in one.outvars}
        passed = tuple(i for i in own if _unconverted(results[i], makers) is carried[i])
        own = tuple(i for i in own if i not in passed)
        rest = [i for i in range(len(carried)) if i not in (*own, *passed)]
        sums = _summands(equation, rest, causes)
        found = {i: added for i, added in sums.items() if added is not None}
        used = [atom for added in found.values() for atom in added] + _stacked(equation)
        is_free = all(not _of(causes, atom) & {*rest} for atom in used)
        has_effects = bool(body_of(equation).effects)
        is_backwards = equation.params["reverse"] and own
        if (
            not (rest or _stacked(equation))
            or len(found) < len(rest)
            or not is_free
            or has_effects
            or is_backwards
        ):
            return None
        return cls(equation, own, passed, found, marks)

    @property
    def length(self) -> int:
        """Turns."""
        return int(self.equation.params["length"])

    @property
    def num_carried(self) -> int:
        """Results that are carried; the others are stacked."""
        return int(self.equation.params["num_carry"])

    @property
    def of_turns(self) -> list[int]:
        """Operands of which each turn has its part."""
        before = self.equation.params["num_consts"] + self.equation.params["num_carry"]
        return [*self._sliced, *range(before, len(self.equation.invars))]

    @property
    def of_all(self) -> list[int]:
        """Operands that each turn has as they are."""
        return [i for i in range(self.equation.params["num_consts"]) if i not in self._sliced]

    def is_part(self, operand: int, examples: Collection[int]) -> bool:
        """Whether a turn has some of the examples of an operand, not a time of all of them."""
        shape = self.avals[operand].shape
        is_sliced = operand < self.equation.params["num_consts"]
        return is_sliced or bool({shape[0], math.prod(shape[:2])} & {*examples})

    @functools.cached_property
    def _sliced(self) -> list[int]:
        """What turns have slices of, and nothing else."""
        body = body_of(self.equation)
        same = body.invars[: self.equation.params["num_consts"]]
        slices = Counter(one.operand for one in self._slices(body.eqns))
        uses = Counter(
            atom for one in body.eqns for atom in one.invars if not isinstance(atom, Literal)
        )
        return [i for i, one in enumerate(same) if uses[one] == slices[one] > 0]

    def _slices(self, inner: Sequence[Any]) -> list[CounterSlice]:
        # Where no layers are cut, a loop that takes elements can be gone through as it is.
        return counter_slices(self.equation, inner, self.own, takes_elements=self.marks)

    def num_rows(self, operands: Collection[int]) -> int:
        """Rows of a turn's block of each operand; 0 if they differ or one has no such blocks."""
        body = body_of(self.equation)
        found = self._slices(body.eqns)
        rows = set()
        for i in operands:
            own = [one.num_rows for one in found if one.operand is body.invars[i]]
            rows.update(own or [0])
        return rows.pop() if len(rows) == 1 else 0

    @property
    def avals(self) -> list[Any]:
        """Types of what goes in."""
        return [atom.aval for atom in self.equation.invars]

    def at_once(self, num_inner: int, *, has_rows: bool = False) -> Callable[..., list[Any]]:
        """The loop as a function of its operands.

        Args:
            num_inner: turns of each part that stay a loop.
            has_rows: blocks of rows keep these along dimension 0, and are cut along it.
        """
        equation, body = self.equation, body_of(self.equation)
        num_consts, num_carry = equation.params["num_consts"], equation.params["num_carry"]
        added = [atom for i in sorted(self.sums) for atom in self.sums[i]]
        results = with_own_draws(_without_barriers(body, [*added, *_stacked(equation)]))
        own = [carried_values(equation)[i] for i in self.own]
        passed = [carried_values(equation)[i] for i in self.passed]
        slices = self._slices(results.eqns)
        replaced = {atom for one in slices for atom in one.equation.outvars}
        kept = [one for one in results.eqns if not replaced.intersection(one.outvars)]
        consts, of_turn = body.invars[:num_consts], body.invars[num_consts + num_carry :]
        inputs = [*consts, *passed, *own, *of_turn]
        inputs += [one.equation.outvars[0] for one in slices]
        turn = as_function(results, inputs, kept, results.outvars)

        def run(*operands: Any) -> list[Any]:
            shared = operands[:num_consts]
            start = operands[num_consts : num_consts + num_carry]
            same = [*shared, *(start[i] for i in self.passed)]
            last, steps = self._recurrence(same, [start[i] for i in self.own])
            turns = [*steps, *operands[num_consts + num_carry :]]
            dims = [0] * len(turns)
            for one in slices:
                is_row = has_rows and one.num_rows > 1
                operand = shared[consts.index(one.operand)]
                turns.append(one.rows(operand) if is_row else one.turns(operand))
                dims.append(int(is_row))
            found = _all(lambda *one: turn(*same, *one), turns, dims, num_inner, len(added))
            if self.marks:
                found = mark_gradients(found)
            carried = dict(zip(self.own, last, strict=True))
            carried |= {i: start[i] for i in self.passed}
            totals = iter(found)
            for i in sorted(self.sums):
                carried[i] = sum((next(totals) for _ in self.sums[i]), start=start[i])
                carried[i] = lax.convert_element_type(carried[i], self._type(i).dtype)
            return [*(carried[i] for i in range(num_carry)), *totals]

        return run

    def _type(self, number: int) -> Any:
        return carried_values(self.equation)[number].aval

    def _recurrence(self, same: Sequence[Any], start: Sequence[Any]) -> tuple[Any, Any]:
        """What own carried values are at last, and before every turn."""
        if not self.own:
            return [], []
        equation, body = self.equation, body_of(self.equation)
        own, passed = (
            [carried_values(equation)[i] for i in numbers] for numbers in (self.own, self.passed)
        )
        results = [body.outvars[i] for i in self.own]
        inputs = [*body.invars[: equation.params["num_consts"]], *passed, *own]
        step = as_function(body, inputs, body.eqns, results)
        return lax.scan(lambda now, _: (step(*same, *now), now), [*start], None, self.length)


def _all(
    turn: Callable[..., list[Any]],
    turns: Sequence[Any],
    dims: Sequence[int],
    num_inner: int,
    num_sums: int,
) -> list[Any]:
    """Sums over all turns of the first results, and what each turn makes of the others.

    ``dims`` are those along which turns lie, 0 where some turns stay a loop.
    """
    if num_inner == 1:
        results = jax.vmap(turn, in_axes=tuple(dims))(*turns)
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


def _takes_part(equation: Any) -> bool:
    return equation.primitive.name in {"dynamic_slice", "gather"}


def _is_inside_gradients(equation: Any) -> bool:
    return "jvp(" in str(equation.source_info.name_stack)


def _stacked(equation: Any) -> list[Any]:
    return list(body_of(equation).outvars[equation.params["num_carry"] :])


def _causes(equation: Any, is_of_turn: Callable[[Any], bool]) -> dict[Any, _Causes]:
    """Of every value of the body; see `_Causes`.

    Args:
        equation: of the loop.
        is_of_turn: whether what an equation makes counts as made of one turn in any case.
    """
    found: dict[Any, _Causes] = {
        one: frozenset({i}) for i, one in enumerate(carried_values(equation))
    }
    num_same = equation.params["num_consts"] + equation.params["num_carry"]
    found |= dict.fromkeys(body_of(equation).invars[num_same:], frozenset({_TURN}))
    for one in body_of(equation).eqns:
        causes: _Causes = frozenset().union(*(_of(found, atom) for atom in one.invars))
        if is_of_turn(one):
            causes |= {_TURN}
        found |= dict.fromkeys(one.outvars, causes)
    return found


def _of(causes: dict[Any, _Causes], atom: Any) -> _Causes:
    return frozenset() if isinstance(atom, Literal) else causes.get(atom, frozenset())


def _own(equation: Any, causes: dict[Any, _Causes]) -> tuple[int, ...]:
    """Carried values that are made of each other and of what is the same in every turn."""
    results = body_of(equation).outvars
    own = set(range(equation.params["num_carry"]))
    while others := {i for i in own if not _of(causes, results[i]) <= own}:
        own -= others
    return tuple(sorted(own))


def _summands(
    equation: Any, numbers: Sequence[int], causes: dict[Any, _Causes]
) -> dict[int, tuple[Any, ...] | None]:
    """What is added to carried values in a turn; None if anything else is done with one."""
    body = body_of(equation)
    makers = {made: one for one in body.eqns for made in one.outvars}
    read = itertools.chain(*(one.invars for one in body.eqns), body.outvars)
    uses = Counter(atom for atom in read if not isinstance(atom, Literal))
    carried = carried_values(equation)
    results = body.outvars
    return {i: _added(results[i], carried[i], i, causes, makers, uses) for i in numbers}


def _added(
    atom: Any,
    carried: Any,
    number: int,
    causes: dict[Any, _Causes],
    makers: dict[Any, Any],
    uses: Counter[Any],
) -> tuple[Any, ...] | None:
    added: list[Any] = []
    while atom is not carried:
        maker = None if isinstance(atom, Literal) else makers.get(atom)
        if maker is None or uses[atom] != 1:
            return None
        of_carried = [one for one in maker.invars if number in _of(causes, one)]
        if len(of_carried) != 1 or not (_keeps_type(maker) or maker.primitive.name in _ADDITIONS):
            return None
        added += [one for one in maker.invars if one is not of_carried[0]]
        atom = of_carried[0]
    if uses[carried] != 1 or any(isinstance(one, Literal) for one in added):
        return None
    return tuple(added)


def _unconverted(atom: Any, makers: dict[Any, Any]) -> Any:
    """What a value is in front of conversions to the type that it has."""
    while not isinstance(atom, Literal) and atom in makers and _keeps_type(makers[atom]):
        atom = makers[atom].invars[0]
    return atom


def _keeps_type(equation: Any) -> bool:
    is_same = equation.primitive.name == "convert_element_type"
    return is_same and equation.invars[0].aval.dtype == equation.outvars[0].aval.dtype


def _without_barriers(body: Any, results: Sequence[Any]) -> Any:
    """The body with other results, its gradients unmarked, and only what they need."""
    same: dict[Any, Any] = {}
    kept = []
    for equation in body.eqns:
        atoms = [one if isinstance(one, Literal) else same.get(one, one) for one in equation.invars]
        if equation.primitive.name == "optimization_barrier" and is_mark(equation):
            same |= dict(zip(equation.outvars, atoms, strict=True))
        else:
            kept.append(equation.replace(invars=atoms))
    outputs = [one if isinstance(one, Literal) else same.get(one, one) for one in results]
    return body.replace(
        eqns=used_equations(kept, outputs),
        outvars=outputs,
        debug_info=body.debug_info.with_unknown_names(),
    )
