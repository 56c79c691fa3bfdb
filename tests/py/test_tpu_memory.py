"""What strategies for a TPU hold beside what XLA's compiler for it allocates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import test_tpu_kernels as kernels
from test_tpu_kernels import COMPILED

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, ClusterSpec, PipeshardParallel, Plan, UniformStages

MIB = 2**20
# Of `step`: XLA for TPU v5p of jax 0.10.2, libtpu 0.0.42.1.
COMPILED_MIB = 473


def loss(weights: Any, x: Any) -> Any:
    """Blocks that are computed again, each of two products that are activated."""
    for up, down in weights:

        @jax.checkpoint
        def block(x: Any, up: Any = up, down: Any = down) -> Any:
            for _ in range(2):
                y = jax.nn.gelu(x @ up)
                x = x + (y * y) @ down
            return x

        x = block(x)
    return jnp.mean(x.astype(jnp.float32) ** 2)


def step(weights: Any, x: Any) -> Any:
    gradient = stablehlo_alpa.grad(loss)(weights, x)
    return jax.tree.map(lambda w, g: w - 1e-3 * g.astype(w.dtype), weights, gradient)


def planned() -> Plan:
    device = ClusterSpec.preset("tpu-v5p:2x2x1").device
    method = PipeshardParallel(
        num_micro_batches=2,
        layers=AutoLayers(num_layers=2),
        stages=UniformStages(1, (4,)),
        schedule="1f1b",
    )
    planner = stablehlo_alpa.parallelize(
        step, method=method, cluster=ClusterSpec(device, 1, 4), donate_argnums=(0,)
    )
    up, down = (jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in ((1024, 4096), (4096, 1024)))
    return planner.plan([(up, down)] * 4, jax.ShapeDtypeStruct((65536, 1024), jnp.bfloat16))


def test_no_gradient_of_a_stage_is_put_off() -> None:
    """What it is made of would lie beside all that is computed before it: 568 MiB."""
    plan = planned()
    (stage,) = plan.stages
    assert stage.solution.memory_peak_bytes == pytest.approx(COMPILED_MIB * MIB, rel=0.05)
    assert plan.peak_bytes == pytest.approx(COMPILED_MIB * MIB, rel=0.05)


@pytest.mark.parametrize("target", [pytest.param("tpu-v5p", marks=COMPILED)])
def test_a_stage_holds_what_its_compiler_allocates(target: str, tmp_path: Path) -> None:
    plan = planned()
    (mesh,) = plan.check(target, cache=tmp_path).meshes
    (stage,) = plan.stages
    assert stage.solution.memory_peak_bytes == pytest.approx(mesh.compiled.peak_bytes, rel=0.05)


def peak_mib(function: Callable[..., Any], *args: Any) -> float:
    """On one chip."""
    cluster = ClusterSpec(ClusterSpec.preset("tpu-v5p:2x2x1").device, 1, 1)
    return stablehlo_alpa.parallelize(function, cluster=cluster).plan(*args).peak_bytes / MIB


def words(table: Any, ids: Any) -> Any:
    return jnp.take(table.astype(jnp.bfloat16), ids, axis=0)


def labels(x: Any, table: Any, ids: Any) -> Any:
    scores = jnp.einsum("bh,vh->bv", x, table)
    return scores, jnp.take_along_axis(scores.astype(jnp.float32), ids[:, None], 1)


def biased_labels(x: Any, table: Any, bias: Any, ids: Any) -> Any:
    scores = jnp.einsum("bh,vh->bv", x, table) + bias
    return jnp.take_along_axis(scores, ids[:, None], 1), jax.nn.logsumexp(scores, axis=-1)


def gated(x: Any, w: Any, gate: Any, left: Any, right: Any) -> Any:
    y = (x @ w) * gate
    return y @ left, y @ right


def f32(*sizes: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


def skipped(x: Any, w: Any, v: Any, up: Any, down: Any) -> Any:
    early, late = x @ w, x @ v
    late = late * jax.lax.rsqrt(jnp.mean(late * late, axis=-1, keepdims=True))
    left, right = jnp.split(early + late, 2, axis=-1)
    return (left @ up @ down) * right


TABLE = f32(32768, 1024)
NARROW_TABLE = jax.ShapeDtypeStruct((32768, 1024), jnp.bfloat16)
IDS = jax.ShapeDtypeStruct((4096,), jnp.int32)
TOKENS = jax.ShapeDtypeStruct((4096, 1024), jnp.bfloat16)
WIDE_TOKENS = jax.ShapeDtypeStruct((4096, 4096), jnp.bfloat16)
WEIGHTS = jax.ShapeDtypeStruct((16, 4096, 4096), jnp.bfloat16)


# XLA for TPU v5p of jax 0.10.2, libtpu 0.0.42.1, of the same functions under
# jax.jit.
@pytest.mark.parametrize(
    ("function", "args", "compiled_mib"),
    [
        (words, (TABLE, IDS), 200),
        (labels, (TOKENS, NARROW_TABLE, IDS), 840),
        (biased_labels, (f32(4096, 1024), TABLE, f32(32768), IDS), 656),
    ],
)
def test_places_are_looked_up_in_memory(
    function: Callable[..., Any], args: tuple[Any, ...], compiled_mib: float
) -> None:
    assert peak_mib(function, *args) == pytest.approx(compiled_mib, rel=0.05)


def test_a_product_is_not_stored_beside_what_its_kernel_makes_of_it() -> None:
    """The same compiler allocates 576 MiB; the product and the rounded result are 256 and 128."""
    wide, narrow = f32(8192, 8192), f32(8192, 1024)
    found = peak_mib(gated, narrow, f32(1024, 8192), wide, narrow, narrow)
    assert found == pytest.approx(576, rel=0.05)


def test_a_product_waits_for_what_its_kernel_reads_besides() -> None:
    """By the same compiler; the product and what is added to it were 128 MiB each."""
    args = (f32(8192, 1024), *[f32(1024, 4096)] * 2, f32(2048, 16384), f32(16384, 2048))
    assert peak_mib(skipped, *args) == pytest.approx(768, rel=0.05)


def sliced(x: Any, weights: Any, place: Any) -> Any:
    return x @ jnp.tanh(jax.lax.dynamic_slice(weights, (0, place), (4096, 4096)))


def carried(x: Any, weights: Any) -> Any:
    return jax.lax.scan(lambda y, w: (jnp.tanh(y @ w), None), x, weights)[0]


def joined(x: Any, left: Any, right: Any) -> Any:
    return x @ jnp.concatenate([left, right])


@pytest.mark.parametrize(
    ("function", "args", "compiled_mib"),
    [
        (sliced, (f32(4096, 4096), f32(4096, 8192), jax.ShapeDtypeStruct((), jnp.int32)), 256),
        (joined, (f32(4096, 8192), f32(4096, 4096), f32(4096, 4096)), 320),
        (carried, (WIDE_TOKENS, WEIGHTS), 608),
    ],
)
def test_products_read_slices_and_parts_where_they_lie(
    function: Callable[..., Any], args: tuple[Any, ...], compiled_mib: float
) -> None:
    """By the same compiler; a copy would be 64 or 128 MiB beside them."""
    assert peak_mib(function, *args) == pytest.approx(compiled_mib, rel=0.05)


def test_scores_whose_maxima_are_taken_are_stored_in_their_bits() -> None:
    """By the same compiler 864 MiB a chip; scores of 32 bits would be 256 MiB more."""
    plan = kernels.planned(kernels.gradients, *kernels.ATTENTION, chips=4)
    assert plan.peak_bytes == pytest.approx(864 * MIB, rel=0.05)
