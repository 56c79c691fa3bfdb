"""Lowers a function whose jaxpr was rewritten, under the names that its own signature gives."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import jax
from alpa_runtime.platforms import lower
from jax.extend.core import jaxpr_as_fun

from stablehlo_alpa.frontend.function import Argument


def lower_rewritten(
    name: str, closed: Any, arguments: Sequence[Argument], out_tree: Any, platform: str
) -> Any:
    """The module of a jaxpr for a platform; see ``alpa_runtime.platforms``.

    Args:
        name: of the function.
        closed: takes and returns the flat inputs and outputs of the function.
        arguments: of the function, in the order of flat inputs.
        out_tree: structure of what it returns.
        platform: what it is lowered for.
    """
    call = jaxpr_as_fun(closed)

    def fun(*args: Any) -> Any:
        return jax.tree.unflatten(out_tree, call(*jax.tree.leaves(args)))

    fun.__name__ = fun.__qualname__ = name
    names = [one.name for one in arguments]
    if all(map(str.isidentifier, names)) and len({*names}) == len(names):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        # What jax reads the names of inputs from.
        fun.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(one, kind) for one in names]
        )
    avals = iter(closed.in_avals)

    def abstract(_: Any) -> jax.ShapeDtypeStruct:
        aval = next(avals)
        weak = bool(getattr(aval, "weak_type", False))
        return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=weak)

    args = [jax.tree.map(abstract, one.info) for one in arguments]
    return lower(jax.jit(fun, keep_unused=True).trace(*args), platform)
