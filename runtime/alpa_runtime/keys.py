"""PRNG keys: typed arrays of jax whose data are words of ``uint32``."""

from __future__ import annotations

import functools
from typing import Any

import jax


def is_key(array: Any) -> bool:
    """Whether an array, or an abstract one, is one of typed keys."""
    dtype = getattr(array, "dtype", None)
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def impl_of(array: Any) -> str | None:
    """Name of the PRNG implementation of an array of typed keys; None of any other.

    The array may be abstract.
    """
    return _impl_of_dtype(array.dtype) if is_key(array) else None


def data_of(array: Any) -> Any:
    """The data of an array of typed keys; any other array as it is."""
    return jax.random.key_data(array) if is_key(array) else array


def with_impl(data: Any, impl: str | None) -> Any:
    """The typed keys that data are of; the data as they are when ``impl`` is None."""
    return data if impl is None else jax.random.wrap_key_data(data, impl=impl)


@functools.cache
def _impl_of_dtype(dtype: Any) -> str:
    found: list[Any] = []
    jax.eval_shape(
        lambda key: found.append(jax.random.key_impl(key)), jax.ShapeDtypeStruct((), dtype)
    )
    return str(found[0])


@functools.cache
def key_dtype(impl: str) -> Any:
    """The dtype of typed keys."""
    return jax.eval_shape(lambda: jax.random.key(0, impl=impl)).dtype


@functools.cache
def key_shape(impl: str) -> tuple[int, ...]:
    """The shape of the data of one key."""
    data = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0, impl=impl)))
    return tuple(data.shape)
