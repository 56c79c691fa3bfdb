"""Derivatives and batches of partitioned functions: partitioned functions again."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax._src.interpreters.batching import BatchTracer
from jax.custom_derivatives import SymbolicZero
from jax.interpreters import ad, batching

from stablehlo_alpa.partitioner.asked import Asked
from stablehlo_alpa.partitioner.linear_call import LinearFunction, linear_call_p
from stablehlo_alpa.partitioner.region import Flat
from stablehlo_alpa.partitioner.region_call import RegionFunction, bind_region, region_call_p


def differentiable(fun: Flat, asked: Asked) -> Flat:
    """A partitioned function with derivatives, of any order, in forward and in reverse mode.

    The function, extended by what its derivative needs, is partitioned, and so is the derivative, a
    linear function of tangents; residuals go between them in the shardings in which the first
    leaves them. Reverse mode is the transposed linear function.
    """

    @jax.custom_jvp
    def call(*args: Any) -> tuple[Any, ...]:
        return bind_region(fun, args, asked)

    def rule(args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        moved = [None if isinstance(one, SymbolicZero) else one for one in tangents]
        return _derivative(fun, asked, args, moved)

    # Symbolic zeros: what no derivative is asked for costs none.
    call.defjvp(rule, symbolic_zeros=True)
    flat: Flat = call
    return flat


def _is_differentiable(array: Any) -> bool:
    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.inexact))


def _linearized(
    fun: Flat, asked: Asked, args: Sequence[Any], active: Sequence[bool]
) -> tuple[tuple[Any, ...], list[Any], Flat]:
    """Results, residuals, and the derivative as a function of residuals and tangents.

    Args:
        fun: a function.
        asked: how it is planned.
        args: its arguments.
        active: which of them have tangents.
    """
    structure: list[tuple[Any, list[int | None], int]] = []

    def with_residuals(*inner: Any) -> tuple[Any, ...]:
        def of_active(*values: Any) -> tuple[Any, ...]:
            given = iter(values)
            return fun(*[next(given) if a else x for x, a in zip(inner, active, strict=True)])

        results, push = jax.linearize(of_active, *itertools.compress(inner, active))
        leaves, tree = jax.tree.flatten(push)
        # A leaf that is an argument needs no result of its own.
        sources = [next((i for i, x in enumerate(inner) if x is leaf), None) for leaf in leaves]
        structure.append((tree, sources, len(results)))
        made = [leaf for leaf, source in zip(leaves, sources, strict=True) if source is None]
        return (*results, *made)

    with_residuals.__name__ = f"{fun.__name__}_forward"
    found = differentiable(with_residuals, asked)(*args)
    tree, sources, count = structure[-1]
    kept = sorted({source for source in sources if source is not None})
    residuals = [*(args[i] for i in kept), *found[count:]]
    num_kept, num_residuals = len(kept), len(residuals)

    def push(*values: Any) -> tuple[Any, ...]:
        rest = iter(values[num_kept:num_residuals])
        leaves = [next(rest) if s is None else values[kept.index(s)] for s in sources]
        return tuple(tree.unflatten(leaves)(*values[num_residuals:]))

    return found[:count], residuals, push


def _derivative(
    fun: Flat, asked: Asked, args: Sequence[Any], tangents: Sequence[Any]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Results and their tangents; a tangent of an argument that is None is zero."""
    active = [
        tangent is not None and _is_differentiable(arg)
        for arg, tangent in zip(args, tangents, strict=True)
    ]
    results, residuals, push_all = _linearized(fun, asked, args, active)
    is_moved = list(map(_is_differentiable, results))
    moved = list(itertools.compress(tangents, active))
    num_residuals, tangent_avals = len(residuals), tuple(map(jax.typeof, moved))

    def push(*values: Any) -> list[Any]:
        return list(itertools.compress(push_all(*values), is_moved))

    def pull(*values: Any) -> Sequence[Any]:
        known, cotangents = values[:num_residuals], values[num_residuals:]
        transposed = jax.linear_transpose(lambda *some: push(*known, *some), *tangent_avals)
        pulled: Sequence[Any] = transposed(list(cotangents))
        return pulled

    linear = LinearFunction(
        name=f"{fun.__name__}_derivative",
        push=push,
        pull=pull,
        num_residuals=num_residuals,
        in_avals=tangent_avals,
        out_avals=tuple(
            jax.typeof(result).to_tangent_aval() for result in itertools.compress(results, is_moved)
        ),
        asked=asked,
    )
    pushed = iter(linear(*residuals, *moved))
    return results, tuple(
        next(pushed) if is_one else np.zeros(result.shape, jax.dtypes.float0)
        for result, is_one in zip(results, is_moved, strict=True)
    )


