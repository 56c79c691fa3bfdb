"""Kernels with the rules of their authors, and checks of their plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl
from jax.sharding import PartitionSpec

import stablehlo_alpa as sa

P = PartitionSpec
ROWS, HIDDEN = 4, 32
MESHES = {"8": (8,), "2x4": (2, 4), "2x2x2": (2, 2, 2), "3": (3,)}


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("f")


def axes_of(entry: Any) -> tuple[str, ...]:
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def as_asked(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A partition callback that takes what it is asked for."""

    def partition(mesh: Any, arguments: Any, results: Any) -> Any:
        def shardings(values: Any) -> Any:
            return jax.tree.map(lambda value: value.sharding, values)

        return mesh, fun, shardings(results), shardings(arguments)

    return partition


def kernel_calls(plan: sa.Plan, stage: int = 0) -> list[str]:
    """The planned calls of kernels, with their strategies."""
    lines = plan.module_text("planned", stage).splitlines()
    return [line for line in lines if 'call_target_name = "alpa_kernel"' in line]


def check_split(plan: sa.Plan, stage: int = 0) -> None:
    calls = kernel_calls(plan, stage)
    assert calls
    assert not any("#alpa.strategy<>" in line for line in calls)


def check_equal(fun: Callable[..., Any], args: tuple[Any, ...], step: Any) -> None:
    found, expected = jax.tree.leaves(step(*args)), jax.tree.leaves(jax.jit(fun)(*args))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-5)


# A kernel of Pallas with its gradients.


def forward_body(x: Any, scale: Any, out: Any) -> None:
    rows = x[...]
    out[...] = rows * jax.lax.rsqrt((rows * rows).mean(1, keepdims=True) + 1e-6) * scale[...]


def backward_body(x: Any, scale: Any, slope: Any, x_slope: Any, scale_slope: Any) -> None:
    rows, slopes = x[...], slope[...]
    inverse = jax.lax.rsqrt((rows * rows).mean(1, keepdims=True) + 1e-6)
    normal, scaled = rows * inverse, slopes * scale[...]
    x_slope[...] = inverse * (scaled - normal * (scaled * normal).mean(1, keepdims=True))
    scale_slope[...] = (slopes * normal).sum(0, keepdims=True)


def rows_of(count: int) -> Any:
    return pl.BlockSpec((count, HIDDEN), lambda i: (i, 0))


WHOLE = pl.BlockSpec((1, HIDDEN), lambda i: (0, 0))


@sa.kernel("rows h, one h -> rows h", whole=("h",))
def norm_kernel(x: Any, scale: Any) -> Any:
    # The grid is that of a block: a call that was made for the whole would read beyond it.
    call = pl.pallas_call(
        forward_body,
        jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // ROWS,),
        in_specs=[rows_of(ROWS), WHOLE],
        out_specs=rows_of(ROWS),
        interpret=True,
    )
    return call(x, scale)


@sa.kernel("(n r) h, one h, (n r) h -> (n r) h, n h", whole=("r", "h"), sizes={"r": ROWS})
def slope_kernel(x: Any, scale: Any, slope: Any) -> Any:
    count = x.shape[0] // ROWS
    types = [jax.ShapeDtypeStruct(shape, x.dtype) for shape in (x.shape, (count, HIDDEN))]
    call = pl.pallas_call(
        backward_body,
        tuple(types),
        grid=(count,),
        in_specs=[rows_of(ROWS), WHOLE, rows_of(ROWS)],
        out_specs=(rows_of(ROWS), rows_of(1)),
        interpret=True,
    )
    return call(x, scale, slope)


@jax.custom_vjp
def norm(x: Any, scale: Any) -> Any:
    return norm_kernel(x, scale)


def slopes_of(kept: Any, slope: Any) -> Any:
    x_slope, parts = slope_kernel(*kept, slope)
    return x_slope, parts.sum(0, keepdims=True)


norm.defvjp(lambda x, scale: (norm_kernel(x, scale), (x, scale)), slopes_of)
