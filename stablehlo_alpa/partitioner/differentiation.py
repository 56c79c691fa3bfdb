"""Derivatives and batches of partitioned functions: partitioned functions again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.custom_batching import custom_vmap
from jax.custom_derivatives import SymbolicZero
from jax.interpreters import ad

from stablehlo_alpa.partitioner.asked import Asked
from stablehlo_alpa.partitioner.linear_call import LinearFunction, linear_call_p
from stablehlo_alpa.partitioner.region import call_region

Flat: TypeAlias = Callable[..., tuple[Any, ...]]
"""A function of arrays without PRNG keys, that returns a tuple of such arrays."""


def differentiable(fun: Flat, asked: Asked) -> Flat:
    """A partitioned function with derivatives, of any order, in forward and in reverse mode.

    The function, extended by what its derivative needs, is partitioned, and so is the derivative, a
    linear function of tangents; residuals go between them in the shardings in which the first
    leaves them. Reverse mode is the transposed linear function.
    """

    @jax.custom_jvp
    def call(*args: Any) -> tuple[Any, ...]:
        return _batchable(fun, asked)(*args)

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


def _batchable(fun: Flat, asked: Asked) -> Flat:
    """A partitioned function; a batch of it is one as well."""

    @custom_vmap
    def call(*args: Any) -> tuple[Any, ...]:
        return call_region(fun, args, asked)

    @call.def_vmap
    def batch(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        in_axes = [0 if is_batched else None for is_batched in in_batched]
        batched = jax.vmap(fun, in_axes=in_axes, axis_size=axis_size)

        def named(*values: Any) -> tuple[Any, ...]:
            return tuple(batched(*values))

        named.__name__ = f"{fun.__name__}_batched"
        results = differentiable(named, asked)(*args)
        return results, tuple(True for _ in results)

    flat: Flat = call
    return flat
