"""What per-device programs do: shapes of products, slices in loops, kernels, and what may wait."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("stablehlo_alpa._core")

from attention_programs import library, with_gradients

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import Overlap, preset_for
from stablehlo_alpa.compiler import Traffic, Work
from stablehlo_alpa.cost import (
    CollectiveKind,
    Products,
    added_seconds,
    collective_seconds,
    operator_seconds,
    product_seconds,
    shaped_product_seconds,
)
from stablehlo_alpa.cost.kinds import Beside
from stablehlo_alpa.cost.product import ProductForm, padded_sums, ratios_of
from stablehlo_alpa.cost.waves import Kernels, Split, Waves
from stablehlo_alpa.planning.lowering import work_seconds


def shape(*sizes: int) -> Any:
    return jax.ShapeDtypeStruct(sizes, "float32")


def planned(fun: Any, *args: Any, **options: Any) -> Any:
    cluster = options.pop("cluster", "dgx-a100:1")
    method = sa.ShardParallel(**options)
    return sa.parallelize(fun, method=method, cluster=cluster).plan(*args)


def work_of(fun: Any, *args: Any) -> Work:
    """Of a program that nothing splits."""
    plan = planned(fun, *args, cluster=sa.ClusterSpec(preset_for("a100"), 1, 1))
    return Work.of(plan.module_text())


def products_of(work: Work) -> list[tuple[list[int], float]]:
    rows = np.flatnonzero(work.shape[:, 0])
    return [(work.shape[i].astype(int).tolist(), float(work.runs[i])) for i in rows]


def test_shapes_of_products() -> None:
    found = products_of(work_of(lambda x, w: x @ w, shape(48, 32), shape(32, 80)))
    assert found == [([1, 48, 80, 32], 1.0)]
    einsum = work_of(lambda x, w: jnp.einsum("bqad,bkad->baqk", x, w), *[shape(2, 16, 3, 8)] * 2)
    assert products_of(einsum) == [([6, 16, 16, 8], 1.0)]


def test_a_convolution_is_the_product_it_is_computed_as() -> None:
    def convolved(x: Any, w: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=numbers)

    work = work_of(convolved, shape(8, 16, 16, 32), shape(3, 3, 32, 64))
    assert products_of(work) == [([1, 8 * 14 * 14, 64, 9 * 32], 1.0)]


def test_products_of_loops_run_as_often() -> None:
    def looped(x: Any, w: Any) -> Any:
        return jax.lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x, w)[0]

    work = work_of(looped, shape(16, 32), shape(5, 32, 32))
    assert products_of(work) == [([1, 16, 32, 32], 5.0)]


def test_loops_read_slices_and_not_stacks() -> None:
    def looped(x: Any, stack: Any) -> Any:
        return jax.lax.scan(lambda c, part: (jnp.tanh(c * part + part), None), x, stack)[0]

    one = 256 * 1024 * 4
    for length in (4, 8):
        work = work_of(looped, shape(256, 1024), shape(length, 256, 1024))
        # Per iteration what is carried is read and written, and a slice is read.
        assert 3 * length * one <= work.bytes.sum() <= 4.5 * length * one


def test_strategies_know_the_shapes_of_local_products() -> None:
    plan = planned(lambda x, w: x @ w, shape(512, 256), shape(256, 1024), mesh_shape=(2, 4))
    stage = plan.stages[0]
    graph, choice = stage.priced.graph, stage.solution.choice
    (node,) = np.flatnonzero(graph.product_runs)
    rows = graph.product_rows
    assert graph.product_shape.prod(axis=1) * 2 == pytest.approx(graph.strategy_flops[rows])
    chosen = graph.product_shape[int(choice[node])]
    assert products_of(Work.of(plan.module_text()))[0][0] == chosen.astype(int).tolist()


def test_what_follows_a_product_does_not_say_what_it_runs_in() -> None:
    def step(x: Any, w: Any) -> Any:
        return jnp.tanh((x @ w).astype(jnp.float32))

    half = [jax.ShapeDtypeStruct((256, 256), "bfloat16")] * 2
    graph = planned(step, *half, mesh_shape=(8,)).stages[0].priced.graph
    assert graph.node_dtype[int(np.flatnonzero(graph.product_runs)[0])] == "bf16"


def test_what_follows_a_scatter_does_not_wait_for_memory_as_it_does() -> None:
    """A gradient of few rows in 16 bits is written whole in 32."""

    def step(table: Any, rows: Any, slopes: Any) -> Any:
        return 0.1 * jnp.zeros_like(table).at[rows].add(slopes).astype(jnp.float32)

    table = jax.ShapeDtypeStruct((51200, 2560), "float16")
    rows, slopes = jax.ShapeDtypeStruct((2048,), "int32"), jax.ShapeDtypeStruct((2048, 2560), "f2")
    one = sa.ClusterSpec(preset_for("v100-16gb"), 1, 1)
    plan = planned(step, table, rows, slopes, cluster=one)
    lowered_s = work_seconds(Work.of(plan.module_text("local")), one.device)
    graph_s = plan.stages[0].priced.compute_s.sum()
    assert plan.stages[0].priced.graph.num_strategies.max() == 1
    assert graph_s == pytest.approx(lowered_s, rel=0.05)


# Kernels and bytes of what follows are those of the programs that XLA's compiler of jax 0.10.2
# makes for H100.


def test_each_parameter_is_updated_by_a_kernel() -> None:
    def update(params: Any, slopes: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * jnp.tanh(g), params, slopes)

    trees = [{str(i): shape(64, 64) for i in range(5)} for _ in range(2)]
    assert work_of(update, *trees).kernels.sum() == 5


@pytest.mark.parametrize(
    ("sizes", "axis", "kernels"),
    [
        ((4096, 1024), 0, 1),
        ((4097, 1024), 0, 2),
        ((1024, 16384), 1, 1),
        ((1024, 65536), 1, 2),
        ((1024, 64), None, 2),
    ],
)
def test_long_sums_are_two_kernels(sizes: tuple[int, ...], axis: int | None, kernels: int) -> None:
    assert work_of(lambda x: x.sum(axis), shape(*sizes)).kernels.sum() == kernels


def copied_bytes(work: Work) -> float:
    copies = ("copy", "stablehlo.slice")
    return float(work.bytes[[op in copies for op in work.ops]].sum())


def test_heads_are_put_in_order_for_products() -> None:
    batch, length, heads, width = 8, 1024, 16, 64

    def attend(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        q, k, v = (jnp.einsum("btm,mhd->bthd", x, w) for w in (wq, wk, wv))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
        return jnp.einsum("bthd,hdm->btm", mixed, wo)

    model = heads * width
    weight = shape(model, heads, width)
    work = work_of(attend, shape(batch, length, model), *[weight] * 3, shape(heads, width, model))
    # Queries, keys, values, and what is mixed of them, each written and read.
    assert copied_bytes(work) == 4 * 2 * batch * length * model * 4


def test_matrices_are_read_as_they_lie() -> None:
    def mlp(x: Any, w: Any, v: Any) -> Any:
        return ((x @ w).reshape(8, 4, 16, 64) * 2).reshape(32, 1024) @ v.T

    assert copied_bytes(work_of(mlp, shape(32, 256), shape(256, 1024), shape(128, 1024))) == 0

    def batched(x: Any, w: Any, v: Any) -> Any:
        return jnp.einsum("bmk,bkn->bmn", jnp.einsum("bmh,bhk->bmk", x, w), v)

    sizes = (8, 32, 32)
    assert copied_bytes(work_of(batched, shape(*sizes), shape(*sizes), shape(*sizes))) == 0


def test_products_read_copies_of_slices() -> None:
    def halves(x: Any, w: Any, v: Any) -> Any:
        wide = x @ w
        return wide[:, :512] @ v + wide[:, 512:] @ v

    work = work_of(halves, shape(4096, 256), shape(256, 1024), shape(512, 128))
    assert copied_bytes(work) == 2 * 2 * 4096 * 512 * 4


def test_loops_fill_and_write_what_they_stack() -> None:
    length, one = 8, 512 * 1024 * 4

    def looped(x: Any) -> Any:
        def body(c: Any, _: Any) -> tuple[Any, Any]:
            c = jnp.tanh(c) * 2
            return c, c

        return jax.lax.scan(body, x, None, length)

    work = work_of(looped, shape(512, 1024))
    # What is carried is read and written, and read and written again for its place in the stack,
    # which zeros were written to before.
    assert work.bytes.sum() == pytest.approx((4 + 1) * length * one, rel=0.05)


# Seconds.


def test_a_product_of_runs_takes_as_many_times_as_long() -> None:
    device = preset_for("h100")
    sizes = np.array([[1.0, 256, 256, 256]])
    moved = np.array([3 * 256 * 256 * 2.0])
    (each,) = shaped_product_seconds(sizes, moved, "bf16", device)
    usual = np.array([ProductForm.USUAL])
    products = Products(np.array([0]), sizes, np.array([7.0]), 7 * moved, usual, np.ones(1))
    found = operator_seconds(
        ["stablehlo.dot_general"],
        ["bf16"],
        np.ones(1, int),
        7 * 2 * sizes.prod(axis=1),
        7 * moved,
        device,
        products,
        np.array([7.0]),
    )
    assert found[0] == pytest.approx(7 * each)


def test_forms_of_products_have_prices_of_their_own() -> None:
    """The gradient of a parameter sums over the slower dimensions of both operands."""
    x, w, y = shape(4096, 1024), shape(1024, 2048), shape(4096, 2048)
    forms = {
        "x w": (lambda x, w, y: x @ w, ProductForm.USUAL),
        "y w'": (lambda x, w, y: y @ w.T, ProductForm.USUAL),
        "x' y": (lambda x, w, y: x.T @ y, ProductForm.SUMS_IN_FRONT),
    }
    for fun, form in forms.values():
        work = work_of(fun, x, w, y)
        assert work.form[work.shape[:, 0] > 0].tolist() == [form]


# Windows, strides and groups of a convolution, and its form and that of its kernel's gradient.
CONVOLUTIONS = {
    "windows": (3, 1, 1, ProductForm.WINDOWED, ProductForm.WINDOWED_KERNEL_GRADIENT),
    "positions": (1, 1, 1, ProductForm.CONVOLUTION, ProductForm.KERNEL_GRADIENT),
    "strides": (3, 2, 1, ProductForm.STRIDED, ProductForm.STRIDED_KERNEL_GRADIENT),
    "groups": (3, 1, 4, ProductForm.CONVOLUTION, ProductForm.KERNEL_GRADIENT),
}


def convolved(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
    """The sum of a convolution."""
    numbers, strides = ("NHWC", "HWIO", "NHWC"), (stride, stride)
    return jax.lax.conv_general_dilated(
        x, w, strides, "SAME", dimension_numbers=numbers, feature_group_count=groups
    ).sum()


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_forms_of_convolutions(name: str) -> None:
    """The gradient of its input is a convolution of its own form."""
    window, stride, groups, form, gradient = CONVOLUTIONS[name]
    image, kernel = shape(8, 16, 16, 32), shape(window, window, 32 // groups, 64)
    one = functools.partial(convolved, stride=stride, groups=groups)
    work = work_of(jax.value_and_grad(one, (0, 1)), image, kernel)
    found = sorted(work.form[work.shape[:, 0] > 0].tolist())
    assert found == sorted([form, form, gradient])


@pytest.mark.parametrize(("window", "stride"), [(3, 1), (7, 2), (8, 8)])
def test_few_channels_are_forms_of_their_own(window: int, stride: int) -> None:
    """Windows, strided ones, and patches, whose gradients' windows are small with large holes."""
    image, kernel = shape(8, 64, 64, 3), shape(window, window, 3, 64)
    one = functools.partial(convolved, stride=stride)
    work = work_of(jax.value_and_grad(one, 1), image, kernel)
    products = work.shape[:, 0] > 0
    forms = [ProductForm.FEW_CHANNELS, ProductForm.FEW_CHANNELS_KERNEL_GRADIENT]
    assert sorted(work.form[products].tolist()) == forms
    assert work.padding[products].tolist() == [8 / 3, 8 / 3]


