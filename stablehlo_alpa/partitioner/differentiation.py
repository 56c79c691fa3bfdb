"""Derivatives and batches of partitioned functions: partitioned functions again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.custom_batching import custom_vmap

from stablehlo_alpa.api import ShardParallel
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


@jax.tree_util.register_pytree_node_class
class _Residuals:
    """What the backward function needs.

    Attributes:
        kept: arguments of the forward function.
        made: what it made for the backward function.
        pullback: structure of JAX's own pullback, whose leaves are some of both.
        sources: per leaf the number of the argument that it is, None for one that was made.
    """

    def __init__(
        self, kept: Sequence[Any], made: Sequence[Any], pullback: Any, sources: tuple[Any, ...]
    ) -> None:
        """Takes all of it."""
        self.kept, self.made = tuple(kept), tuple(made)
        self.pullback, self.sources = pullback, sources

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Arrays, and the rest."""
        return (self.kept, self.made), (self.pullback, self.sources)

    @classmethod
    def tree_unflatten(cls, data: Any, arrays: Any) -> _Residuals:
        """The inverse."""
        return cls(*arrays, *data)


def _is_differentiable(array: Any) -> bool:
    return bool(jax.numpy.issubdtype(array.dtype, jax.numpy.inexact))


def _forward(
    fun: Flat, method: ShardParallel, args: Sequence[Any]
) -> tuple[tuple[Any, ...], _Residuals]:
    structure: list[tuple[Any, tuple[Any, ...], int]] = []
    active = [i for i, arg in enumerate(args) if _is_differentiable(arg)]

    def with_residuals(*inner: Any) -> tuple[Any, ...]:
        def of_active(*values: Any) -> tuple[Any, ...]:
            given = list(inner)
            for i, value in zip(active, values, strict=True):
                given[i] = value
            return fun(*given)

        results, pullback = jax.vjp(of_active, *[inner[i] for i in active])
        leaves, tree = jax.tree.flatten(pullback)
        sources = tuple(
            next((i for i, arg in enumerate(inner) if leaf is arg), None) for leaf in leaves
        )
        structure.append((tree, sources, len(results)))
        made = [leaf for leaf, source in zip(leaves, sources, strict=True) if source is None]
        return (*results, *made)

    with_residuals.__name__ = f"{fun.__name__}_forward"
    found = differentiable(with_residuals, method)(*args)
    tree, sources, count = structure[-1]
    # A leaf that is an argument needs no result of its own.
    kept = sorted({source for source in sources if source is not None})
    positions = tuple(None if s is None else kept.index(s) for s in sources)
    residuals = _Residuals([args[i] for i in kept], found[count:], tree, positions)
    # The backward function needs to know which arguments get a cotangent.
    flags = tuple(i in set(active) for i in range(len(args)))
    residuals.pullback = (tree, flags)
    return found[:count], residuals


def _backward(
    fun: Flat, method: ShardParallel, residuals: _Residuals, cotangents: Sequence[Any]
) -> tuple[Any, ...]:
    tree, flags = residuals.pullback
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
        return tuple(tree.unflatten(leaves)(full))

    pull.__name__ = f"{fun.__name__}_backward"
    found = iter(differentiable(pull, method)(*residuals.kept, *residuals.made, *real))
    return tuple(next(found) if flag else None for flag in flags)


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
