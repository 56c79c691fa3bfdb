"""Programs of what libraries on top of JAX's primitives are made of."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special
from programs import program, real, whole

FULL_RANGE = np.random.default_rng(5).integers(-(2**31), 2**31, (2, 16, 8))
# XLA:CPU refuses those of int8 and int16 in its fusions, and so does `jax.jit`: see test_rules.py.
TYPES = (jnp.int32, jnp.uint8, jnp.uint16, jnp.uint32)


@program(FULL_RANGE[0].astype(np.int32), FULL_RANGE[1].astype(np.int32))
def upper_halves_of_products(a: Any, b: Any) -> Any:
    return [lax.mulhi(a.astype(dtype), b.astype(dtype)) for dtype in TYPES]


@program(real(16, 8), tolerance=1e-4)
def zeta_and_polygamma(a: Any) -> Any:
    a = jnp.abs(a) + 1.5
    zeta = special.zeta(a, jnp.float32(2))
    return zeta, special.polygamma(2, a), jax.grad(lambda a: special.zeta(a, a).sum())(a + 1)


@program(real(16, 8), tolerance=1e-4)
def incomplete_gamma_and_beta(a: Any) -> Any:
    share = jax.nn.sigmoid(a)
    return (
        special.gammainc(2.0, jnp.abs(a)),
        special.betainc(1.0, 2.0, share),
        special.ndtri(share),
        special.i0(a),
        jax.grad(lambda a: special.gammainc(jnp.abs(a) + 0.5, 2.0).sum())(a),
    )


@program(real(16, 8))
def barriers_and_recomputation(a: Any) -> Any:
    def loss(a: Any) -> Any:
        block = jax.checkpoint(
            lambda a: (jnp.tanh(a) @ a.T).sum(), policy=jax.checkpoint_policies.dots_saveable
        )
        return block(a) + jax.checkpoint(jnp.sin)(a).sum()

    return lax.optimization_barrier((a, a * 2)), jax.grad(loss)(a)


@program(real(16, 8))
def composites(a: Any) -> Any:
    return lax.composite(lambda a: jnp.tanh(a) * 2, name="test.tanh")(a) @ a.T


@program(real(16, 8), tolerance=1e-4)
def running_totals(a: Any) -> Any:
    return (
        jnp.cumprod(a, 0),
        lax.cummax(a, 1, reverse=True),
        lax.cumlogsumexp(a, 0),
        jnp.add.accumulate(a, axis=0),
        lax.associative_scan(jnp.minimum, a, axis=1),
        jnp.unwrap(a[:, 0]),
    )


@program(real(16, 8))
def statistics(a: Any) -> Any:
    return (
        jnp.quantile(a, 0.3, axis=0),
        jnp.median(a, axis=1),
        jnp.cov(a.T),
        jnp.corrcoef(a.T),
        jnp.nanmean(jnp.where(a > 0, a, jnp.nan), 0),
        jnp.histogram(a, bins=6)[0],
        jnp.ptp(a, 0),
        jnp.interp(a[:, 0], jnp.arange(8.0), a[0]),
        jnp.searchsorted(jnp.sort(a[:, 0]), a[:, 1]),
    )


@program(real(16, 8), whole(5, 16))
def segments(a: Any, i: Any) -> Any:
    reductions = (jax.ops.segment_sum, jax.ops.segment_max, jax.ops.segment_min)
    largest = jax.grad(lambda a: (jax.ops.segment_max(a, i, 5) ** 2).sum())(a)
    counts = jnp.unique(i, size=5, return_inverse=True, return_counts=True)
    return [one(a, i, 5) for one in reductions], largest, counts, jnp.nonzero(a > 0, size=64)


@program(real(16, 8))
def updates_in_places(a: Any) -> Any:
    return (
        a.at[jnp.array([1, 1])].add(1.0),
        a.at[2:5, ::2].mul(2),
        a.at[jnp.array([20])].set(1.0, mode="drop"),
        a.at[0].apply(jnp.sin),
        a.at[jnp.array([3, 3]), jnp.array([1, 2])].max(5.0),
        jnp.put_along_axis(a, jnp.argmax(a, 1)[:, None], 0.0, axis=1, inplace=False),
        jnp.fill_diagonal(a, 0.0, inplace=False),
    )


@program(real(16, 8))
def elements_from_elsewhere(a: Any) -> Any:
    return (
        a[:, jnp.array([[0, 1], [2, 3]])],
        a[jnp.array([0, 1]), jnp.array([2, 3])],
        jnp.take(a, jnp.array([1, 30]), axis=0, mode="fill"),
        jnp.take(a, jnp.array([1, 30]), axis=0, mode="wrap"),
        jnp.roll(a, (1, 2), (0, 1)),
        jnp.repeat(a, jnp.array([1, 2, 3, 2] * 4), axis=0, total_repeat_length=32),
        jnp.kron(a[:2], a[:3]),
        jnp.pad(a, 2, mode="reflect"),
        jnp.pad(a, 1, mode="wrap"),
        jax.vmap(lambda i: lax.dynamic_slice(a, (i, 0), (2, 3)))(jnp.arange(5)),
    )


@program(real(16, 8, 4), whole(8, 16))
def rows_that_look_up_in_themselves(a: Any, i: Any) -> Any:
    rows = jnp.arange(16)
    return (
        a[rows, i],
        a[rows[:, None], i[:, None], jnp.arange(4)],
        a.at[rows, i + 4].add(a[:, 0], mode="drop"),
    )


@program(real(32, 8), real(16, 8, seed=1))
def nearest_neighbours(a: Any, b: Any) -> Any:
    distances = ((b[:, None] - a[None]) ** 2).sum(-1)
    found, i = lax.top_k(-distances, 3)
    # Nobody reads what is approximate: the operator goes, its comparator stays.
    approximate = lax.approx_min_k(distances, 3)
    return found, i, a[i].mean(1), approximate[0].size


@program(real(1, 16, 16, 3), tolerance=1e-4)
def images(a: Any) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    places = [jnp.array([1.5, 2.5]), jnp.array([2.0, 3.0])]
    return (
        jax.image.resize(a, (1, 8, 8, 3), "bilinear"),
        jax.image.resize(a, (1, 32, 24, 3), "cubic"),
        jax.scipy.ndimage.map_coordinates(a[0, :, :, 0], places, 1),
        lax.conv_general_dilated_patches(a, (3, 3), (1, 1), "VALID", dimension_numbers=layout),
    )


@program(real(16, 8))
def roots_and_inverses(a: Any) -> Any:
    def improve(f: Any, y: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, y: y - 0.01 * f(y), y)

    cube = a.sum(0) ** 3
    root = lax.custom_root(
        lambda y: y**3 - cube, jnp.ones(8), improve, lambda g, y: y / g(jnp.ones_like(y))
    )
    return root, lax.custom_linear_solve(lambda v: 2 * v, a[0], lambda _, b: b / 2)
