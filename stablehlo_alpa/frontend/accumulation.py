"""Loops of a step that add up gradients: all of their turns at once, as micro-batches take them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.gradient_loops import CALLS, GradientLoop
from stablehlo_alpa.frontend.inner_jaxprs import with_inner

# Inputs of the step that may hold a batch and that a value is made from.
_Sources: TypeAlias = frozenset[int]


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

    def rewrite(jaxpr: Jaxpr, sources: Sequence[_Sources]) -> Jaxpr:
        known = dict(zip(jaxpr.invars, sources, strict=True))
        made = []
        for equation in jaxpr.eqns:
            own = [
                frozenset() if isinstance(one, Literal) else known.get(one, frozenset())
                for one in equation.invars
            ]
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
    mixed: _Sources
    sources: Sequence[_Sources]

    def taken(self, loop: GradientLoop) -> Callable[..., list[Any]] | None:
        """A loop whose turns have a part of the batch each, as micro-batches take it; else None."""
        if self.count == 1 and not loop.marks:
            return None
        of_batch = [i for i in loop.of_turns if self.sources[i]]
        turns = frozenset().union(*(self.sources[i] for i in of_batch))
        whole = frozenset().union(*(self.sources[i] for i in loop.of_all)) - self.mixed
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


def _rewritten(parts: _Parts, equation: Any, rewrite: Callable[[Any, Any], Any]) -> Any:
    if equation.primitive.name in CALLS:
        params = with_inner(equation.params, lambda inner: rewrite(inner, parts.sources))
        is_other = any(params[key] is not equation.params[key] for key in params)
        return equation.replace(params=params) if is_other else equation
    loop = GradientLoop.of(equation)
    run = None if loop is None else parts.taken(loop)
    if loop is None or run is None:
        return equation
    avals = [jax.ShapeDtypeStruct(a.shape, a.dtype, weak_type=_is_weak(a)) for a in loop.avals]
    made = jax.make_jaxpr(jax.jit(run))(*avals).jaxpr
    if made.constvars or len(made.eqns) != 1:
        return equation
    return made.eqns[0].replace(
        invars=equation.invars, outvars=equation.outvars, source_info=equation.source_info
    )


def _is_weak(aval: Any) -> bool:
    return bool(getattr(aval, "weak_type", False))
