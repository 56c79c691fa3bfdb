"""Random numbers that do not depend on what is drawn beside them.

``jax.vmap`` draws what it is told to draw for several keys of ``rbg`` with the first of them: other
numbers than each key gives by itself. A loop whose turns are taken at once has to draw as it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from alpa_runtime.keys import impl_of
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

from stablehlo_alpa.frontend.inner_jaxprs import with_inner

_OF_KEYS = frozenset({"random_bits", "random_split", "random_fold_in", "random_gamma"})


def with_own_draws(jaxpr: Jaxpr) -> Jaxpr:
    """A jaxpr that draws the same under ``jax.vmap`` as for one element after the other.

    Args:
        jaxpr: of a function; what it calls is rewritten too.

    Returns:
        the jaxpr; the same object where nothing has to change.
    """
    made = [_rewritten(equation, jaxpr.debug_info) for equation in jaxpr.eqns]
    is_other = any(new is not old for new, old in zip(made, jaxpr.eqns, strict=True))
    return jaxpr.replace(eqns=made) if is_other else jaxpr


def _rewritten(equation: Any, debug_info: Any) -> Any:
    if _draws_together(equation):
        return _alone(equation, debug_info.with_unknown_names())
    params = with_inner(equation.params, with_own_draws)
    is_other = any(params[key] is not equation.params[key] for key in params)
    return equation.replace(params=params) if is_other else equation


def _draws_together(equation: Any) -> bool:
    """Whether ``jax.vmap`` of an equation draws other numbers; threefry counts by key."""
    name = equation.primitive.name
    if name in _OF_KEYS:
        return impl_of(equation.invars[0].aval) != "threefry2x32"
    return bool(name == "rng_bit_generator")


def _alone(equation: Any, debug_info: Any) -> Any:
    """The equation as a function of which ``jax.vmap`` makes one call for each element."""
    atoms = [*dict.fromkeys(x for x in equation.invars if not isinstance(x, Literal))]
    own = Jaxpr((), atoms, equation.outvars, [equation], equation.effects, debug_info)
    draw = jax.custom_batching.custom_vmap(jaxpr_as_fun(ClosedJaxpr(own, ())))

    @draw.def_vmap
    def each(size: int, is_batched: Sequence[bool], *operands: Any) -> tuple[Any, Any]:
        rows = [
            draw(*(x[i] if b else x for x, b in zip(operands, is_batched, strict=True)))
            for i in range(size)
        ]
        return [jnp.stack(parts) for parts in zip(*rows, strict=True)], [True] * len(rows[0])

    types = [jax.ShapeDtypeStruct(one.aval.shape, one.aval.dtype) for one in atoms]
    (made,) = jax.make_jaxpr(draw)(*types).jaxpr.eqns
    return made.replace(invars=atoms, outvars=equation.outvars, source_info=equation.source_info)