def _derivative_of_linear(
    primals: Sequence[Any], tangents: Sequence[Any], *, function: LinearFunction
) -> tuple[Any, Any]:
    count = function.num_residuals
    if all(isinstance(one, ad.Zero) for one in tangents[:count]):
        # A linear function is its own derivative, and stays one that can be transposed.
        moved = map(ad.instantiate_zeros, tangents[count:])
        return function(*primals), function(*primals[:count], *moved)
    moving = [None if isinstance(one, ad.Zero) else one for one in tangents]
    results, pushed = _derivative(function.flat(), function.asked, primals, moving)
    return list(results), list(pushed)


ad.primitive_jvps[linear_call_p] = _derivative_of_linear


def _batch(
    args: Sequence[Any], dims: Sequence[int | None], *, function: RegionFunction
) -> tuple[list[Any], list[int | None]]:
    """A batch of a partitioned function is one as well."""
    size = next(arg.shape[dim] for arg, dim in zip(args, dims, strict=True) if dim is not None)
    axes = _result_axes(function.fun, args, dims, size)
    batched = jax.vmap(function.fun, in_axes=tuple(dims), out_axes=axes, axis_size=size)

    def named(*values: Any) -> tuple[Any, ...]:
        return tuple(batched(*values))

    named.__name__ = f"{function.fun.__name__}_batched"
    return list(differentiable(named, function.asked)(*args)), list(axes)


def _result_axes(
    fun: Flat, args: Sequence[Any], dims: Sequence[int | None], size: int
) -> tuple[int | None, ...]:
    """Per result 0, or None where it is the same for the whole batch, as ``jax.vmap`` finds it."""
    found: list[int | None] = []

    def look(*values: Any) -> tuple[Any, ...]:
        results = fun(*values)
        found[:] = [0 if isinstance(one, BatchTracer) else None for one in results]
        return results

    jax.make_jaxpr(jax.vmap(look, in_axes=tuple(dims), axis_size=size))(*args)
    return tuple(found)


def _transpose(cotangents: Sequence[Any], *args: Any, function: RegionFunction) -> list[Any]:
    """The transposed function of one that is linear in what is not known."""
    is_asked = [ad.is_undefined_primal(arg) for arg in args]
    avals = [arg.aval for arg, asked in zip(args, is_asked, strict=True) if asked]
    known = [arg for arg, asked in zip(args, is_asked, strict=True) if not asked]
    is_moved = list(map(_is_differentiable, function.out_avals))

    def transposed(*values: Any) -> tuple[Any, ...]:
        def push(*some: Any) -> list[Any]:
            rest, moving = iter(values[: len(known)]), iter(some)
            results = function.fun(*(next(moving) if one else next(rest) for one in is_asked))
            return list(itertools.compress(results, is_moved))

        return tuple(jax.linear_transpose(push, *avals)(list(values[len(known) :])))

    transposed.__name__ = f"{function.fun.__name__}_transposed"
    given = map(ad.instantiate_zeros, itertools.compress(cotangents, is_moved))
    pulled = iter(differentiable(transposed, function.asked)(*known, *given))
    return [next(pulled) if asked else None for asked in is_asked]


batching.primitive_batchers[region_call_p] = _batch
ad.primitive_transposes[region_call_p] = _transpose
