"""What a step may be called with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from alpa_runtime.errors import InputError
from alpa_runtime.plan import PipelinePlan, PlanInput
from alpa_runtime.program import numpy_dtype


def input_avals(plan: PipelinePlan) -> list[jax.ShapeDtypeStruct]:
    """Shapes and dtypes of the flat inputs, PRNG keys as keys."""
    return [_aval(value) for value in plan.inputs]


def check_inputs(
    plan: PipelinePlan, avals: Sequence[jax.ShapeDtypeStruct], args: Sequence[Any]
) -> None:
    """Refuses arguments that a step cannot take.

    Raises:
        InputError: count, shape or dtype is wrong, or an array was deleted.
    """
    if len(args) != len(avals):
        raise InputError(f"{plan.name} takes {len(avals)} arrays, got {len(args)}")
    for arg, aval, value in zip(args, avals, plan.inputs, strict=True):
        name = value.value.name or "an input"
        found = arg.aval if hasattr(arg, "aval") else jax.typeof(arg)
        if tuple(found.shape) != tuple(aval.shape) or found.dtype != aval.dtype:
            raise InputError(
                f"{name} of {plan.name} is {aval.dtype}{list(aval.shape)}, "
                f"got {found.dtype}{list(found.shape)}"
            )
        if hasattr(arg, "is_deleted") and arg.is_deleted():
            raise InputError(
                f"{name} of {plan.name} was deleted: an earlier call that donates it has "
                "taken its buffers; pass what that call returned"
            )


def _aval(value: PlanInput) -> jax.ShapeDtypeStruct:
    spec = value.value
    if spec.key_impl is None:
        return jax.ShapeDtypeStruct(spec.shape, numpy_dtype(spec.dtype))
    key = jax.eval_shape(lambda: jax.random.key(0, impl=spec.key_impl))
    return jax.ShapeDtypeStruct(spec.logical_shape, key.dtype)