def test_kernels_of_gpus_take_channels_in_eights() -> None:
    """In types that matrix units multiply; splitting them over devices saves nothing."""
    shapes, padding = np.array([[1.0, 4096, 64, 27], [1.0, 4096, 64, 288]]), np.array([8 / 3, 1])
    for name, dtype, sums in (("h100", "f32", 72), ("v100", "f16", 72), ("v100", "f32", 27)):
        found = padded_sums(shapes, padding, dtype, preset_for(name))
        assert found[:, 3].tolist() == [pytest.approx(sums), 288]
    assert padded_sums(shapes, padding, "bf16", preset_for("tpu-v5p")) is shapes
    plan = planned(convolved, shape(8, 16, 16, 4), shape(3, 3, 4, 64), mesh_shape=(2, 4))
    graph = plan.stages[0].priced.graph
    assert {2, 4} < set(graph.product_padding.tolist())
    assert graph.product_shape[:, 3] * graph.product_padding == pytest.approx(72)


def test_types_without_units_of_their_own_are_priced_by_their_rate() -> None:
    """V100 has units for f16, and computes bf16 at the rate of f32."""
    device = preset_for("v100")
    sizes, moved = np.array([[1.0, 4096, 4096, 4096]]), np.array([1e8])
    (half,), (brain,), (single,) = (
        shaped_product_seconds(sizes, moved, dtype, device) for dtype in ("f16", "bf16", "f32")
    )
    assert brain == single
    assert 5 * half < single


