"""Functions of the host that a program calls: once, on the first device, with whole operands."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import io_callback

from alpa_runtime.keys import with_impl
from alpa_runtime.program import HostFunction, numpy_dtype

# Collectives take no narrower integers on every backend. Bytes.
_NARROWEST = 4


@dataclasses.dataclass(frozen=True)
class HostCall:
    """Where a program calls the host.

    Attributes:
        number: of the function.
        is_ordered: whether a token comes before operands and results.
        is_pure: whether it may be left out where nothing uses its results.
    """

    number: int
    is_ordered: bool
    is_pure: bool


class HostCalls:
    """The callbacks of one executable, and what goes wrong in them.

    A device that stops in the middle of a program would let the others wait for it for ever. So a
    callback that fails lets the program go on, with NaN and zeros for what it should have returned;
    no other is called any more, and the call of the program raises.
    """

    def __init__(self, functions: Sequence[HostFunction]) -> None:
        """Takes the functions, in the order of their numbers in the program."""
        self.functions = tuple(functions)
        self._lock = threading.Lock()
        self._error: BaseException | None = None

    @contextlib.contextmanager
    def running(self, program: str) -> Iterator[None]:
        """Around one call of the program, until its callbacks have run.

        Args:
            program: its name, for messages.

        Raises:
            jax.errors.JaxRuntimeError: a callback failed, as under ``jax.jit``.
        """
        with self._lock:
            self._error = None
            yield
            jax.effects_barrier()
            error, self._error = self._error, None
        if error is None:
            return
        if not isinstance(error, Exception):
            raise error
        raise failure_of(program, error) from error

    def emit(self, call: HostCall, axes: Sequence[str], operands: Sequence[Any]) -> list[Any]:
        """Calls a function under a trace of the program of one device.

        Args:
            call: which, and how.
            axes: of the mesh; the first device along all of them calls. Without any, the program is
                that of the whole arrays.
            operands: arrays.
        """
        function = self.functions[call.number]
        results = [jax.ShapeDtypeStruct(s, numpy_dtype(d)) for s, d in function.results]
        tokens = [jax.ShapeDtypeStruct((), np.int32)] if call.is_ordered else []
        call_back = jax.pure_callback if call.is_pure else io_callback

        def run(*args: Any) -> list[Any]:
            return list(
                call_back(
                    lambda *host: self._call(function, host[: len(tokens)], host[len(tokens) :]),
                    [*tokens, *results],
                    *args,
                )
            )

        def leave(*args: Any) -> list[Any]:
            zeros = [jax.numpy.zeros(one.shape, one.dtype) for one in results]
            return [*args[: len(tokens)], *zeros]

        if not axes:
            return run(*operands)
        is_first = jax.numpy.array(True)
        for axis in axes:
            is_first &= jax.lax.axis_index(axis) == 0
        found = jax.lax.cond(is_first, run, leave, *operands)
        given = (from_first(one, tuple(axes)) for one in found[len(tokens) :])
        return [*found[: len(tokens)], *given]

    def _call(
        self, function: HostFunction, tokens: Sequence[Any], operands: Sequence[Any]
    ) -> tuple[Any, ...]:
        """On the host. Nothing may be raised here."""
        passed = [np.asarray(token) for token in tokens]
        if self._error is None:
            try:
                typed = map(with_impl, operands, function.key_impls)
                return (*passed, *checked(function, function.call(*typed)))
            except BaseException as error:
                self._error = error
        return (*passed, *(poison(*one) for one in function.results))


def failure_of(program: str, error: BaseException) -> jax.errors.JaxRuntimeError:
    """What a call of a program raises, as under ``jax.jit``, whose callback has failed so."""
    text = "".join(traceback.format_exception(error))
    return jax.errors.JaxRuntimeError(f"INTERNAL: a callback of {program} failed: {text}")


def checked(function: HostFunction, results: Sequence[Any]) -> list[Any]:
    """Results as they were declared.

    Raises:
        RuntimeError: their count, a shape or a dtype is another.
    """
    arrays = [np.asarray(one) for one in results]
    arrays = [one.astype(jax.dtypes.canonicalize_dtype(one.dtype), copy=False) for one in arrays]
    found = [(one.shape, one.dtype.name) for one in arrays]
    if found != list(function.results):
        raise RuntimeError(
            f"callback {function.name!r} returned {found}, declared are {list(function.results)}"
        )
    return arrays


def poison(shape: tuple[int, ...], dtype: str) -> Any:
    """What stands for a result that there is none of."""
    kind = numpy_dtype(dtype)
    is_inexact = jax.dtypes.issubdtype(kind, np.inexact)
    return np.full(shape, np.nan if is_inexact else 0, kind)


def from_first(array: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """The array of the first device, to the bit, on all; those of the others are zeros."""
    if jax.numpy.issubdtype(array.dtype, np.complexfloating):
        return jax.lax.complex(from_first(array.real, axes), from_first(array.imag, axes))
    if jax.numpy.issubdtype(array.dtype, np.floating):
        # A sum of bits: NaN, infinities and the sign of zero go through.
        unsigned = np.dtype(f"uint{8 * array.dtype.itemsize}")
        bits = from_first(jax.lax.bitcast_convert_type(array, unsigned), axes)
        return jax.lax.bitcast_convert_type(bits, array.dtype)
    wide = array if array.dtype.itemsize >= _NARROWEST else array.astype(np.int32)
    summed: jax.Array = jax.lax.psum(wide, axes).astype(array.dtype)
    return summed
