"""PRNG keys of independent micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

# How many micro-batches the keys of the differentiated function are split for; None leaves them.
# Part of the key of jax's caches of traces.
key_context: Any = jax.make_user_context(None)

# What the compiler replaces by the number of the micro-batch.
_POSITION_TARGET = "alpa.micro_batch"


def split_keys(values: Sequence[Any]) -> list[Any]:
    """The values, single keys among them replaced by those of the present micro-batch.

    Args:
        values: arrays; a key is typed, or raw in the default implementation.
    """
    count = key_context.value
    if count is None or not any(map(_is_key, values)):
        return list(values)
    position = jax.ffi.ffi_call(_POSITION_TARGET, jax.ShapeDtypeStruct((), jnp.uint32))()
    return [
        jax.random.split(value, count)[position] if _is_key(value) else value for value in values
    ]


def _is_key(value: Any) -> bool:
    if not hasattr(value, "dtype"):
        return False
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return value.ndim == 0
    raw = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0)))
    return bool(value.dtype == raw.dtype and value.shape == raw.shape)
