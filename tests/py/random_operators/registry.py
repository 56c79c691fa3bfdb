"""The operators by name, and what they do with numbers of any type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from random_operators.dice import Dice

Operator = Callable[[Any, Any, Dice], Any]
MOST_ELEMENTS = 6000
"""Values are no larger."""
OPERATORS: dict[str, Operator] = {}
JUMPS: set[str] = set()
"""Operators of which two results differ by far where arguments differ by rounding."""


def operator(fun: Operator) -> Operator:
    """Registers a function of a value of one dimension or more, and of another value."""
    OPERATORS[fun.__name__] = fun
    return fun


def jumping(fun: Operator) -> Operator:
    JUMPS.add(fun.__name__)
    return operator(fun)


def real(x: Any) -> Any:
    """The same as floating-point numbers."""
    if jnp.iscomplexobj(x):
        return x.real
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.float32) / 4


def bounded(x: Any) -> Any:
    """No number is large: errors would be."""
    if jnp.iscomplexobj(x):
        return lax.complex(bounded(x.real), bounded(x.imag))
    return jnp.clip(x, -9, 9) if jnp.issubdtype(x.dtype, jnp.floating) else x


def fitted(y: Any, shape: Sequence[int], dtype: Any) -> Any:
    """As many elements of a value as a shape has."""
    if jnp.iscomplexobj(y) and not jnp.issubdtype(dtype, jnp.complexfloating):
        y = y.real
    return jnp.resize(y, tuple(shape)).astype(dtype)


def part(x: Any, dim: int, size: int) -> Any:
    return lax.slice_in_dim(x, 0, size, axis=dim)
