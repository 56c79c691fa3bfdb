"""Derivatives and batches of partitioned functions: partitioned functions again."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.custom_batching import custom_vmap

from stablehlo_alpa.api.methods import ShardParallel
from stablehlo_alpa.partitioner.region import call_region

Flat: TypeAlias = Callable[..., tuple[Any, ...]]
"""A function of arrays without PRNG keys, that returns a tuple of such arrays."""


def differentiable(fun: Flat, method: ShardParallel) -> Flat:
    """A partitioned function with derivatives in reverse mode, of any order.

    The forward and the backward function are partitioned each by itself; residuals go between them
    in the shardings in which the forward function leaves them.
    """

    @jax.custom_vjp
    def call(*args: Any) -> tuple[Any, ...]:
        return _batchable(fun, method)(*args)

    def forward(*args: Any) -> tuple[tuple[Any, ...], _Residuals]:
        return _forward(fun, method, args)

    def backward(residuals: _Residuals, cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        return _backward(fun, method, residuals, cotangents)

    call.defvjp(forward, backward)
    return call


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=("kept", "made"),
    meta_fields=("pullback", "sources", "active"),
)
@dataclass(frozen=True)
class _Residuals:
    """What the backward function needs.

    Attributes:
        kept: arguments of the forward function.
        made: what it made for the backward function.
        pullback: structure of JAX's own pullback, whose leaves are some of both.
        sources: per leaf its number in ``kept``, None for one that was made.
        active: per argument whether it has a cotangent.
    """

    kept: tuple[Any, ...]
    made: tuple[Any, ...]
    pullback: Any
    sources: tuple[int | None, ...]
    active: tuple[bool, ...]


def _is_differentiable(array: Any) -> bool:
    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.inexact))


def _forward(
    fun: Flat, method: ShardParallel, args: Sequence[Any]
) -> tuple[tuple[Any, ...], _Residuals]:
    active = tuple(map(_is_differentiable, args))
    structure: list[tuple[Any, list[int | None], int]] = []

    def with_residuals(*inner: Any) -> tuple[Any, ...]:
        def of_active(*values: Any) -> tuple[Any, ...]:
            given = iter(values)
            return fun(
                *[
                    next(given) if is_active else x
                    for x, is_active in zip(inner, active, strict=True)
                ]
            )

        results, pullback = jax.vjp(of_active, *itertools.compress(inner, active))
        leaves, tree = jax.tree.flatten(pullback)
        # A leaf that is an argument needs no result of its own.
        sources = [next((i for i, x in enumerate(inner) if x is leaf), None) for leaf in leaves]
        structure.append((tree, sources, len(results)))
        made = [leaf for leaf, source in zip(leaves, sources, strict=True) if source is None]
        return (*results, *made)

    with_residuals.__name__ = f"{fun.__name__}_forward"
    found = differentiable(with_residuals, method)(*args)
    tree, sources, count = structure[-1]
    kept = sorted({source for source in sources if source is not None})
    residuals = _Residuals(
        kept=tuple(args[i] for i in kept),
        made=found[count:],
        pullback=tree,
        sources=tuple(None if source is None else kept.index(source) for source in sources),
        active=active,
    )
    return found[:count], residuals


def _backward(
    fun: Flat, method: ShardParallel, residuals: _Residuals, cotangents: Sequence[Any]
) -> tuple[Any, ...]:
    num_kept, num_made = len(residuals.kept), len(residuals.made)
    # Cotangents of integers are of a type that no program has.
    real = [c for c in cotangents if c.dtype != jax.dtypes.float0]

    def pull(*values: Any) -> tuple[Any, ...]:
        kept, made = values[:num_kept], iter(values[num_kept : num_kept + num_made])
        leaves = [next(made) if source is None else kept[source] for source in residuals.sources]
        given = iter(values[num_kept + num_made :])
        full = tuple(
            np.zeros(c.shape, jax.dtypes.float0) if c.dtype == jax.dtypes.float0 else next(given)
            for c in cotangents
        )
        return tuple(residuals.pullback.unflatten(leaves)(full))

    pull.__name__ = f"{fun.__name__}_backward"
    found = iter(differentiable(pull, method)(*residuals.kept, *residuals.made, *real))
    return tuple(next(found) if is_active else None for is_active in residuals.active)


def _batchable(fun: Flat, method: ShardParallel) -> Flat:
    """A partitioned function; a batch of it is one as well."""

    @custom_vmap
    def call(*args: Any) -> tuple[Any, ...]:
        return call_region(fun, args, method)

    @call.def_vmap
    def batch(axis_size: int, in_batched: Any, *args: Any) -> tuple[Any, Any]:
        in_axes = [0 if is_batched else None for is_batched in in_batched]
        batched = jax.vmap(fun, in_axes=in_axes, axis_size=axis_size)

        def named(*values: Any) -> tuple[Any, ...]:
            return tuple(batched(*values))

        named.__name__ = f"{fun.__name__}_batched"
        results = differentiable(named, method)(*args)
        return results, tuple(True for _ in results)

    flat: Flat = call
    return flat
