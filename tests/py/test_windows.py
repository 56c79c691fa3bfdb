"""Convolutions and pooling, along spatial dimensions that are split: neighbours send their rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_random_plans
from jax import lax
from often import each_with_one_of
from programs import PROGRAMS, Program, real

import stablehlo_alpa
from stablehlo_alpa import ShardParallel, _core
from stablehlo_alpa.compiler.measures import Work
from stablehlo_alpa.frontend import trace

MESHES = {**test_random_plans.MESHES, "3": (("x", 3),)}
LAYOUTS = {1: ("NHC", "HIO", "NHC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def convolution(x: Any, k: Any, strides: Sequence[int], padding: Any, **options: Any) -> Any:
    layout = LAYOUTS[len(strides)]
    return lax.conv_general_dilated(x, k, strides, padding, dimension_numbers=layout, **options)


def with_gradients(fun: Any) -> Any:
    """Result of a function of two arrays, and the gradient of a sum of it to both, as f32."""

    def both(x: Any, k: Any) -> Any:
        def loss(x: Any, k: Any) -> tuple[Any, Any]:
            y = fun(x, k)
            weights = jnp.cos(jnp.arange(y.size, dtype=jnp.float32)).reshape(y.shape)
            return (y.astype(jnp.float32) * weights).sum(), y

        gradients, y = jax.grad(loss, (0, 1), has_aux=True)(x, k)
        return jax.tree.map(lambda one: one.astype(jnp.float32), (y, *gradients))

    return both


def cases() -> dict[str, Program]:
    """Batch 1 and few features: space is what is left to split."""
    found = {}

    def add(name: str, shape: Any, kernel: Any, strides: Any, padding: Any, **options: Any) -> None:
        dtype = options.pop("dtype", np.float32)
        tolerance = 3e-2 if dtype != np.float32 else 1e-4

        def fun(x: Any, k: Any) -> Any:
            return convolution(x, k, strides, padding, **options)

        args = (real(*shape, dtype=dtype), real(*kernel, seed=1, dtype=dtype))
        found[name] = Program(with_gradients(fun), args, tolerance)

    bf16 = jnp.bfloat16
    for size in (24, 25):
        add(f"same_1d_{size}", (1, size, 3), (3, 3, 5), (1,), "SAME")
        add(f"same_2d_{size}", (1, size, 8, 3), (3, 3, 3, 2), (1, 1), "SAME")
        add(f"even_kernel_{size}", (1, size, 3), (4, 3, 5), (1,), "SAME")
        add(f"dilated_{size}", (1, size, 3), (3, 3, 5), (1,), "SAME", rhs_dilation=(2,))
        add(f"strided_{size}", (1, size, 12, 3), (3, 3, 3, 2), (2, 2), "SAME")
        add(f"valid_{size}", (1, size, 3), (3, 3, 5), (1,), "VALID")
        add(f"pointwise_{size}", (1, size, 8, 3), (1, 1, 3, 5), (1, 1), "VALID")
        add(f"wide_window_{size}", (1, size, 3), (13, 3, 5), (1,), "SAME")
    add("strided_by_four", (1, 96, 3), (7, 3, 5), (4,), ((2, 1),))
    add("strided_odd_padding", (1, 48, 3), (5, 3, 4), (2,), ((3, 0),))
    add("strided_less_padding", (1, 48, 3), (3, 3, 4), (2,), ((0, 1),))
    add("strided_and_dilated", (1, 48, 3), (3, 3, 4), (2,), ((2, 1),), rhs_dilation=(2,))
    add("transposed", (1, 8, 8, 3), (3, 4, 3, 5), (1, 1), ((2, 2), (2, 2)), lhs_dilation=(3, 2))
    add("patches", (1, 32, 16, 3), (4, 4, 3, 5), (4, 4), "VALID")
    add("patches_with_gaps", (1, 32, 3), (2, 3, 5), (4,), "VALID")
    add("transposed", (1, 24, 8, 3), (3, 3, 3, 2), (1, 1), ((2, 1), (2, 1)), lhs_dilation=(2, 2))
    add("transposed_even", (1, 24, 3), (2, 3, 5), (1,), ((1, 1),), lhs_dilation=(2,))
    add(
        "both_dilated", (1, 24, 3), (3, 3, 5), (2,), ((3, 2),), lhs_dilation=(2,), rhs_dilation=(2,)
    )
    add("by_three_halves", (1, 48, 3), (3, 3, 5), (2,), ((2, 1),), lhs_dilation=(3,))
    add("negative_padding", (1, 24, 3), (5, 3, 5), (1,), ((-1, 5),))
    add("volumes", (1, 8, 6, 8, 2), (3, 3, 3, 2, 3), (1, 1, 2), "SAME")
    add("groups", (1, 24, 6), (3, 2, 9), (1,), "SAME", feature_group_count=3)
    add("depthwise", (1, 24, 8, 4), (3, 3, 1, 4), (2, 1), "SAME", feature_group_count=4)
    add("batch_groups", (4, 24, 3), (3, 3, 4), (1,), "SAME", batch_group_count=2)
    add("half_precision", (1, 24, 16, 3), (3, 3, 3, 2), (1, 2), "SAME", dtype=bf16)
    return found


def pools() -> dict[str, Program]:
    found = {}

    def add(name: str, shape: Any, pool: Any, *options: Any, dtype: Any = np.float32) -> None:
        def fun(x: Any, k: Any) -> Any:
            return pool(x * k, *options)

        args = (real(*shape, dtype=dtype), real(shape[-1], seed=1, dtype=dtype))
        found[name] = Program(with_gradients(fun), args, 3e-2 if dtype != np.float32 else 1e-4)

    for size in (24, 25):
        for kind, pool in (("max", nn.max_pool), ("average", nn.avg_pool)):
            add(f"{kind}_pool_{size}", (1, size, 16, 3), pool, (2, 2), (2, 2))
            add(f"{kind}_pool_overlapping_{size}", (1, size, 16, 3), pool, (3, 3), (2, 2), "SAME")
            add(f"{kind}_pool_dense_{size}", (1, size, 3), pool, (3,), (1,), "SAME")
    add("max_pool_wide", (1, 24, 3), nn.max_pool, (9,), (3,), "SAME")
    add("max_pool_half", (1, 24, 16, 3), nn.max_pool, (2, 2), (2, 2), dtype=jnp.bfloat16)
    add("average_pool_volumes", (1, 8, 8, 8, 2), nn.avg_pool, (2, 2, 2), (2, 2, 2))
    return found


def pools_of_convolution(x: Any, k: Any) -> Any:
    y = convolution(x, k, (1,), "SAME")
    return sum(pool(y, (3,), (1,), padding="SAME") for pool in (nn.max_pool, nn.avg_pool))


def smallest(x: Any) -> Any:
    """The minimum of windows, with rows of their own in the place of padding."""
    return lax.reduce_window(x, np.float32(0.25), lax.min, (3, 2), (1, 2), "SAME")


def places(x: Any) -> Any:
    """The greatest of each window and where it is."""

    def greater(a: Any, b: Any) -> Any:
        isFirst = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return tuple(jnp.where(isFirst, p, q) for p, q in zip(a, b, strict=True))

    numbers = jnp.arange(x.size, dtype=jnp.int32).reshape(x.shape)
    inits = (np.float32(-np.inf), np.int32(-1))
    return lax.reduce_window((x, numbers), inits, greater, (3, 3), (1, 1), "SAME")


def tied(*shape: int) -> Any:
    a = np.round(2 * real(*shape)).astype(np.float32)
    a[:, 3:9] = -np.inf
    a.reshape(-1)[5::11] = np.nan
    return a


def gradient_of_ties(x: Any) -> Any:
    def loss(x: Any, window: int) -> Any:
        y = nn.max_pool(x, (window, 2), (2, 2), "SAME")
        return (
            jnp.where(jnp.isfinite(y), y, 0) * jnp.cos(jnp.arange(y.size)).reshape(y.shape)
        ).sum()

    return jax.grad(loss)(x, 2), jax.grad(loss)(x, 3)


CASES = cases() | pools()
CASES["pools_of_convolution"] = Program(
    with_gradients(pools_of_convolution), (real(1, 25, 3), real(3, 3, 5)), 1e-4
)
CASES["smallest"] = Program(smallest, (real(24, 16),))
CASES["places"] = Program(places, (real(24, 16),))
CASES["gradient_of_ties"] = Program(gradient_of_ties, (tied(1, 24, 16, 2),))


def prepare(program: Program, devices: int) -> tuple[Any, str, list[str]]:
    """The traced function, its module with roles, sizes padded to the devices, and remarks."""
    traced = trace(program.fun, program.args, {})
    options = f"{traced.state_option} pad-to={devices}"
    pipeline = f"builtin.module(alpa-prepare-pipeline{{{options}}})"
    return traced, *_core.run_pipeline(traced.text, pipeline)


@pytest.mark.parametrize(("name", "mesh"), each_with_one_of(CASES, MESHES))
def test_random_plans_equal_jit(name: str, mesh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    devices = math.prod(size for _, size in MESHES[mesh])
    monkeypatch.setattr(test_random_plans, "prepare", lambda program: prepare(program, devices)[:2])
    monkeypatch.setitem(PROGRAMS, name, CASES[name])
    test_random_plans.check(name, MESHES[mesh], range(2))


PADDED = ("same_1d_25", "same_2d_25", "pools_of_convolution")


@pytest.mark.parametrize("name", PADDED)
def test_space_that_no_mesh_divides_is_padded(name: str) -> None:
    """With zeros behind the input of a convolution, with initial values behind that of pooling."""
    _, _, remarks = prepare(CASES[name], 8)
    assert any("a loop of 25 is padded to 32" in remark for remark in remarks)


@pytest.mark.parametrize("backend", ["shardy", "gspmd"])
@pytest.mark.parametrize("name", ["max_pool_overlapping_24", "average_pool_overlapping_24"])
def test_partitioners_of_xla_get_what_they_know(name: str, backend: str) -> None:
    """Padding that JAX has written out is written out for them."""
    program = CASES[name]
    method = ShardParallel(mesh_shape=(2, 4), backend=backend)
    results = stablehlo_alpa.parallelize(program.fun, method=method)(*program.args)
    expected = jax.jit(program.fun)(*program.args)
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-5, atol=1e-5)


def convolutions(kernels: Any, x: Any) -> Any:
    """A train step of four layers, the second of which halves the image."""

    def loss(kernels: Any) -> Any:
        h = x
        for stride, kernel in zip((1, 2, 1, 1), kernels, strict=True):
            h = jax.nn.relu(convolution(h, kernel, (stride, stride), "SAME"))
        return (h**2).mean()

    return jax.tree.map(lambda k, g: k - 0.1 * g, kernels, jax.grad(loss)(kernels))


def test_one_large_image_is_split_along_space() -> None:
    """Each device does an eighth of every convolution; rows are sent, and sums of kernels."""
    kernels = [jax.ShapeDtypeStruct((3, 3, 64, 64), np.float32)] * 4
    x = jax.ShapeDtypeStruct((1, 4096, 4096, 64), np.float32)
    step = stablehlo_alpa.parallelize(convolutions, cluster="dgx-a100:1")
    plan = step.plan(kernels, x)
    local = Work.of(plan.module_text("local"))
    planned = Work.of(plan.module_text("planned"))
    # Rows of neighbours are sent, not computed again.
    assert local.flops.sum() <= 1.05 * planned.flops.sum() / 8
    sent = {one.kind for one in plan.communication()}
    assert "collective_permute" in sent
    assert sum(one.bytes for one in plan.communication()) < 0.1 * 4096 * 4096 * 64 * 4 / 8


def test_micro_batches_are_no_blocks_of_a_window() -> None:
    """Rows of an image do not belong to one part of a batch; images do."""

    def step(k: Any, x: Any) -> Any:
        def loss(k: Any, x: Any) -> Any:
            y = nn.max_pool(convolution(x, k, (1,), "SAME"), (3,), (2,), padding="SAME")
            return (y**2).mean()

        return stablehlo_alpa.grad(loss)(k, x)

    k, x = real(3, 3, 5), real(4, 24, 3)
    method = ShardParallel(mesh_shape=(8,), num_micro_batches=2)
    split = stablehlo_alpa.parallelize(step, method=method, batch_argnums=1)
    np.testing.assert_allclose(split(k, x), jax.jit(step)(k, x), rtol=1e-5, atol=1e-5)
    rows = stablehlo_alpa.parallelize(
        lambda k, x: step(k, x.swapaxes(0, 1)), method=method, batch_argnums=1
    )
    x = x.swapaxes(0, 1)
    np.testing.assert_allclose(rows(k, x), jax.jit(step)(k, x.swapaxes(0, 1)), rtol=1e-5, atol=1e-5)