def test_forms_are_slower_where_they_were_measured_to_be() -> None:
    device = preset_for("h100")
    sizes, moved = np.array([[1.0, 8192, 4096, 4096]]), np.array([3e8])
    forms = np.array([ProductForm.SUMS_IN_FRONT])
    (usual,) = shaped_product_seconds(sizes, moved, "f32", device)
    (front,) = shaped_product_seconds(sizes, moved, "f32", device, forms)
    assert front == pytest.approx(usual * ratios_of(device)["f32"][ProductForm.SUMS_IN_FRONT])
    assert front > 1.2 * usual
    other = preset_for("a100-80gb")
    assert shaped_product_seconds(sizes, moved, "f32", other, forms) == pytest.approx(
        shaped_product_seconds(sizes, moved, "f32", other)
    )


def test_devices_that_were_not_measured_by_shapes_take_whole_waves() -> None:
    device = preset_for("a100-80gb")
    tile = 64
    full = np.array([[1.0, tile * device.units, tile, 4096]])
    more = full + np.array([0, tile, 0, 0])
    nothing = np.zeros(1)
    first, second = (
        shaped_product_seconds(one, nothing, "bf16", device)[0] for one in (full, more)
    )
    launch = product_seconds(nothing, nothing, "bf16", device)[0]
    assert second - launch == pytest.approx(2 * (first - launch))


