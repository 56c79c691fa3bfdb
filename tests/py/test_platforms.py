"""Programs are lowered for what runs them, wherever they are traced."""

from dataclasses import replace

import alpa_runtime
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.errors import TraceError


def _drop(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x, 0.0)


_ARGS = (jax.ShapeDtypeStruct((2,), jnp.uint32), jax.ShapeDtypeStruct((64, 32), jnp.float32))


def _traced(cluster):
    return sa.parallelize(_drop, cluster=cluster).plan(*_ARGS).module_text("traced")


def test_a_cluster_that_is_not_there_gets_its_own_platforms_program():
    # Random bits are a rolled loop on CPUs alone.
    assert "stablehlo.while" in _traced(None)
    for name in ("p4d.24xlarge:2", "tpu-v5p:2x2x4"):
        assert "stablehlo.while" not in _traced(ClusterSpec.preset(name)), name


def test_a_cluster_as_large_as_what_is_there_is_run_here():
    cluster = ClusterSpec.preset("p4d.24xlarge:1")
    assert "stablehlo.while" in _traced(cluster)
    x = jnp.arange(64.0 * 32).reshape(64, 32)
    key = jax.random.PRNGKey(3)
    assert (sa.parallelize(_drop, cluster=cluster)(key, x) == _drop(key, x)).all()


def test_the_program_for_tpu_computes_what_jit_does(tmp_path):
    """Gradients in the order of their parameters, and results that are gathered."""

    def step(w, moment, x):
        gradient = jax.grad(lambda w: ((jnp.tanh(x @ w[0]) @ w[1]) ** 2).mean())(w)
        moment = jax.tree.map(lambda m, g: 0.9 * m + g, moment, gradient)
        return jax.tree.map(lambda w, m: w - 0.1 * m, w, moment), moment

    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    shapes = ((512, 256), (256, 128), (1024, 512))
    *w, x = (jax.random.normal(key, shape) for key, shape in zip(keys, shapes, strict=True))
    moment = tuple(map(jnp.ones_like, w))
    expected = jax.tree.leaves(jax.jit(step)(tuple(w), moment, x))
    cluster = ClusterSpec(replace(preset_for("cpu"), platform="tpu"), 1, 8)
    method = sa.Zero2Parallel(mesh_shape=(2, 4))
    planned = sa.parallelize(
        step, method=method, cluster=cluster, devices=jax.devices()[:1], batch_argnums=2
    )
    plan = planned.plan(tuple(w), moment, x)
    assert "reduce_precision" in plan.module_text()
    assert "stablehlo.transpose" not in plan.module_text()
    # What is run, not what is analysed.
    assert "sdy.sharding_constraint" in plan.runtime.programs[0].text
    assert "sdy.sharding_constraint" not in plan.module_text()
    plan.save(tmp_path / "step.plan")
    runtime = alpa_runtime.load(tmp_path / "step.plan")
    found = alpa_runtime.LocalExecutable(runtime, jax.devices())(*w, *moment, x)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-6)


def test_decompositions_are_the_platforms():
    def solve(x):
        return jnp.linalg.qr(x)[0]

    x = jax.ShapeDtypeStruct((16, 8, 8), jnp.float32)
    cluster = ClusterSpec.preset("p4d.24xlarge:2")
    assert "cusolver_geqrf" in sa.parallelize(solve, cluster=cluster).plan(x).module_text("traced")
    assert "lapack_sgeqrf" in sa.parallelize(solve).plan(x).module_text("traced")


def test_what_a_platform_cannot_do_is_refused_by_name():
    def schur(x):
        return jax.scipy.linalg.schur(x)[0]

    x = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    cluster = ClusterSpec.preset("p4d.24xlarge:2")
    with pytest.raises(TraceError, match=r"jax cannot lower schur for cuda: .*'schur' not found"):
        sa.parallelize(schur, cluster=cluster).plan(x)


def test_callbacks_are_lowered_for_the_platform_too():
    def talks(key, x):
        jax.debug.print("{}", x[0, 0])
        return _drop(key, x)

    plan = sa.parallelize(talks, cluster=ClusterSpec.preset("p4d.24xlarge:2")).plan(*_ARGS)
    text = plan.module_text("traced")
    assert "alpa_callback" in text
    assert "stablehlo.while" not in text


def test_a_cluster_file_keeps_the_platform(tmp_path):
    from dataclasses import replace

    preset = ClusterSpec.preset("p4d.24xlarge:2")
    mine = replace(preset, device=replace(preset.device, name="mine", platform="rocm"))
    mine.write(tmp_path / "mine.toml")
    assert ClusterSpec.read(tmp_path / "mine.toml").device.platform == "rocm"
