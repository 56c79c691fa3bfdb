"""What is done with an array in parts where its parts lie, without putting it together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from alpa_runtime.fetched import FetchedOperations
from alpa_runtime.stack_methods import (
    METHODS,
    at_home,
    axes_of,
    check_arguments,
    here,
    reduced_stack,
)

if TYPE_CHECKING:
    from alpa_runtime.stacks import Stack

# How reductions of the parts are one of the whole.
_COMBINED: dict[str, Callable[..., Any]] = {
    "sum": jnp.add,
    "prod": jnp.multiply,
    "max": jnp.maximum,
    "min": jnp.minimum,
    "any": jnp.logical_or,
    "all": jnp.logical_and,
}

# Methods of a ``jax.Array`` that make each element of one, and of numbers.
_ELEMENTWISE = frozenset({"clip", "conj", "conjugate", "copy", "round"})


class PartOperations(FetchedOperations):
    """Elementwise operators, reductions, reshapes, updates of rows: each part on its own devices.

    Operators whose operands are cut alike, or numbers, give an array that is cut so; so do
    reductions along other dimensions than that of the parts, and reshapes that leave it. Reductions
    along it are added up on the devices of the first part; their ``out`` is there for numpy, and
    None. What else `FetchedOperations` has brings the array here.

    Attributes:
        stack: how it is cut.
        parts: arrays, or handles of arrays on a cluster, which are fetched.
    """

    stack: Stack
    parts: tuple[Any, ...]

    def of_parts(self, stack: Stack, parts: Sequence[Any]) -> Any:
        """An array of other parts."""
        raise NotImplementedError

    def apply(self, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
        """See `FetchedOperations`; as ``jax.numpy`` does it where operands are cut alike."""
        fun = getattr(jnp, ufunc.__name__, None)
        is_elementwise = method == "__call__" and ufunc.signature is None and ufunc.nout == 1
        if kwargs or not is_elementwise or not fun or not all(map(self._fits, inputs)):
            return super().apply(ufunc, method, inputs, kwargs)
        operands = [
            one.parts if isinstance(one, PartOperations) else [_number(one)] * len(self.parts)
            for one in inputs
        ]
        parts = [fun(*map(here, each)) for each in zip(*operands, strict=True)]
        return self.of_parts(self.stack, parts)

    def astype(self, dtype: Any) -> Any:
        """The same numbers of another dtype."""
        return self.of_parts(self.stack, [here(part).astype(dtype) for part in self.parts])

    def sum(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        **more: Any,
    ) -> Any:
        """As of a ``jax.Array``."""
        check_arguments("sum", self, out, more)
        return self._reduced("sum", axis, keepdims, *_dtypes(self.dtype, dtype))

    def prod(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        **more: Any,
    ) -> Any:
        """As of a ``jax.Array``."""
        check_arguments("prod", self, out, more)
        return self._reduced("prod", axis, keepdims, *_dtypes(self.dtype, dtype))

    def mean(
        self,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        **more: Any,
    ) -> Any:
        """As of a ``jax.Array``."""
        check_arguments("mean", self, out, more)
        narrow = dtype or jnp.result_type(self.dtype, float)
        wide = jnp.promote_types(narrow, jnp.float32)
        count = np.prod([self.shape[dim] for dim in axes_of(self, axis)], dtype=np.int64)
        total = self._reduced("sum", axis, keepdims, {"dtype": wide}, None)
        return (total / int(count)).astype(narrow)

    def max(self, axis: Any = None, out: None = None, keepdims: bool = False, **more: Any) -> Any:
        """As of a ``jax.Array``."""
        check_arguments("max", self, out, more)
        return self._reduced("max", axis, keepdims, {}, None)

    def min(self, axis: Any = None, out: None = None, keepdims: bool = False, **more: Any) -> Any:
        """As of a ``jax.Array``."""
        check_arguments("min", self, out, more)
        return self._reduced("min", axis, keepdims, {}, None)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False, **more: Any) -> Any:
        """As of a ``jax.Array``."""
        check_arguments("any", self, out, more)
        return self._reduced("any", axis, keepdims, {}, None)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False, **more: Any) -> Any:
        """As of a ``jax.Array``."""
        check_arguments("all", self, out, more)
        return self._reduced("all", axis, keepdims, {}, None)

    @property
    def at(self) -> Rows:
        """As of a ``jax.Array``, of rows of one part or with one number for all; see `Rows`."""
        return Rows(self)

    def __getattr__(self, name: str) -> Any:
        if name in _ELEMENTWISE:
            return functools.partial(_each_element, name, self)
        if name in METHODS:
            return functools.partial(METHODS[name], self)
        if not name.startswith("_") and hasattr(jax.Array, name):
            raise AttributeError(
                f"{name} of {self!r}, which lies in parts on several meshes, needs it whole: "
                f"jnp.asarray puts it together on one device, jnp.asarray(x).{name} is what you "
                "want if it has room"
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name}")

    def _fits(self, operand: Any) -> bool:
        if isinstance(operand, PartOperations):
            return (operand.stack.dim, operand.stack.sizes, operand.shape) == (
                *(self.stack.dim, self.stack.sizes),
                self.shape,
            )
        return not isinstance(operand, FetchedOperations) and np.ndim(operand) == 0

    def _reduced(self, name: str, axis: Any, keepdims: bool, kwargs: Any, dtype: Any) -> Any:
        axes = axes_of(self, axis)
        parts = [
            getattr(jnp, name)(here(part), axis=axes, keepdims=keepdims, **kwargs)
            for part in self.parts
        ]
        if self.stack.dim in axes:
            whole = functools.reduce(_COMBINED[name], at_home(parts))
            return whole if dtype is None else whole.astype(dtype)
        return self.of_parts(
            reduced_stack(self, axes, keepdims),
            parts if dtype is None else [part.astype(dtype) for part in parts],
        )


def _each_element(name: str, array: PartOperations, *args: Any, **kwargs: Any) -> Any:
    """A method of an array, of each of its parts."""
    if any(np.ndim(one) for one in (*args, *kwargs.values())):
        raise TypeError(
            f"{name} of {array!r}, which lies in parts on several meshes, takes numbers: "
            f"jnp.asarray(x).{name}(...) puts it together on one device"
        )
    own = [_number(one) for one in args]
    named = {key: _number(one) for key, one in kwargs.items()}
    parts = [getattr(here(part), name)(*own, **named) for part in array.parts]
    return array.of_parts(array.stack, parts)


class Rows:
    """Where `at` changes an array in parts: one row along them, or all rows by one number.

    >>> stack.at[3].set(0), stack.at[-1, 0].add(row), stack.at[:, 0].multiply(2)
    """

    def __init__(self, array: PartOperations, index: tuple[Any, ...] | None = None) -> None:
        """Takes the array, and the index once there is one."""
        self._array, self._index = array, index

    def __getitem__(self, index: Any) -> Rows:
        return Rows(self._array, index if isinstance(index, tuple) else (index,))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or self._index is None:
            raise AttributeError(f"{name} of an index into {self._array!r}")
        return functools.partial(self._changed, name)

    def _changed(self, name: str, value: Any = None, **kwargs: Any) -> Any:
        stack, parts = self._array.stack, [here(part) for part in self._array.parts]
        index: tuple[Any, ...] = self._index or ()
        before, own = index[: stack.dim], [*index, *[slice(None)] * (stack.dim + 1)][stack.dim]
        is_plain = name != "get" and all(_is_plain(one) for one in before)
        size = sum(stack.sizes)
        if is_plain and _is_plain(own) and not isinstance(own, slice) and -size <= own < size:
            number, row = 0, int(own) % size
            while row >= stack.sizes[number]:
                row, number = row - stack.sizes[number], number + 1
            local = (*before, row, *index[stack.dim + 1 :])
            parts[number] = getattr(parts[number].at[local], name)(value, **kwargs)
        elif is_plain and isinstance(own, slice) and own == slice(None) and np.ndim(value) == 0:
            parts = [getattr(part.at[index], name)(_number(value), **kwargs) for part in parts]
        else:
            raise TypeError(
                f".at[...].{name} of {self._array!r}, which lies in parts on several meshes: an "
                f"index has to be one row along dimension {stack.dim}, or all of them with one "
                f"number; jnp.asarray(x).at[...].{name} puts all of it together on one device"
            )
        return self._array.of_parts(stack, parts)


def _is_plain(entry: Any) -> bool:
    """Whether an entry of an index belongs to one dimension, whose number it tells."""
    return isinstance(entry, slice) or (
        isinstance(entry, int | np.integer) and not isinstance(entry, bool)
    )


def _number(value: Any) -> Any:
    """A number of no device, which is on that of each part."""
    if not isinstance(value, jax.Array):
        return value
    return value.item() if value.weak_type else np.asarray(value)[()]


def _dtypes(own: Any, asked: Any) -> tuple[dict[str, Any], Any]:
    """In which type parts are reduced, and of which their result is; None as jax has it.

    Sums of parts are not rounded to 16 bits before they are added up.
    """
    is_short = jnp.issubdtype(own, jnp.floating) and jnp.dtype(own).itemsize < 4
    return ({"dtype": jnp.float32}, own) if is_short and not asked else ({"dtype": asked}, None)
