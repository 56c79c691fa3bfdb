"""A primitive that calls a partitioned function which is linear in its last arguments.

Derivatives of a partitioned function are such calls. JAX sees one operator that it can transpose,
batch and differentiate again, so that forward and reverse mode compose in any order; what it makes
of the operator is a partitioned function each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
from jax._src import dispatch
from jax.extend.core import Primitive, unmapped_aval
from jax.interpreters import ad, batching, mlir

from stablehlo_alpa.partitioner.asked import Asked
from stablehlo_alpa.partitioner.region import call_region

linear_call_p = Primitive("alpa_linear_call")
linear_call_p.multiple_results = True


@dataclass(frozen=True, eq=False)
class LinearFunction:
    """A function of residuals and tangents that is linear in the tangents.

    The transposed function is told beside it, as what is neither traced before it is needed nor
    derived from the other: one of both may not exist (``jax.custom_vjp`` has no forward mode).

    Attributes:
        name: for people.
        push: ``(*residuals, *tangents) -> moved``.
        pull: ``(*residuals, *cotangents of moved) -> cotangents of tangents``.
        num_residuals: how many there are.
        in_avals: types of the tangents.
        out_avals: types of what ``push`` returns.
        asked: how it is planned.
    """

    name: str
    push: Callable[..., Sequence[Any]]
    pull: Callable[..., Sequence[Any]]
    num_residuals: int
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    asked: Asked

    def __call__(self, *args: Any) -> list[Any]:
        """Calls it on residuals and tangents."""
        results: list[Any] = linear_call_p.bind(*args, function=self)
        return results

    def flat(self) -> Callable[..., tuple[Any, ...]]:
        """The function as what is partitioned."""

        def fun(*args: Any) -> tuple[Any, ...]:
            return tuple(self.push(*args))

        fun.__name__ = fun.__qualname__ = self.name
        return fun

    def transposed(self) -> LinearFunction:
        """The function of cotangents."""
        return replace(
            self,
            name=f"{self.name}_transposed",
            push=self.pull,
            pull=self.push,
            in_avals=self.out_avals,
            out_avals=self.in_avals,
        )

    def batched(self, size: int, dims: Sequence[int | None]) -> LinearFunction:
        """The function of ``size`` tangents.

        Args:
            size: of the batch, dimension 0 of tangents and of what becomes of them.
            dims: of the residuals, None for those that all share.
        """
        push_axes = (*dims, *[0] * len(self.in_avals))
        pull_axes = (*dims, *[0] * len(self.out_avals))
        return replace(
            self,
            name=f"{self.name}_batched",
            push=jax.vmap(self.push, in_axes=push_axes, axis_size=size),
            pull=jax.vmap(self.pull, in_axes=pull_axes, axis_size=size),
            in_avals=tuple(unmapped_aval(size, 0, aval) for aval in self.in_avals),
            out_avals=tuple(unmapped_aval(size, 0, aval) for aval in self.out_avals),
        )

    def __repr__(self) -> str:
        # Appears in printed jaxprs.
        return f"<{self.name}>"


@linear_call_p.def_abstract_eval
def _abstract_eval(*avals: Any, function: LinearFunction) -> list[Any]:
    return list(function.out_avals)


@linear_call_p.def_impl
def _evaluate(*args: Any, function: LinearFunction) -> list[Any]:
    return list(call_region(function.flat(), args, function.asked))


def _batch(
    args: Sequence[Any], dims: Sequence[int | None], *, function: LinearFunction
) -> tuple[list[Any], list[int]]:
    size = next(arg.shape[dim] for arg, dim in zip(args, dims, strict=True) if dim is not None)
    count = function.num_residuals
    tangents = [
        jax.numpy.broadcast_to(arg, (size, *arg.shape))
        if dim is None
        else jax.numpy.moveaxis(arg, dim, 0)
        for arg, dim in zip(args[count:], dims[count:], strict=True)
    ]
    results = function.batched(size, dims[:count])(*args[:count], *tangents)
    return results, [0] * len(results)


def _transpose(cotangents: Sequence[Any], *args: Any, function: LinearFunction) -> list[Any]:
    count = function.num_residuals
    is_asked = [ad.is_undefined_primal(arg) for arg in args]
    given = map(ad.instantiate_zeros, cotangents)
    pulled = function.transposed()(*args[:count], *given)
    found = [None] * count + pulled
    return [one if asked else None for one, asked in zip(found, is_asked, strict=True)]


batching.primitive_batchers[linear_call_p] = _batch
ad.primitive_transposes[linear_call_p] = _transpose
mlir.register_lowering(linear_call_p, mlir.lower_fun(_evaluate, multiple_results=True))
# As it becomes a `custom_partitioning`, which may be the only one: what nobody uses is left out.
dispatch.prim_requires_devices_during_lowering.add(linear_call_p)