def test_long_sums_are_split_over_units_that_would_have_no_tile() -> None:
    units, depth_s = 100, 1e-9
    split = Split(2048.0, 64.0, seconds=1e-6)
    waves = Waves(units, ((128, 128),), (depth_s,), 0.0, 0.0, 0.0, 0.0, split)
    few, many, short = [1, 128, 128, 8192], [1, 128, 128 * units, 8192], [1, 128, 128, 1024]
    seconds = waves(np.array([few, many, short], float), np.zeros(3))
    assert seconds == pytest.approx([8192 * depth_s / 64 + 1e-6, 8192 * depth_s, 1024 * depth_s])


def test_batches_have_kernels_of_their_own() -> None:
    single, batched = (
        Waves(100, ((128, 128),), (depth_s,), 0.0, 0.0, 0.0, 0.0) for depth_s in (1e-9, 2e-9)
    )
    shapes = np.array([[1, 128, 128, 512], [4, 128, 128, 512]], float)
    found = Kernels(single, batched)(shapes, np.zeros(2))
    assert found == pytest.approx([512e-9, 1024e-9])


def test_products_that_memory_binds_are_no_faster_than_memory() -> None:
    device = preset_for("h100")
    scores = np.array([[128.0, 2048, 2048, 64]])
    moved = np.array([128 * 2048 * 2048 * 2.0])
    (seconds,) = shaped_product_seconds(scores, moved, "bf16", device)
    assert seconds >= moved[0] / device.memory_bandwidth


# What may run beside computation.


