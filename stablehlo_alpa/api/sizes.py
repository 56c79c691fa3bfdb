"""Whether arguments are those of a plan in other sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import Function, TracedProgram
from stablehlo_alpa.frontend.signature import avals_of, check_hashable, split


def check_sizes(
    function: Function,
    program: TracedProgram,
    before: tuple[tuple[Any, ...], Mapping[str, Any]],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The types of a call that differs from another one in sizes alone.

    Args:
        function: what is called.
        program: what the other call was traced to.
        before: positional and keyword arguments of the other call.
        args: positional arguments: arrays, scalars or ``jax.ShapeDtypeStruct`` in the leaves.
        kwargs: keyword arguments, likewise.

    Raises:
        TraceError: structure, static arguments, a dtype or a rank differ.
    """
    types = function.abstracted(args, kwargs)
    arguments, leaves = split(function, args, kwargs)
    check_hashable(function, arguments)
    planned, planned_leaves = split(function, *before)
    if arguments != planned:
        now: Any = jax.tree.structure((args, dict(kwargs)))
        then: Any = jax.tree.structure((before[0], dict(before[1])))
        if now == then:
            raise TraceError(
                f"static arguments of {function.name} are not those of the plan, sizes alone may "
                "differ: plan it anew"
            )
        raise TraceError(
            f"arguments of {function.name} have the structure {now}, those of the plan {then}: "
            "sizes alone may differ"
        )
    pairs = zip(program.of_caller.inputs, avals_of(leaves), avals_of(planned_leaves), strict=True)
    for value, (shape, dtype, is_weak, _), (old_shape, old_dtype, old_is_weak, _) in pairs:
        what = f"argument {value.name} of {function.name}"
        if dtype != old_dtype:
            raise TraceError(
                f"{what} is {dtype}, that of the plan {old_dtype}: sizes alone may differ"
            )
        if is_weak != old_is_weak:
            raise TraceError(
                f"{what} is {_weakly(is_weak)} typed, that of the plan {_weakly(old_is_weak)} "
                "typed: sizes alone may differ"
            )
        if len(shape) != len(old_shape):
            raise TraceError(
                f"{what} has {len(shape)} dimensions {list(shape)}, that of the plan "
                f"{len(old_shape)} {list(old_shape)}: sizes alone may differ"
            )
    return types


def _weakly(is_weak: bool) -> str:
    return "weakly" if is_weak else "strongly"
