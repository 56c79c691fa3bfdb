"""What can be done with an array that is elsewhere: it is fetched, and worked on here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


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
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * int(self.dtype.itemsize)

    @property
    def weak_type(self) -> bool:
        """Whether it came from a Python scalar."""
        return bool(self.aval.weak_type)


class FetchedOperations(DescribedArray, NDArrayOperatorsMixin):
    """Operators, indices, numpy's functions, numbers and text of an array, all by `fetch`.

    Attributes:
        key_impl: name of the PRNG implementation when it is an array of typed keys.
    """

    key_impl: str | None

    def fetch(self) -> Any:
        """The whole array in this process."""
        raise NotImplementedError

    def is_deleted(self) -> bool:
        """Whether the array is gone."""
        raise NotImplementedError

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
        fetched = [one.fetch() if isinstance(one, FetchedOperations) else one for one in inputs]
        return getattr(ufunc, method)(*fetched, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self.fetch()[index]

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a scalar")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetch())

    def __float__(self) -> float:
        return float(self.fetch())

    def __int__(self) -> int:
        return int(self.fetch())

    def __bool__(self) -> bool:
        return bool(self.fetch())

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
