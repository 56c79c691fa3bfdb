"""Where kernels may stand, and the devices that they are made for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime import LocalExecutable
from jax.sharding import Mesh, NamedSharding
from partitioned import HIDDEN, P, check_equal, check_split, draw, norm

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import preset_for
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.frontend import link_kernels, trace

# Around other things.

doubled = sa.kernel("i j -> i j")(lambda x: 2 * x)


def in_a_loop(x: Any) -> Any:
    return jax.lax.scan(lambda carry, _: (jnp.tanh(doubled(carry)), None), x, None, length=3)[0]


def computed_again(x: Any) -> Any:
    scale = np.ones((1, HIDDEN), "f")
    return jax.grad(lambda x: jax.checkpoint(lambda x: (norm(x, scale) ** 3).sum())(x))(x)


def in_a_region(x: Any) -> Any:
    return sa.partition(lambda x: jnp.tanh(doubled(x)) + 1)(x)


@pytest.mark.parametrize("fun", [in_a_loop, computed_again, in_a_region])
def test_kernels_stand_wherever_operators_do(fun: Callable[..., Any]) -> None:
    step = sa.parallelize(fun, method=sa.DataParallel(), batch_argnums=0)
    check_equal(fun, (draw(32, HIDDEN),), step)
    if fun is not in_a_region:
        check_split(step.plan(draw(32, HIDDEN)))


def test_two_regions_with_kernels_of_one_name_are_two() -> None:
    def region(factor: int) -> Any:
        made = sa.kernel("i j -> i j")(lambda x: factor * x)
        return sa.partition(lambda x: made(x) + 1)

    mesh = Mesh(np.array(jax.devices()), "x")
    sharding = NamedSharding(mesh, P("x"))
    x = draw(32, 8)
    for factor in (2, 3):
        found = jax.jit(region(factor), in_shardings=sharding)(x)
        np.testing.assert_allclose(np.asarray(found), factor * x + 1, rtol=1e-6, atol=1e-6)


def test_a_saved_plan_has_the_functions_of_blocks(tmp_path: Path) -> None:
    step = sa.parallelize(lambda x: doubled(x) + 1, method=sa.DataParallel(), batch_argnums=0)
    x = draw(16, 8)
    path = tmp_path / "doubled.plan"
    step.plan(x).save(path)
    (found,) = LocalExecutable(alpa_runtime.load(path), jax.devices())(x)
    np.testing.assert_array_equal(np.asarray(found), 2 * x + 1)


def test_kernels_are_those_of_the_devices_that_run_them() -> None:
    """A cluster that is described is taken for the devices at hand where there are as many."""

    def of_platform(x: Any) -> Any:
        return jax.lax.platform_dependent(x, cpu=lambda x: 2 * x, default=lambda x: 3 * x)

    made = sa.kernel("i j -> i j")(of_platform)
    cluster = sa.ClusterSpec(replace(preset_for("cpu"), platform="tpu"), 1, 8)
    x = draw(16, 8)
    step = sa.parallelize(
        lambda x: made(x), method=sa.DataParallel(), batch_argnums=0, cluster=cluster
    )
    np.testing.assert_array_equal(np.asarray(step(x)), 2 * x)
    plan = sa.parallelize(lambda x: made(x), cluster=cluster, devices=jax.devices()[:1]).plan(x)
    assert "3.000000e+00" in plan.module_text()


def for_tpu(q: Any, k: Any, v: Any) -> Any:
    from jax.experimental.pallas.ops.tpu import flash_attention

    return flash_attention.flash_attention(q, k, v, causal=True)


def for_gpu(q: Any, k: Any, v: Any) -> Any:
    from jax.experimental.pallas.ops.gpu import attention

    # Heads behind positions.
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    return attention.mha(q, k, v, segment_ids=None, causal=True).swapaxes(1, 2)


@pytest.mark.parametrize(
    ("platform", "fun", "target", "block"),
    [
        ("tpu", for_tpu, "tpu_custom_call", "2x2x512x128"),
        ("cuda", for_gpu, "__gpu$xla.gpu.triton", "2x512x2x128"),
    ],
)
def test_attention_by_pallas_is_lowered_for_blocks(
    platform: str, fun: Callable[..., Any], target: str, block: str
) -> None:
    attention = sa.kernel("b h s d, b h t d, b h t d -> b h s d", whole=("s", "t", "d"))(fun)
    value = jax.ShapeDtypeStruct((4, 8, 512, 128), jnp.bfloat16)
    cluster = sa.ClusterSpec(replace(preset_for("cpu"), platform=platform), 1, 8)
    method = sa.ManualSharding(mesh_shape=(2, 4), names=("x", "y"), in_specs={0: P("x", "y")})
    devices = jax.devices()[:1]
    step = sa.parallelize(
        lambda q, k, v: attention(q, k, v), method=method, cluster=cluster, devices=devices
    )
    plan = step.plan(value, value, value)
    assert plan.remarks == ()
    (call,) = [line for line in plan.module_text().splitlines() if f'"{target}"' in line]
    assert f"tensor<{block}xbf16>" in call


def test_a_program_without_its_kernels_says_so() -> None:
    program = trace(lambda x: doubled(x), (draw(16, 8),), {})
    with pytest.raises(ShardingError, match="calls the kernel <lambda>, which is not there"):
        link_kernels(program.text, (), (("x", 8),), "cpu")
