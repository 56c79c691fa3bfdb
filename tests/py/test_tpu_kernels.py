"""Plans for a TPU beside the kernels that XLA's compiler for it makes, where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import stablehlo_alpa
from stablehlo_alpa import ClusterSpec, Plan, WitnessError
from stablehlo_alpa.cluster import preset_for
from stablehlo_alpa.compiler import Work
from stablehlo_alpa.cost import operator_seconds, shaped_product_seconds
from stablehlo_alpa.cost.streams import streams_of
from stablehlo_alpa.witness import TARGETS
from stablehlo_alpa.witness.hlo_cycles import kernel_cycles

LOOP = """HloModule loop
%body (a: (s32[], f32[8])) -> (s32[], f32[8]) {
  %a = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%a), index=0
  %x = f32[8] get-tuple-element(%a), index=1
  %y = f32[8] fusion(%x), kind=kLoop, calls=%f, backend_config={"estimated_cycles":"100"}
  ROOT %t = (s32[], f32[8]) tuple(%i, %y)
}
%condition (a: (s32[], f32[8])) -> pred[] {
  %a = (s32[], f32[8]) parameter(0)
  ROOT %p = pred[] constant(true)
}
%f (x: f32[8]) -> f32[8] {
  ROOT %x = f32[8] parameter(0)
}
ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8] parameter(0)
  %begun = (f32[8], f32[8], u32[]) copy-start(%x)
  %ended = f32[8] copy-done(%begun)
  %zero = s32[] constant(0)
  %first = (s32[], f32[8]) tuple(%zero, %ended)
  %loop = (s32[], f32[8]) while(%first), condition=%condition, body=%body, KNOWN
  %last = f32[8] get-tuple-element(%loop), index=1
  ROOT %sum = f32[8] add(%last, %last), backend_config={"estimated_cycles":"11"}
}
""".replace("KNOWN", 'backend_config={"known_trip_count":{"n":"7"}}')


def is_installed() -> bool:
    try:
        return bool(TARGETS["tpu-v5p"].versions)
    except WitnessError:
        return False


COMPILED = (
    pytest.mark.slow,
    pytest.mark.skipif(not is_installed(), reason="no compiler"),
)


def planned(function: Callable[..., Any], *shapes: tuple[int, ...], chips: int = 1) -> Plan:
    """Data parallelism of arrays of bf16, on one chip or more."""
    device = ClusterSpec.preset("tpu-v5p:2x2x1").device
    method = stablehlo_alpa.DataParallel(mesh_shape=(chips, 1))
    args = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes]
    cluster = ClusterSpec(device, 1, chips)
    step = stablehlo_alpa.parallelize(function, method=method, cluster=cluster)
    return step.plan(*args)


def layer(x: Any, up: Any, bias: Any, down: Any) -> tuple[Any, Any]:
    y = jax.nn.gelu(x @ up + bias) @ down + x
    return y, y.astype(jnp.float32).sum(axis=-1)


def shares(x: Any, keys: Any) -> Any:
    scores = jnp.einsum("bnd,bmd->bnm", x, keys).astype(jnp.float32)
    return jax.nn.softmax(scores).astype(x.dtype)


def gradients(q: Any, k: Any, v: Any) -> Any:
    def loss(q: Any, k: Any, v: Any) -> Any:
        y = jnp.einsum("bnm,bmd->bnd", shares(q, k), v)
        return (y.astype(jnp.float32) ** 2).sum()

    return jax.grad(loss, argnums=(0, 1, 2))(q, k, v)


ATTENTION = ((32, 4096, 128),) * 3
LAYER = ((8192, 1024), (1024, 4096), (4096,), (4096, 1024))


def test_cycles_are_those_of_all_turns_and_of_no_copies() -> None:
    assert kernel_cycles(LOOP) == 7 * 100 + 11


def test_activations_and_sums_are_part_of_the_products_that_make_them() -> None:
    work = Work.of(planned(layer, *LAYER).module_text("local"), "tpu")
    assert {op for op, moved in zip(work.ops, work.bytes, strict=True) if moved} == {
        "stablehlo.dot_general"
    }
    # Each operand and result once; the activation goes from one product to the other.
    elements = 8192 * 1024 * 3 + 2 * 8192 * 4096 + 2 * 1024 * 4096 + 4096
    assert work.bytes.sum() == pytest.approx(2 * elements + 4 * 8192, rel=0.01)


@pytest.mark.parametrize("backend", ["tpu", "gpu"])
def test_a_product_that_makes_what_a_loop_carries_reads_a_copy(backend: str) -> None:
    """XLA writes it over no operand of a product; what is computed behind one for GPU, it does."""

    def loop(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda c, one: (c @ one, None), x, w)[0]

    work = Work.of(planned(loop, (256, 256), (4, 256, 256)).module_text("local"), backend)
    moved = sum(n for op, n in zip(work.ops, work.bytes, strict=True) if op == "copy")
    slices = 4 * 2 * 2 * 256 * 256 if backend == "gpu" else 0
    assert moved - slices == 4 * 2 * 2 * 256 * 256


def test_what_is_summed_up_moves_in_the_bits_that_it_has_in_memory() -> None:
    """Scores of 16 bits whose exponentials are taken in f32: XLA for v5p counts 0.421 ms."""
    work = Work.of(planned(shares, *((8, 4096, 128),) * 2).module_text("local"), "tpu")
    (row,) = np.flatnonzero((np.array(work.ops) == "stablehlo.reduce") & (work.bytes > 2**20))
    assert work.narrow_bytes[row] == pytest.approx(work.bytes[row], rel=0.01)
    rate = streams_of(preset_for("tpu-v5p")).shares["sum", "bf16"]
    seconds = work.narrow_bytes[row] / rate / preset_for("tpu-v5p").memory_bandwidth
    assert seconds == pytest.approx(421e-6, rel=0.05)


@pytest.mark.parametrize("device", ["tpu-v5p", "tpu-v5e", "tpu-v6e"])
def test_no_rule_of_gpus_prices_a_tpu(device: str) -> None:
    """Sorts and scatters stream, kernels are not launched, long sums are not split."""
    spec, one = preset_for(device), np.ones(3, np.int64)
    moved = np.full(3, 1e9)
    ops = ["stablehlo.sort", "stablehlo.scatter", "stablehlo.add"]
    found = operator_seconds(ops, ["bf16"] * 3, one, 0 * moved, moved, spec, kernels=moved)
    assert found == pytest.approx(found[0])
    assert 1 <= found[0] * spec.memory_bandwidth / 1e9 < 4
    shape = np.array([[1.0, 128, 128, 2.0**20]])
    (seconds,) = shaped_product_seconds(shape, np.zeros(1), "bf16", spec)
    assert seconds >= 2 * shape.prod() / spec.rate("bf16")


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        pytest.param(jnp.matmul, ((4096, 4096), (4096, 4096)), marks=COMPILED, id="product"),
        pytest.param(layer, LAYER, marks=COMPILED, id="layer"),
        pytest.param(
            lambda x, w: jax.lax.scan(lambda c, one: (jnp.tanh(c @ one), None), x, w)[0],
            ((4096, 4096), (16, 4096, 4096)),
            marks=COMPILED,
            id="loop",
        ),
    ],
)
def test_kernels_take_what_their_compiler_says(
    function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...], tmp_path: Path
) -> None:
    (mesh,) = planned(function, *shapes).check("tpu-v5p", cache=tmp_path).meshes
    assert mesh.planned.compute_s == pytest.approx(mesh.compiled.compute_s, rel=0.15)


def test_what_follows_a_product_takes_its_own_share_of_the_memory() -> None:
    """The sums of a softmax are slower than what is added, whichever product they follow."""
    plan = planned(shares, *ATTENTION[:2], chips=4)
    (stage,) = plan.stages
    assert stage.solution.compute_s == pytest.approx(stage.phases[0].compute_s, rel=0.03)


@pytest.mark.parametrize("chips", [pytest.param(4, marks=COMPILED)])
def test_strategies_take_what_their_compiler_says(chips: int, tmp_path: Path) -> None:
    plan = planned(gradients, *ATTENTION, chips=chips)
    (mesh,), (stage,) = plan.check("tpu-v5p", cache=tmp_path).meshes, plan.stages
    assert stage.solution.compute_s == pytest.approx(mesh.compiled.compute_s, rel=0.15)


@pytest.mark.parametrize("turns", [pytest.param(n, marks=COMPILED) for n in (4, 16)])
def test_all_turns_of_a_loop_are_counted(turns: int, tmp_path: Path) -> None:
    """XLA's ``optimal_seconds`` has one of them."""

    def loop(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda c, one: (jnp.tanh(c @ one), None), x, w)[0]

    plan = planned(loop, (1024, 1024), (turns, 1024, 1024))
    (mesh,) = plan.check("tpu-v5p", cache=tmp_path).meshes
    flops = 2 * 1024**3 * turns
    assert mesh.compiled.compute_s is not None
    assert mesh.compiled.optimal_s is not None
    assert mesh.compiled.compute_s > flops / preset_for("tpu-v5p").rate("bf16")
    assert mesh.compiled.optimal_s < mesh.compiled.compute_s
