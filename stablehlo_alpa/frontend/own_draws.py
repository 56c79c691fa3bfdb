"""Random numbers that do not depend on what is drawn beside them.

``jax.vmap`` draws what it is told to draw for several keys of ``rbg`` with the first of them: other
numbers than each key gives by itself. A loop whose turns are taken at once has to draw as it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from alpa_runtime.host_memory import type_of
from alpa_runtime.keys import impl_of
from jax.extend.core import Jaxpr, Literal

from stablehlo_alpa.frontend.inner_jaxprs import with_equations, with_inner_jaxprs
from stablehlo_alpa.frontend.jaxpr_parts import as_function

_OF_KEYS = frozenset({"random_bits", "random_split", "random_fold_in", "random_gamma"})


def with_own_draws(jaxpr: Jaxpr) -> Jaxpr:
    """A jaxpr that draws the same under ``jax.vmap`` as for one element after the other.

    Args:
        jaxpr: of a function; what it calls is rewritten too.

    Returns:
        the jaxpr; the same object where nothing has to change.
    """
    made = [
        _alone(equation, jaxpr)
        if _draws_together(equation)
        else with_inner_jaxprs(equation, with_own_draws)
        for equation in jaxpr.eqns
    ]
    return with_equations(jaxpr, made)


def _draws_together(equation: Any) -> bool:
    """Whether ``jax.vmap`` of an equation draws other numbers; threefry counts by key."""
    name = equation.primitive.name
    if name in _OF_KEYS:
        return impl_of(equation.invars[0].aval) != "threefry2x32"
    return bool(name == "rng_bit_generator")


def _alone(equation: Any, body: Jaxpr) -> Any:
    """An equation of a body as a function, of which ``jax.vmap`` calls one for each element."""
    atoms = [*dict.fromkeys(x for x in equation.invars if not isinstance(x, Literal))]
    run = as_function(body, atoms, [equation], equation.outvars)
    draw = jax.custom_batching.custom_vmap(run)

    @draw.def_vmap
    def each(size: int, is_batched: Sequence[bool], *operands: Any) -> tuple[Any, Any]:
        rows = [
            draw(*(x[i] if b else x for x, b in zip(operands, is_batched, strict=True)))
            for i in range(size)
        ]
        return [jnp.stack(parts) for parts in zip(*rows, strict=True)], [True] * len(rows[0])

    types = [type_of(one.aval) for one in atoms]
    (made,) = jax.make_jaxpr(draw)(*types).jaxpr.eqns
    return made.replace(invars=atoms, outvars=equation.outvars, source_info=equation.source_info)
