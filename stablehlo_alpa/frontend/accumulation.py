"""Loops over parts of a batch: all of their turns at once, as micro-batches take them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
from alpa_runtime.host_memory import type_of
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxprs_in_params

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.example_dims import Dim, example_dims
from stablehlo_alpa.frontend.inner_jaxprs import with_equations, with_inner_jaxprs
from stablehlo_alpa.frontend.sum_loops import CALLS, CHECKPOINTS, SumLoop

# Inputs of the step that may hold a batch and that a value is made from.
_Sources: TypeAlias = frozenset[int]

# What computes its only jaxpr of its operands.
_INLINE = CALLS | CHECKPOINTS | {"closed_call"}


@dataclass(frozen=True)
class _Known:
    """What is known of a value.

    Attributes:
        sources: that it is made from.
        dim: along which its examples lie.
        value: of an integer that is made of literals.
    """

    sources: _Sources = frozenset()
    dim: Dim = None
    value: Any = None


def with_turns_at_once(
    name: str, closed: ClosedJaxpr, count: int, batch: Collection[int], arguments: Sequence[str]
) -> ClosedJaxpr:
    """A step in which micro-batches can take the place of the turns of its loops.

    A scan (or ``fori_loop``) that takes gradients of one part of the batch after the other and adds
    them to what it carries, or stacks them,

        carry_i+1 = carry_i + f(x_i)

    becomes ``carry_0 + sum(vmap(f)(x))``, of which one of ``count`` micro-batches has every turn of
    one part. Where gradients are not cut into layers, turns of one part stay a loop, as do those of
    a loop inside of a loss (``lax.map`` over examples, or over chunks of them). What it carries
    otherwise must not depend on ``x`` (a counter, PRNG keys), and is made before. Loops that have
    all examples in each turn stay as they are.

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
    inputs = [
        _Known(frozenset({i}), None if i in mixed else 0) if i in sizes else _Known()
        for i in range(len(closed.in_avals))
    ]
    jaxpr, _ = _Rewriting(name, count, sizes, mixed).run(closed.jaxpr, inputs)
    return closed if jaxpr is closed.jaxpr else closed.replace(jaxpr=jaxpr)