def trained(params: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        return jnp.mean(jnp.square(jnp.tanh(x @ params["up"]) @ params["down"]))

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


ARGS = ({"up": shape(1024, 4096), "down": shape(4096, 1024)}, shape(32768, 1024))


def beside(plan: Any) -> set[int]:
    traffic = Traffic.of(plan.module_text("planned"))
    return set(traffic.beside[traffic.bytes > 2**20].tolist())


def planned_with(method: Any, overlap: Overlap | None, fun: Any = trained, args: Any = ARGS) -> Any:
    cluster = sa.ClusterSpec(preset_for("a100-80gb"), 1, 8, overlap=overlap)
    return sa.parallelize(fun, method=method, donate_argnums=0, cluster=cluster).plan(*args)


def test_gradients_and_parameters_may_wait() -> None:
    assert beside(planned_with(sa.DataParallel(), None)) == {Beside.GRADIENTS}
    whole = {Beside.GRADIENTS, Beside.PARAMETERS}
    assert beside(planned_with(sa.Zero3Parallel(), None)) == whole


def test_activations_and_results_may_not_wait() -> None:
    plan = planned_with(sa.MegatronParallel(tensor=8), None)
    assert beside(plan) == {Beside.NOTHING}

    def evaluate(params: Any, x: Any) -> Any:
        return jnp.tanh(x @ params["up"]) @ params["down"]

    assert beside(planned_with(sa.MegatronParallel(tensor=8), None, evaluate)) == {Beside.NOTHING}


def test_overlap_takes_off_what_it_says() -> None:
    overlap = Overlap(gradients=0.5, parameters=0.5, slowdown=1.25)
    plain, hidden = (planned_with(sa.DataParallel(), one) for one in (None, overlap))
    compute = plain.costs[0].compute_s
    assert hidden.costs[0].compute_s == pytest.approx(compute)
    # All that is sent may wait: half of it adds a fifth of its seconds, half of it all.
    sent = plain.step_time_s - compute
    assert hidden.step_time_s - compute == pytest.approx(0.6 * sent, rel=1e-2)


def test_small_collectives_that_may_wait_are_sent_together() -> None:
    mesh = sa.ClusterSpec.preset("dgx-a100:1").logical_mesh((8,))
    device = mesh.cluster.device
    few, many = np.full(1, 2.0**25), np.full(32, 2.0**20)
    kind = CollectiveKind.ALL_REDUCE

    def total(sizes: Any, what: Beside) -> float:
        ones = np.ones(len(sizes), int)
        kinds, axes = ones * int(kind), ones
        return float(added_seconds(kinds, axes, sizes, ones * int(what), mesh, device).sum())

    together = total(many, Beside.GRADIENTS)
    assert together == pytest.approx(total(few, Beside.GRADIENTS), rel=0.1)
    apart = float(
        collective_seconds(np.full(32, int(kind)), np.ones(32, int), many, mesh, device).sum()
    )
    assert total(many, Beside.NOTHING) == apart > 2 * together


def test_overlap_is_checked_and_written(tmp_path: Any) -> None:
    with pytest.raises(sa.MeshError, match=r"overlap: gradients must be in \[0, 1\], got 2"):
        Overlap(gradients=2)
    with pytest.raises(sa.MeshError, match=r"overlap: slowdown must be >= 1, got 0.5"):
        Overlap(slowdown=0.5)
    cluster = sa.ClusterSpec(preset_for("a100-80gb"), 2, 8, overlap=Overlap(parameters=0.25))
    cluster.write(tmp_path / "here.toml")
    assert sa.ClusterSpec.read(tmp_path / "here.toml") == cluster
    text = (tmp_path / "here.toml").read_text().replace("slowdown", "speedup")
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(sa.MeshError, match=r"overlap has unknown keys \['speedup'\]"):
        sa.ClusterSpec.read(tmp_path / "bad.toml")


def plan_attention(is_causal: bool, length: int, examples: int, heads: tuple[int, int]) -> sa.Plan:
    of_queries, of_keys = heads
    arrays = [
        jax.ShapeDtypeStruct((examples, length, count, 128), jnp.bfloat16)
        for count in (of_queries, of_keys, of_keys)
    ]
    # A score matrix that is whole does not fit beside the others.
    step = sa.parallelize(
        with_gradients(library(is_causal=is_causal)),
        method=sa.ShardParallel(attention_keys=1, memory_budget=2 * 2**30),
        cluster="dgx-h100",
    )
    plan = step.plan(*arrays)
    assert any("in blocks of keys" in remark for remark in plan.remarks)
    return plan


def assert_priced_as_lowered(plan: sa.Plan, tolerance: float = 0.15) -> None:
    stage = plan.stages[0]
    local = Work.of(plan.module_text("local"))
    lowered_s = work_seconds(local, stage.mesh.cluster.device)
    assert stage.solution.compute_s == pytest.approx(lowered_s, rel=tolerance)


@pytest.mark.parametrize("heads", [(16, 16), (16, 2)])
@pytest.mark.parametrize("is_causal", [True, False])
def test_attention_in_blocks_is_priced_as_its_local_form(
    heads: tuple[int, int], is_causal: bool
) -> None:
    """Blocks that a causal mask hides are skipped: about half of them, in the price as well."""
    assert_priced_as_lowered(plan_attention(is_causal, 8192, 8, heads))


def test_a_causal_sequence_that_is_split_is_half_the_work() -> None:
    """Devices take a half of a block from the front and one from the back: all see the same."""
    causal, full = (plan_attention(one, 65536, 1, (1, 1)) for one in (True, False))
    for plan in (causal, full):
        assert_priced_as_lowered(plan, 0.2)
        assert "collective_permute" in {one.kind for one in plan.communication()}
    share = causal.stages[0].solution.compute_s / full.stages[0].solution.compute_s
    assert 0.5 < share < 0.6
