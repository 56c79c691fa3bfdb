"""A primitive that calls a partitioned function.

JAX sees one operator, which has no derivatives of its own. What batches and transposes it is
registered where these are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax._src import dispatch
from jax.extend.core import Primitive
from jax.interpreters import mlir

from stablehlo_alpa.partitioner.asked import Asked
from stablehlo_alpa.partitioner.region import Flat, call_region

region_call_p = Primitive("alpa_region_call")
region_call_p.multiple_results = True


@dataclass(frozen=True, eq=False)
class RegionFunction:
    """A partitioned function of certain types.

    Attributes:
        fun: of arrays without PRNG keys; returns a tuple of such arrays.
        out_avals: types of its results.
        asked: how it is planned.
    """

    fun: Flat
    out_avals: tuple[Any, ...]
    asked: Asked

    def __repr__(self) -> str:
        # Appears in printed jaxprs.
        return f"<{self.fun.__name__}>"


def bind_region(fun: Flat, args: Sequence[Any], asked: Asked) -> tuple[Any, ...]:
    """Calls a function as one operator."""
    out_avals = tuple(jax.make_jaxpr(fun)(*args).out_avals)
    return tuple(region_call_p.bind(*args, function=RegionFunction(fun, out_avals, asked)))


@region_call_p.def_abstract_eval
def _abstract_eval(*avals: Any, function: RegionFunction) -> list[Any]:
    return list(function.out_avals)


@region_call_p.def_impl
def _evaluate(*args: Any, function: RegionFunction) -> list[Any]:
    return list(call_region(function.fun, args, function.asked))


mlir.register_lowering(region_call_p, mlir.lower_fun(_evaluate, multiple_results=True))
# As it becomes a `custom_partitioning`, which may be the only one: what nobody uses is left out.
dispatch.prim_requires_devices_during_lowering.add(region_call_p)
