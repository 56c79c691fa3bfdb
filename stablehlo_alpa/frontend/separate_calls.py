"""Calls of what makes programs of its own, in a program that JAX traces.

A pipeline is no part of another program. Its types are known all the same: `jax.eval_shape` and
`jax.make_jaxpr` trace a call, and compile nothing. So the call is an equation, which is refused by
whatever goes on to run it, lower it or transform it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.function import Function
from stablehlo_alpa.frontend.signature import split

_call_p = Primitive("alpa_separate_call")
_call_p.multiple_results = True


def separate_call(
    function: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any], refusal: str
) -> Any:
    """What a call would return, as values of the program that is traced.

    Args:
        function: what is called; types are those of it as it is written.
        args: positional arguments.
        kwargs: keyword arguments.
        refusal: what a `TraceError` says where more than types is wanted.
    """
    traced = function.trace(*function.abstracted(args, kwargs))
    _, leaves = split(function, args, kwargs)
    avals = tuple(traced.jaxpr.out_avals)
    flat = _call_p.bind(*leaves, out_avals=avals, refusal=refusal)
    tree: Any = jax.tree.structure(traced.out_info)
    return tree.unflatten(flat)


def _refuse(*_: Any, refusal: str, **__: Any) -> NoReturn:
    raise TraceError(refusal)


_call_p.def_abstract_eval(lambda *_, out_avals, refusal: list(out_avals))
_call_p.def_impl(_refuse)
mlir.register_lowering(_call_p, _refuse)
ad.primitive_jvps[_call_p] = _refuse
batching.primitive_batchers[_call_p] = _refuse