@dataclass(frozen=True)
class _Rewriting:
    """Of a jaxpr and of those that it calls.

    Attributes:
        name: of the step.
        count: micro-batches of a step.
        sizes: along dimension 0, of inputs of the step that may hold a batch.
        mixed: those whose arguments have several sizes.
    """

    name: str
    count: int
    sizes: dict[int, int]
    mixed: _Sources

    def run(self, jaxpr: Jaxpr, inputs: Sequence[_Known]) -> tuple[Jaxpr, list[_Known]]:
        """The jaxpr with other loops, the same object if there are none; and its results."""
        known = dict(zip(jaxpr.invars, inputs, strict=True))

        def look_up(atom: Any) -> _Known:
            if isinstance(atom, Literal):
                return _Known(value=atom.val)
            return known.get(atom, _Known())

        made = []
        for equation in jaxpr.eqns:
            one, results = self._rewritten(equation, [look_up(atom) for atom in equation.invars])
            made.append(one)
            known |= dict(zip(equation.outvars, results, strict=True))
        return with_equations(jaxpr, made), [look_up(atom) for atom in jaxpr.outvars]

    def _rewritten(self, equation: Any, own: Sequence[_Known]) -> tuple[Any, list[_Known]]:
        sources = frozenset().union(*(one.sources for one in own))
        if equation.primitive.name in _INLINE:
            results: list[_Known] = []

            def rewrite(inner: Jaxpr) -> Jaxpr:
                found, results[:] = self.run(inner, own)
                return found

            return with_inner_jaxprs(equation, rewrite), results
        dims = example_dims(equation, [one.dim for one in own])
        values = _values(equation, own)
        results = [_Known(sources, *each) for each in zip(dims, values, strict=True)]
        literal = _with_literals(equation, own)
        finders = [(SumLoop.over_gradients, self._taken)]
        if self.count > 1 and _may_be_over_examples(equation, own):
            finders.append((SumLoop.over_examples, self._divided))
        for find, choose in finders:
            loop = find(literal)
            run = None if loop is None else choose(loop, own)
            if loop is not None and run is not None:
                results[loop.num_carried :] = [
                    _Known(one.sources, 0) for one in results[loop.num_carried :]
                ]
                return _replaced(equation, loop, run), results
        return equation, results

    def _taken(self, loop: SumLoop, own: Sequence[_Known]) -> Callable[..., list[Any]] | None:
        """A loop whose turns have a part of the batch each, as micro-batches take it; else None."""
        if self.count == 1 and not loop.marks:
            return None
        of_batch = [i for i in loop.of_turns if own[i].sources]
        turns = frozenset().union(*(own[i].sources for i in of_batch))
        whole = frozenset().union(*(own[i].sources for i in loop.of_all)) - self.mixed
        examples = {self.sizes[i] for i in turns}
        is_part = any(loop.is_part(i, examples) for i in of_batch)
        if not is_part or examples & {self.sizes[i] for i in whole}:
            return None
        if loop.length % self.count == 0:
            return loop.at_once(1 if loop.marks else loop.length // self.count)
        if whole:
            return None
        rows = loop.num_rows(of_batch)
        if rows and rows % self.count == 0:
            return loop.at_once(1, has_rows=True)
        divided = f"{loop.length} or what divides it"
        if rows:
            divided += f", or what divides the {rows} examples of a turn"
        raise TraceError(
            f"{self.name} adds up gradients itself, in a loop of {loop.length} turns, which "
            f"are not a multiple of {self.count} micro-batches: take gradients of the whole "
            "batch without a loop, which micro-batches make, or let the loop go over all of "
            f"the batch and pass num_micro_batches={divided}"
        )

    def _divided(self, loop: SumLoop, own: Sequence[_Known]) -> Callable[..., list[Any]] | None:
        """A loop of a loss over examples, turns of each micro-batch behind each other; else None.

        Where a turn has all examples of something, as it compares them, it stays as it is.
        """
        is_over = any(own[i].dim == 0 for i in loop.of_turns)
        sees_all = any(own[i].dim is not None for i in loop.of_all)
        if not is_over or sees_all or loop.length % self.count:
            return None
        return loop.at_once(loop.length // self.count)


def _may_be_over_examples(equation: Any, own: Sequence[_Known]) -> bool:
    """Whether turns may have examples each: what they do with them is dear to ask."""
    if equation.primitive.name != "scan":
        return False
    start = equation.params["num_consts"]
    end = start + equation.params["num_carry"]
    return any(one.dim == 0 for one in (*own[:start], *own[end:]))


def _values(equation: Any, own: Sequence[_Known]) -> list[Any]:
    """What an equation makes of literals, where that is an integer: where a loop begins to read."""
    results = equation.outvars
    is_known = bool(own) and all(one.value is not None for one in own)
    is_number = all(
        one.aval.shape == () and getattr(one.aval.dtype, "kind", "") in ("i", "u", "b")
        for one in results
    )
    if not (is_known and is_number) or equation.effects or [*jaxprs_in_params(equation.params)]:
        return [None] * len(results)
    with jax.ensure_compile_time_eval():
        made = equation.primitive.bind(*(one.value for one in own), **equation.params)
    return list(made) if equation.primitive.multiple_results else [made]


def _with_literals(equation: Any, own: Sequence[_Known]) -> Any:
    if equation.primitive.name != "scan":
        return equation
    atoms = [
        atom if one.value is None else Literal(one.value, atom.aval)
        for atom, one in zip(equation.invars, own, strict=True)
    ]
    return equation.replace(invars=atoms)


def _replaced(equation: Any, loop: SumLoop, run: Callable[..., list[Any]]) -> Any:
    avals = list(map(type_of, loop.avals))
    try:
        made = jax.make_jaxpr(jax.jit(run))(*avals).jaxpr
    except NotImplementedError:
        # A turn calls what has no form for several: a kernel, a function of the host.
        return equation
    if made.constvars or len(made.eqns) != 1:
        return equation
    return made.eqns[0].replace(
        invars=equation.invars, outvars=equation.outvars, source_info=equation.source_info
    )
