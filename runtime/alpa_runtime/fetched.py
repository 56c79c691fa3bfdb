"""What can be done with an array that is elsewhere: it is fetched, and worked on here."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from alpa_runtime.jax_types import make_argument

# What a ``jax.Array`` tells of the devices that it is on.
_OF_DEVICES = {
    *("addressable_data", "addressable_shards", "committed", "copy_to_host_async", "device"),
    *("devices", "format", "global_shards", "is_fully_addressable", "is_fully_replicated"),
    *("layout", "on_device_size_in_bytes", "sharding", "traceback", "unsafe_buffer_pointer"),
}


class DescribedArray:
    """What is known of an array wherever it is.

    Attributes:
        shape: of the array.
        dtype: dtype, as jax has it.
        aval: shape, dtype and weak type.
    """

    shape: tuple[int, ...]
    dtype: Any
    aval: jax.ShapeDtypeStruct

    @property
    def size(self) -> int:
        """Elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def ndim(self) -> int:
        """Dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def weak_type(self) -> bool:
        """Whether it came from a Python scalar."""
        return bool(self.aval.weak_type)


class FetchedNumbers(DescribedArray):
    """Numbers and text of an array, by `fetch`.

    Attributes:
        key_impl: name of the PRNG implementation when it is an array of typed keys.
    """

    key_impl: str | None

    def fetch(self) -> Any:
        """The whole array in this process."""
        raise NotImplementedError

    def here(self) -> Any:
        """The whole array in this process, as jax has it."""
        if self.key_impl is not None:
            return self.fetch()
        return _traced(self) if self.weak_type else jnp.asarray(self.fetch())

    def is_deleted(self) -> bool:
        """Whether the array is gone."""
        raise NotImplementedError

    def __float__(self) -> float:
        return float(self.fetch())

    def __int__(self) -> int:
        return int(self.fetch())

    def __bool__(self) -> bool:
        return bool(self.fetch())

    def __complex__(self) -> complex:
        return complex(self.fetch())

    def __index__(self) -> int:
        return operator.index(self.here())

    def __round__(self, ndigits: int | None = None) -> Any:
        return round(self.here(), ndigits)

    def item(self) -> Any:
        """The only element, as a Python number."""
        return self.fetch().item()

    def tolist(self) -> Any:
        """All elements, as Python numbers in lists."""
        return self.fetch().tolist()

    def __str__(self) -> str:
        return format(self, "")

    def __format__(self, spec: str) -> str:
        is_number = self.size == 1 and self.key_impl is None and not self.is_deleted()
        return format(self.item() if is_number else repr(self), spec)


class FetchedOperations(FetchedNumbers, NDArrayOperatorsMixin):
    """Operators, methods, indices and functions of an array too, all by `fetch`.

    What comes out is what ``jax.numpy`` makes of the array, in this process; functions of numpy
    that ``jax.numpy`` has none of that name of make what numpy makes.
    """

    def __init_subclass__(cls) -> None:
        """Makes its arrays arguments of jax's functions."""
        super().__init_subclass__()
        make_argument(cls)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        fetched = self.fetch()
        if self.key_impl is not None:
            # As jax.device_get wants it; numpy says that it is no array.
            return fetched
        return np.array(fetched, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        outputs = [one for one in kwargs.get("out", ()) if isinstance(one, FetchedOperations)]
        if outputs:
            if len(outputs) > 1 or outputs[0] is not inputs[0]:
                raise TypeError(f"{outputs[0]!r} is immutable, it cannot be the output of {ufunc}")
            # loss /= count: as of any immutable array, the name becomes that of a new one.
            del kwargs["out"]
        return self.apply(ufunc, method, inputs, kwargs)

    def apply(self, ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Any) -> Any:
        """A function of numpy, of what is fetched."""
        fun = getattr(jnp, ufunc.__name__, None)
        if fun and method == "__call__" and not kwargs:
            return fun(
                *(one.here() if isinstance(one, FetchedOperations) else one for one in inputs)
            )
        fetched = [one.fetch() if isinstance(one, FetchedOperations) else one for one in inputs]
        return getattr(ufunc, method)(*fetched, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self.here()[index]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a scalar")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.here())

    def __jax_array__(self) -> Any:
        return self.here()

    def __getattr__(self, name: str) -> Any:
        """A method of ``jax.Array`` that is none of its devices, of what is fetched."""
        if name.startswith("_") or name in _OF_DEVICES or not hasattr(jax.Array, name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return getattr(self.here(), name)


@jax.jit
def _traced(array: Any) -> Any:
    """An array with its weak type."""
    return array
