"""Plans that XLA's partitioners carry out: the numbers are those of our own lowering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec
from models import mlp
from test_models import MATRIX, QUICK, SLOW, Run, assert_trees_close, compare

import stablehlo_alpa
from stablehlo_alpa import ManualSharding, PipeshardParallel, ShardingError, ShardParallel

# A model of each kind with every run of the tests, all of them with `make test-matrix`.
OFTEN = [Run("gpt", (2, 4), {"layers": 1}), Run("lstm", (2, 4))]


def mark(run: Run) -> Any:
    return pytest.mark.slow if run in OFTEN else pytest.mark.matrix


@pytest.mark.parametrize(
    "run", [pytest.param(r, id=r.id, marks=mark(r)) for r in QUICK + SLOW + MATRIX]
)
def test_shardy_computes_the_same(run: Run) -> None:
    compare(run, "shardy")


@pytest.fixture
def gspmd() -> Iterator[None]:
    jax.config.update("jax_use_shardy_partitioner", False)
    yield
    jax.config.update("jax_use_shardy_partitioner", True)


@pytest.mark.usefixtures("gspmd")
@pytest.mark.parametrize(
    "run",
    [
        pytest.param(Run("mlp", (4, 2)), id="mlp-4x2", marks=pytest.mark.slow),
        *[pytest.param(run, id=run.id, marks=pytest.mark.matrix) for run in OFTEN],
    ],
)
def test_gspmd_computes_the_same(run: Run) -> None:
    compare(run, "gspmd")


def test_results_lie_where_the_plan_says() -> None:
    case = mlp.make()
    found = []
    for backend in ("alpa", "shardy"):
        method = ShardParallel(mesh_shape=(2, 4), backend=backend)
        step = stablehlo_alpa.parallelize(case.step, method=method)
        found.append(step(*case.args))
    assert_trees_close(found[1], found[0], 1e-5, "results")
    for a, b in zip(jax.tree.leaves(found[1]), jax.tree.leaves(found[0]), strict=True):
        assert a.sharding == b.sharding


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="backend is 'xla', must be one of alpa, shardy, gspmd"):
        ShardParallel(backend="xla")
    with pytest.raises(ValueError, match="a pipeline has several"):
        PipeshardParallel(backend="shardy")
    case = mlp.make()
    method = ShardParallel(mesh_shape=(2, 4), device="cpu")
    plan = stablehlo_alpa.parallelize(case.step, method=method).plan(*case.args)
    with pytest.raises(ShardingError, match="form is 'hlo'"):
        plan.export("hlo")
    assert "sdy.sharding_constraint" in plan.export()
    assert "mhlo.sharding" in plan.export("gspmd")
    for form in ("shardy", "gspmd"):
        assert "alpa." not in plan.export(form)


def remembering_little(w: Any, x: Any) -> tuple[jax.Array, jax.Array]:
    """A step with barriers of several values: of `jax.checkpoint`, and one at the end."""

    def loss(w: jax.Array) -> jax.Array:
        layer = jax.checkpoint(lambda y: jnp.tanh(y @ w))
        return jnp.sum(layer(layer(x)) ** 2)

    gradient = jax.grad(loss)(w)
    return jax.lax.optimization_barrier((w - gradient, gradient))


WEIGHTS, INPUTS = np.eye(16, dtype=np.float32) / 2, np.ones((8, 16), np.float32)


@pytest.mark.parametrize("form", ["shardy", "gspmd"])
def test_barriers_of_several_values_are_exported(form: str) -> None:
    method = ShardParallel(mesh_shape=(2, 4))
    plan = stablehlo_alpa.parallelize(remembering_little, method=method).plan(WEIGHTS, INPUTS)
    assert "optimization_barrier" in plan.export(form)


@pytest.mark.slow
def test_barriers_of_several_values_compute_the_same() -> None:
    method = ShardParallel(mesh_shape=(2, 4), backend="shardy")
    found = stablehlo_alpa.parallelize(remembering_little, method=method)(WEIGHTS, INPUTS)
    expected = jax.jit(remembering_little)(WEIGHTS, INPUTS)
    assert_trees_close(found, expected, 1e-5, "results")


def in_groups(image: Any, kernel: Any) -> Any:
    """A convolution in two groups of the batch, and one whose gradient is in eight."""
    spec = ("NHWC", "HWIO", "NHWC")

    def depthwise(kernel: jax.Array) -> jax.Array:
        out = jax.lax.conv_general_dilated(
            image, kernel[:, :, :1], (1, 1), "SAME", dimension_numbers=spec, feature_group_count=8
        )
        return jnp.sin(out).sum()

    grouped = jax.lax.conv_general_dilated(
        image, kernel, (1, 1), "SAME", dimension_numbers=spec, batch_group_count=2
    )
    return grouped, jax.grad(depthwise)(kernel)


@pytest.mark.parametrize("backend", ["shardy", "gspmd"])
def test_convolutions_in_groups_of_the_batch(backend: str) -> None:
    """XLA's partitioners compute something else of these where the groups are split."""
    rng = np.random.default_rng(0)
    image, kernel = (rng.normal(size=s).astype("f") for s in ((2, 8, 8, 8), (3, 3, 8, 16)))
    method = ShardParallel(mesh_shape=(2, 4), backend=backend)
    step = stablehlo_alpa.parallelize(in_groups, method=method)
    assert "batch_group_count = 2" in step.plan(image, kernel).module_text("planned")
    found, expected = step(image, kernel), jax.jit(in_groups)(image, kernel)
    assert_trees_close(found, expected, 1e-5, "results")


def blurred(image: Any, kernel: Any) -> Any:
    """The gradient of a kernel by an image."""

    def loss(kernel: jax.Array) -> jax.Array:
        out = jax.lax.conv_general_dilated(
            image, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return jnp.mean(jnp.sin(out))

    return jax.grad(loss)(kernel)


@pytest.mark.parametrize("backend", ["shardy", "gspmd"])
@pytest.mark.parametrize("axis", ["x", "y"])
def test_kernels_whose_gradients_sum_over_a_split_image(axis: str, backend: str) -> None:
    """XLA's partitioners add them up over the other axis of the mesh as well."""
    rng = np.random.default_rng(0)
    image, kernel = (rng.normal(size=s).astype("f") for s in ((6, 8, 8, 3), (3, 3, 3, 8)))
    method = ManualSharding(
        mesh_shape=(2, 4), in_specs={"image": PartitionSpec(None, axis)}, backend=backend
    )
    found = stablehlo_alpa.parallelize(blurred, method=method)(image, kernel)
    assert_trees_close(found, jax.jit(blurred)(image, kernel), 1e-5, "results")
