"""Programs are lowered for what runs them, wherever they are traced."""

import jax
import jax.numpy as jnp
import pytest

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import ClusterSpec
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
