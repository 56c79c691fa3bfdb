"""``jax.lax.with_sharding_constraint`` in functions that are planned."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax._src.internal_test_util.export_back_compat_test_data import annotate_data_placement
from jax.experimental.shard_alike import shard_alike
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import stablehlo_alpa
from stablehlo_alpa import _core

AXES = ("data", "model")
NAMED = stablehlo_alpa.ManualSharding(in_specs={}, mesh_shape=(2, 4), names=AXES)


@pytest.fixture(scope="module")
def mesh() -> Mesh:
    return jax.make_mesh((2, 4), AXES, axis_types=(AxisType.Auto,) * 2)


def constrain(x: jax.Array, mesh: Mesh, *spec: Any) -> jax.Array:
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


def assert_equal(found: Any, wanted: Any) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def batch(*shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(0), shape)


def specs_of(names: list[str]) -> list[Any]:
    first, second = names
    one_axis = [(first,), (None, first), (None, None, first)]
    return [(), *one_axis, (first, second), (first, None, second), (AXES,), (None, AXES)]


SPECS = st.permutations(AXES).flatmap(lambda names: st.sampled_from(specs_of(names)))


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(specs=st.lists(SPECS, min_size=1, max_size=3))
def test_what_is_asked_for_is_what_becomes(specs: list[Any]) -> None:
    mesh = jax.make_mesh((2, 4), AXES, axis_types=(AxisType.Auto,) * 2)

    def asking(x: jax.Array) -> list[jax.Array]:
        results = []
        for spec in specs:
            x = constrain(jnp.tanh(x), mesh, *spec)
            results.append(x)
        return results

    x = batch(8, 16, 8)
    step = stablehlo_alpa.parallelize(asking, method=NAMED)
    found = step(x)
    assert_equal(found, jax.jit(asking)(x))
    for result, spec in zip(found, specs, strict=True):
        assert result.sharding.is_equivalent_to(NamedSharding(mesh, P(*spec)), 3), spec
    assert not step.plan(x).remarks


def test_open_dimensions_are_the_planners(mesh: Mesh) -> None:
    def asking(x: jax.Array) -> jax.Array:
        return constrain(jnp.tanh(x), mesh, "model", P.UNCONSTRAINED)

    step = stablehlo_alpa.parallelize(asking, method=NAMED)
    sharding = step(batch(8, 16)).sharding
    assert isinstance(sharding, NamedSharding)
    assert sharding.spec[0] == "model"


def test_what_no_sharding_keeps_is_remarked(mesh: Mesh) -> None:
    def asking(x: jax.Array) -> jax.Array:
        return constrain(x + 1, mesh, ("model", "data"))

    step = stablehlo_alpa.parallelize(asking, method=NAMED)
    x = batch(8, 16)
    assert_equal(step(x), x + 1)
    (remark,) = step.plan(x).remarks
    assert '[["model", "data"], []] is ignored: no sharding of' in remark


@pytest.mark.parametrize("backend", ["alpa", "shardy"])
def test_gradients_and_loops(backend: str, mesh: Mesh) -> None:
    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
            return constrain(jnp.tanh(x @ w), mesh, "data", "model"), None

        return jnp.mean(jax.lax.scan(layer, x, w)[0] ** 2)

    w, x = 0.1 * batch(3, 32, 32), batch(16, 32)
    method = stablehlo_alpa.ManualSharding(
        in_specs={}, mesh_shape=(2, 4), names=AXES, backend=backend
    )
    step = stablehlo_alpa.parallelize(jax.value_and_grad(loss), method=method)
    assert_equal(step(w, x), jax.jit(jax.value_and_grad(loss))(w, x))
    assert step.plan(w, x).module_text("merged").count("alpa.constrain") == 2


def test_constraints_of_another_mesh_change_nothing(mesh: Mesh) -> None:
    def function(is_asking: bool) -> Any:
        def apply(w: jax.Array, x: jax.Array) -> jax.Array:
            y = x @ w
            return jnp.sum(jnp.tanh(constrain(y, mesh, "data", "model") if is_asking else y) ** 2)

        return stablehlo_alpa.parallelize(apply)

    w, x = batch(512, 512), batch(1024, 512)
    asking, silent = function(True), function(False)
    costs = [one.plan(w, x).step_time_s for one in (asking, silent)]
    assert costs[0] == costs[1]
    assert "1 sharding constraint is ignored" in asking.plan(w, x).remarks[0]
    assert "has other axes than data, model" in asking.plan(w, x).remarks[0]
    assert_equal(asking(w, x), silent(w, x))


@pytest.mark.slow
def test_stages_of_a_pipeline_leave_them_out(mesh: Mesh) -> None:
    def step(w: list[jax.Array], x: jax.Array) -> Any:
        def loss(w: list[jax.Array], x: jax.Array) -> jax.Array:
            for one in w:
                x = constrain(jnp.tanh(x @ one), mesh, "data")
            return jnp.mean(x**2)

        value, gradients = stablehlo_alpa.value_and_grad(loss)(w, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, w, gradients), value

    method = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=2,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
    )
    w, x = [0.1 * batch(32, 32)] * 4, batch(16, 32)
    parallel = stablehlo_alpa.parallelize(step, method=method)
    assert_equal(parallel(w, x), jax.jit(step)(w, x))


def test_a_partitioned_function_keeps_them(mesh: Mesh) -> None:
    @stablehlo_alpa.partition
    def block(w: jax.Array, x: jax.Array) -> jax.Array:
        return constrain(jnp.tanh(constrain(x, mesh, "data") @ w), mesh, "data", "model")

    w, x = batch(32, 64), batch(16, 32)
    rows = NamedSharding(mesh, P("data"))
    both = NamedSharding(mesh, P("data", "model"))
    step = jax.jit(block, in_shardings=(None, rows), out_shardings=both)
    assert_equal(step(w, x), jnp.tanh(x @ w))
    text = step.lower(w, x).compile().as_text()
    assert text
    assert "all-gather" not in text


def test_shardings_for_a_jit_follow_them(mesh: Mesh) -> None:
    def step(w: jax.Array, x: jax.Array) -> jax.Array:
        return constrain(x @ w, mesh, None, "model")

    _, out = stablehlo_alpa.shardings(step, mesh, batch(32, 64), batch(16, 32))
    assert out.is_equivalent_to(NamedSharding(mesh, P(None, "model")), 2)


def test_the_mesh_may_be_the_current_one(mesh: Mesh) -> None:
    def apply(x: jax.Array) -> jax.Array:
        return jax.lax.with_sharding_constraint(x + 1, P("model"))

    with jax.set_mesh(mesh):
        found = stablehlo_alpa.parallelize(apply, method=NAMED)(batch(16, 32))
    assert found.sharding.is_equivalent_to(NamedSharding(mesh, P("model")), 2)


def test_what_jax_itself_adds_is_not_remarked(mesh: Mesh) -> None:
    def drawing(key: jax.Array, x: jax.Array) -> jax.Array:
        first, second = jax.random.split(key)
        return jax.random.permutation(first, x) + jax.random.normal(second, x.shape)

    def asking(key: jax.Array, x: jax.Array) -> jax.Array:
        return drawing(key, constrain(x, mesh, "data"))

    key, x = jax.random.key(1), batch(8, 16)
    assert_equal(stablehlo_alpa.parallelize(drawing)(key, x), jax.jit(drawing)(key, x))
    silent = stablehlo_alpa.parallelize(drawing).plan(key, x).remarks
    assert not [remark for remark in silent if "constraint" in remark]
    asked = stablehlo_alpa.parallelize(asking).plan(key, x).remarks
    (remark,) = [remark for remark in asked if "constraint" in remark]
    assert "1 sharding constraint is ignored" in remark


def test_values_that_are_to_be_split_alike_stay_split() -> None:
    def alike(x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.tanh(shard_alike(x, y)[0])

    method = stablehlo_alpa.DataParallel(mesh_shape=(8,))
    step = stablehlo_alpa.parallelize(alike, method=method, batch_argnums=(0, 1))
    x = batch(16, 32)
    assert_equal(step(x, x), jnp.tanh(x))
    assert "tensor<2x32xf32>" in step.plan(x, x).module_text("local")
    (remark,) = step.plan(x, x).remarks
    assert "sharding groups of 2 values are ignored" in remark


def test_a_module_that_jax_has_stored_keeps_them() -> None:
    # Two arguments and a result on a mesh with the axis `a`.
    stored: Any = annotate_data_placement.data_2025_04_07_cuda["shardy"]
    text = stored["mlir_module_text"]
    assert "xla.sdy.FuncResultSharding" in text
    merged, _ = _core.run_pipeline(text, "builtin.module(alpa-prepare-pipeline{axes=a})")
    assert merged.count("alpa.constrain") == 3
    assert "xla.sdy" not in merged
