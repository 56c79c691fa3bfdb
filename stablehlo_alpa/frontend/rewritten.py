"""Lowers a function whose jaxpr was rewritten, under the names that its own signature gives."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import jax
from alpa_runtime.host_memory import type_of
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
        return type_of(next(avals))

    args = [jax.tree.map(abstract, one.value) for one in arguments]
    traced = jax.jit(fun, keep_unused=True).trace(*args)
    if not is_lowerable(traced):
        avals = iter(closed.in_avals)
        flat = [[abstract(leaf) for leaf in jax.tree.leaves(one)] for one in args]
        traced = jax.jit(fun, keep_unused=True).trace(*flat)
    return lower(traced, platform)


def is_lowerable(traced: jax.stages.Traced) -> bool:
    """Whether jax can lower a call, or makes of its arguments what their classes refuse.

    What is lowered has an ``args_info``, whose leaves are no arrays in the caller's own classes;
    those that look at what they are made of, as the loss scales of jmp, raise what they like.
    """
    try:
        return traced.args_info is not None
    except Exception:
        return False
