"""Methods of an array in parts that put together what its parts have, or change their shape."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from alpa_runtime.fetched import FetchedOperations
from alpa_runtime.inputs import fetched

if TYPE_CHECKING:
    from alpa_runtime.stack_operations import PartOperations
    from alpa_runtime.stacks import Stack


def variance(
    array: PartOperations,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    **more: Any,
) -> Any:
    r"""As of a ``jax.Array``; along the parts of their means and sums of squares.

    ``M2 = sum_k M2_k + n_k |mean_k - mean|^2``, ``var = M2 / (n - ddof)``; ``correction`` is
    another name of ``ddof``.

    References:
        Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample
        variances", 1979.
    """
    check_arguments("var", array, out, more)
    less = ddof if correction is None else correction
    axes, kwargs = axes_of(array, axis), {"dtype": dtype, "correction": less}
    if array.stack.dim not in axes:
        parts = [jnp.var(here(part), axes, keepdims=keepdims, **kwargs) for part in array.parts]
        return array.of_parts(reduced_stack(array, axes, keepdims), parts)
    own = jax.eval_shape(functools.partial(jnp.var, **kwargs), array.aval).dtype
    wide = jnp.promote_types(jnp.promote_types(array.dtype, own), jnp.float32)

    def moments(part: Any) -> tuple[float, Any, Any]:
        mean = jnp.mean(part, axes, dtype=wide, keepdims=True)
        squares = jnp.sum(jnp.abs(part.astype(wide) - mean) ** 2, axes, keepdims=True)
        return part.size / mean.size, mean, squares

    counts, own_means, squares = zip(*(moments(here(part)) for part in array.parts), strict=True)
    means, total = at_home(own_means), sum(counts)
    mean = sum(map(operator.mul, counts, means)) / total
    between = (n * jnp.abs(one - mean) ** 2 for n, one in zip(counts, means, strict=True))
    found = ((sum(at_home(squares)) + sum(between)) / (total - less)).astype(own)
    return found if keepdims else found.squeeze(axes)


def deviation(array: PartOperations, *args: Any, **kwargs: Any) -> Any:
    """The root of `variance`, as of a ``jax.Array``."""
    found = variance(array, *args, **kwargs)
    return np.sqrt(found) if isinstance(found, FetchedOperations) else jnp.sqrt(found)


def place_of(
    name: str,
    array: PartOperations,
    axis: int | None = None,
    out: None = None,
    keepdims: bool | None = False,
    **more: Any,
) -> Any:
    """``argmax`` or ``argmin``, as of a ``jax.Array``: the first of equals, and of no numbers."""
    check_arguments(name, array, out, more)
    axes, dim, keeps = axes_of(array, axis), array.stack.dim, bool(keepdims)
    find = getattr(jnp, name)
    if dim not in axes:
        parts = [find(here(part), axis, keepdims=keeps) for part in array.parts]
        return array.of_parts(reduced_stack(array, axes, keeps), parts)
    # Elements of a row: of what lies behind the parts where all elements are numbered.
    inner = math.prod(array.shape[dim + 1 :]) if axis is None else 1
    values, places = [], []
    starts = accumulate(array.stack.sizes, initial=0)
    for part, size, start in zip(map(here, array.parts), array.stack.sizes, starts, strict=False):
        outer, rest = jnp.divmod(find(part, axis, keepdims=True), size * inner)
        places.append(outer * array.shape[dim] * inner + start * inner + rest)
        values.append(getattr(jnp, name[3:])(part, axes, keepdims=True))
    is_better = jnp.greater if name == "argmax" else jnp.less
    values, places = at_home(values), at_home(places)
    value, place = values[0], places[0]
    for other, there in zip(values[1:], places[1:], strict=True):
        was, is_none = jnp.isnan(value), jnp.isnan(other)
        takes = is_better(other, value) | (is_none & ~was)
        ties = (other == value) | (is_none & was)
        place = jnp.where(takes | (ties & (there < place)), there, place)
        value = jnp.where(takes, other, value)
    return place if keeps else place.squeeze(axes)


def reshaped(array: PartOperations, *shape: Any, order: str = "C", **more: Any) -> Any:
    """As of a ``jax.Array``, where the dimension of the parts stays as it is.

    Raises:
        TypeError: it does not.
    """
    check_arguments("reshape", array, None, more)
    whole = jax.eval_shape(lambda one: one.reshape(*shape), array.aval).shape
    dim, rows = array.stack.dim, array.shape[array.stack.dim]
    before = math.prod(array.shape[:dim])
    places = [i for i, n in enumerate(whole) if n == rows and math.prod(whole[:i]) == before]
    if order != "C" or not places:
        raise TypeError(
            f"reshape of {array!r}, which lies in parts on several meshes, to {whole}: in order C, "
            f"dimension {dim} has to stay, with {rows} rows of as many elements; "
            "jnp.asarray(x).reshape(...) puts it together on one device"
        )
    place, stack = places[0], array.stack
    parts = [
        here(part).reshape(*whole[:place], size, *whole[place + 1 :])
        for part, size in zip(array.parts, stack.sizes, strict=True)
    ]
    return array.of_parts(type(stack)(stack.numbers, place, stack.sizes), parts)


# By the name that they have of a ``jax.Array``.
METHODS: dict[str, Callable[..., Any]] = {
    "var": variance,
    "std": deviation,
    "argmax": functools.partial(place_of, "argmax"),
    "argmin": functools.partial(place_of, "argmin"),
    "reshape": reshaped,
}


def here(part: Any) -> Any:
    """A part that jax can work on."""
    is_elsewhere = isinstance(part, FetchedOperations | np.ndarray)
    return jnp.asarray(fetched(part)) if is_elsewhere else part


def at_home(values: Sequence[Any]) -> list[Any]:
    """What each part has made, on the devices of the first."""
    home = values[0].sharding
    return [values[0], *(jax.device_put(value, home) for value in values[1:])]


def axes_of(array: PartOperations, axis: Any) -> tuple[int, ...]:
    """Dimensions that an argument of a reduction means."""
    axes = range(array.ndim) if axis is None else np.atleast_1d(axis).tolist()
    return tuple(int(np.arange(array.ndim)[dim]) for dim in axes)


def reduced_stack(array: PartOperations, axes: Sequence[int], keepdims: bool) -> Stack:
    """How an array is cut of which other dimensions than that of the parts were reduced."""
    stack = array.stack
    before = 0 if keepdims else sum(one < stack.dim for one in axes)
    return type(stack)(stack.numbers, stack.dim - before, stack.sizes)


def check_arguments(name: str, array: PartOperations, out: Any, more: Mapping[str, Any]) -> None:
    """Refuses arguments of methods that parts do not take.

    Raises:
        TypeError: there are some.
    """
    if out is not None:
        raise TypeError(f"{name} of {array!r} makes a new array, out= has to be None")
    given = [key for key, one in more.items() if one is not None]
    if given:
        raise TypeError(
            f"{name} of {array!r}, which lies in parts on several meshes, takes no "
            f"{' and no '.join(given)}: jnp.asarray(x).{name}(...) puts it together on one device"
        )
