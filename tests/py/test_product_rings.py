"""Products that are computed beside collectives: same values, bytes as predicted, never slower."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime import compile_spmd
from jax import lax
from local_text import collective_bytes, parse
from models import gpt
from programs import Program, real, whole
from test_models import assert_trees_close
from test_random_plans import (
    MESHES,
    assert_bytes_as_predicted,
    choose,
    compare,
    prepare,
    spmd_program,
    strategy_counts,
)

import stablehlo_alpa as sa
from stablehlo_alpa import _core
from stablehlo_alpa.cluster import Link, Overlap, preset_for
from stablehlo_alpa.cost import CollectiveKind, RingVolumes, collective_seconds, ring_seconds
from stablehlo_alpa.cost.product import shaped_product_seconds

# Three do not divide a power of two.
ALL_MESHES = {**MESHES, "3": (("x", 3),)}
GATHER, PERMUTE = int(CollectiveKind.ALL_GATHER), int(CollectiveKind.COLLECTIVE_PERMUTE)


def rings_of(planned: str) -> tuple[list[int], Counter[tuple[int, int]]]:
    """As many rings as can be together, in order; how many of each kind and loop there are.

    A loop is a batch (0), rows (1), columns (2) or sums (3).
    """
    found = _core.product_rings(planned)
    taken: set[int] = set()
    numbers, forms = [], Counter[tuple[int, int]]()
    for number in range(len(found["kind"])):
        rows = np.flatnonzero(found["product_ring"] == number)
        if taken & set(found["product"][rows].tolist()):
            continue
        taken |= set(found["product"][rows].tolist())
        numbers.append(number)
        for row in rows:
            (loop,) = np.flatnonzero(found["shape"][row] != found["block_shape"][row])
            forms[int(found["kind"][number]), int(loop)] += 1
    return numbers, forms


def check(
    program: Program, mesh: Sequence[tuple[str, int]], seeds: Sequence[int]
) -> Counter[tuple[int, int]]:
    """Random plans with all their rings against ``jax.jit``; the forms that there were."""
    traced, merged = prepare(program)
    expected = jax.tree.leaves(jax.jit(program.fun)(*program.args))
    counts = strategy_counts(merged, mesh)
    option = ",".join(f"{axis}:{size}" for axis, size in mesh)
    met = Counter[tuple[int, int]]()
    for seed in seeds:
        solution = ",".join(map(str, choose(counts, seed)))
        what = f"{option} with {solution} (seed {seed})"
        planning = f"builtin.module(alpa-plan-pipeline{{mesh={option} solution={solution}}})"
        planned, _ = _core.run_pipeline(merged, planning)
        numbers, forms = rings_of(planned)
        met += forms
        written = f"alpa-choose-product-rings{{rings={','.join(map(str, numbers))}}}"
        planned, _ = _core.run_pipeline(planned, f"builtin.module({written},alpa-verify-plan)")
        local, _ = _core.run_pipeline(planned, "builtin.module(alpa-spmd-pipeline)")
        spmd = spmd_program(traced, planned, local, mesh, "f")
        devices = jax.devices()[: math.prod(size for _, size in mesh)]
        results = compile_spmd(spmd, devices)(*program.args)
        for index, (result, value) in enumerate(zip(results, expected, strict=True)):
            assert result.dtype == value.dtype, what
            # numpy does not count bfloat16 among the inexact.
            is_real = jnp.issubdtype(value.dtype, jnp.floating)
            ours, theirs = (
                jnp.asarray(one, jnp.float32) if is_real else one for one in (result, value)
            )
            compare(ours, theirs, program.tolerance, f"result {index} of {what}")
        assert_bytes_as_predicted(planned, local, mesh, what)
    return met


def perceptron(dtype: Any, width: int) -> Program:
    """Two products and their gradients."""

    def gradients(x: Any, up: Any, down: Any) -> Any:
        def loss(x: Any, up: Any, down: Any) -> Any:
            return (jnp.tanh(x @ up) @ down).astype(jnp.float32).sum()

        return jax.value_and_grad(loss, (0, 1, 2))(x, up, down)

    args = real(width, width), real(width, 2 * width), real(2 * width, width)
    tolerance = 2e-5 if dtype == np.float32 else 4e-2
    return Program(gradients, tuple(jnp.asarray(a, dtype) for a in args), tolerance)


def attention(width: int) -> Program:
    """Three products that share what is gathered, and batched ones; with gradients."""

    def gradients(x: Any, *weights: Any) -> Any:
        def loss(x: Any, *weights: Any) -> Any:
            query, key, value = (x @ w for w in weights)
            scores = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", query, key))
            return jnp.sin(jnp.einsum("bqk,bkd->bqd", scores, value)).sum()

        return jax.grad(loss, (0, 1, 2, 3))(x, *weights)

    weights = (real(width, width, seed=seed) for seed in range(3))
    return Program(gradients, (real(width, width, width), *weights))


def integers(width: int) -> Program:
    """Products of 8 bits that are added up in 32 bits, and in 8."""

    def products(a: Any, b: Any) -> Any:
        wide = lax.dot(a, b, preferred_element_type=jnp.int32)
        narrow = lax.dot(a, b)
        return wide, lax.dot(narrow, b) + narrow

    args = (whole(7, width, width, seed=seed, dtype=np.int8) for seed in range(2))
    return Program(products, tuple(args))


def looped(width: int) -> Program:
    """Products in a loop, of slices as well, and of complex numbers behind it."""

    def turns(x: Any, ws: Any) -> Any:
        h, _ = lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, ws)
        c = h + 1j * lax.dynamic_slice(x, (3, 0), x.shape)
        return c @ c.T

    return Program(turns, (real(width, width), real(3, width, width)))


PROGRAMS: dict[str, Callable[[int], Program]] = {
    "f32": lambda width: perceptron(np.float32, width),
    "bf16": lambda width: perceptron(jnp.bfloat16, width),
    "attention": attention,
    "integers": integers,
    "looped": looped,
}


def check_on(name: str, mesh: str, seeds: Sequence[int]) -> Counter[tuple[int, int]]:
    width = 24 if mesh == "3" else 16
    return check(PROGRAMS[name](width), ALL_MESHES[mesh], seeds)


@pytest.mark.parametrize(
    ("name", "mesh"),
    [("f32", "8"), ("bf16", "2x4"), ("integers", "2x2x2"), ("attention", "3"), ("looped", "2x4")],
)
def test_random_plans_in_rings_equal_jit(name: str, mesh: str) -> None:
    # Each program on one mesh here; on all of them below.
    assert check_on(name, mesh, range(2 if name == "looped" else 1))


@pytest.mark.matrix
@pytest.mark.parametrize("mesh", ALL_MESHES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_random_plans_in_rings_equal_jit_on_every_mesh(name: str, mesh: str) -> None:
    assert check_on(name, mesh, range(100, 112))


def test_every_form_is_met_in_random_plans() -> None:
    met = Counter[tuple[int, int]]()
    mesh = ALL_MESHES["2x4"]
    _, merged = prepare(attention(16))
    counts = strategy_counts(merged, mesh)
    for seed in range(12):
        solution = ",".join(map(str, choose(counts, seed)))
        planning = f"builtin.module(alpa-plan-pipeline{{mesh=x:2,y:4 solution={solution}}})"
        met += rings_of(_core.run_pipeline(merged, planning)[0])[1]
    scatters = {(int(CollectiveKind.REDUCE_SCATTER), loop) for loop in range(3)}
    assert set(met) == {(GATHER, loop) for loop in range(4)} | scatters


# Prices and choice.


CLUSTERS = {
    "v5p": sa.ClusterSpec.preset("tpu-v5p:2x2x1"),
    "h100": sa.ClusterSpec(preset_for("h100-80gb"), 1, 4),
    "a100": sa.ClusterSpec(preset_for("a100-80gb"), 1, 8),
}


def megatron(overlap: Overlap | None, cluster: str = "v5p", batch: int = 8192) -> Any:
    """A plan whose products wait for all-gathers and reduce-scatters of sequence parallelism."""

    def train(params: Any, x: Any) -> Any:
        def loss(params: Any, x: Any) -> Any:
            for layer in params:
                h = x / jnp.sqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)
                x = x + jnp.tanh(h @ layer["up"]) @ layer["down"]
            return jnp.mean(jnp.square(x))

        grads = jax.grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - (0.1 * g).astype(p.dtype), params, grads)

    def shape(*sizes: int) -> Any:
        return jax.ShapeDtypeStruct(sizes, jnp.bfloat16)

    params = [{"up": shape(8192, 28672), "down": shape(28672, 8192)} for _ in range(2)]
    devices = replace(CLUSTERS[cluster], overlap=overlap)
    method = sa.MegatronParallel(tensor=devices.num_devices, sequence_parallel=True)
    return sa.parallelize(train, method=method, donate_argnums=0, cluster=devices).plan(
        params, shape(4, batch // 4, 8192)
    )


NONE = Overlap(gradients=0, parameters=0)
BESIDE = replace(NONE, products=1.0)


def kinds(plan: Any) -> Counter[str]:
    text = plan.module_text("local")
    return Counter(op.name.removeprefix("stablehlo.") for op in parse(text)[0].inside[0].inside)


def test_rings_are_off_unless_asked_for() -> None:
    # On one line, which the programs name.
    plain, off = (megatron(overlap) for overlap in (None, NONE))
    assert plain.module_text("local") == off.module_text("local")
    assert "alpa.product_ring" not in off.module_text("planned")
    assert off.step_time_s == plain.step_time_s


def test_rings_are_chosen_where_they_pay() -> None:
    plain, beside = megatron(NONE), megatron(BESIDE)
    assert "all_gather" in kinds(plain)
    assert kinds(beside)["collective_permute"] >= 3
    assert kinds(beside)["dot_general"] > kinds(plain)["dot_general"]
    assert beside.step_time_s < plain.step_time_s
    # The difference is what the remark says, and the parts add up.
    assert any("block by block beside products" in remark for remark in beside.remarks)
    assert beside.costs[0].compute_s >= plain.costs[0].compute_s
    assert beside.costs[0].compute_s < beside.step_time_s
    moved = collective_bytes(beside.module_text("local"), beside.mesh_shape, [])
    listed = Counter[tuple[int, int]]()
    for one in beside.communication():
        listed[int(CollectiveKind[one.kind.upper()]), 1] += one.bytes
    assert sum(listed.values()) == pytest.approx(sum(moved.values()))


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("batch", [512, 8192])
def test_rings_are_never_slower(cluster: str, batch: int) -> None:
    plain = megatron(NONE, cluster, batch)
    for share in (0.2, 1.0):
        beside = megatron(replace(NONE, products=share), cluster, batch)
        assert beside.step_time_s <= plain.step_time_s


def test_small_products_wait() -> None:
    # Launching the products of blocks takes longer than their collective.
    plan = megatron(BESIDE, "a100", 256)
    assert kinds(plan)["collective_permute"] == 0


def test_an_explanation_names_what_is_done_beside() -> None:
    plan = megatron(BESIDE)
    name = next(iter(plan.stages[0].done_beside))
    assert "is done in 4 blocks beside it" in plan.explain(name).reason


def test_price_of_a_ring() -> None:
    device = preset_for("h100-80gb")
    cluster = sa.ClusterSpec(device, 1, 8)
    mesh = cluster.logical_mesh((8,))
    shape, block = np.array([[1.0, 8192, 16384, 8192]]), np.array([[1.0, 1024, 16384, 8192]])
    payload, one = 8192 * 8192 * 2.0, np.ones(1)
    found = RingVolumes(
        np.array([GATHER]), np.array([1]), payload * one, np.array([0]), np.array([8]), 0 * one,
        0 * one, np.array([0]), shape, block, 3 * payload * one, payload * one, np.array(["bf16"]),
    )  # fmt: skip
    (product,) = shaped_product_seconds(block, payload * one, "bf16", device)
    (permute,) = collective_seconds([PERMUTE], [1], payload / 8 * one, mesh, device)
    assert permute < product
    seconds = ring_seconds(found, mesh, device, Overlap(products=1.0, slowdown=1.25))
    assert seconds.blocks_s == pytest.approx(8 * product)
    assert seconds.exposed_s == pytest.approx(7 * permute * (1 - 1 / 1.25))
    seconds = ring_seconds(found, mesh, device, Overlap(products=0.0))
    assert seconds.exposed_s == pytest.approx(7 * permute)


# The public way.


def in_rings(overlap: Overlap | None) -> sa.ClusterSpec:
    """Eight devices on which rings pay, however small products are."""
    device = replace(sa.ClusterSpec.preset("cpu:1x8").device, memory_bandwidth=1e18)
    return sa.ClusterSpec(device, 1, 8, host_link=Link(0.0, 1e9), overlap=overlap)


IN_TWO = {"pipeline": 2, "data": 2, "micro_batch": 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"data": 4}, pytest.param(IN_TWO, marks=pytest.mark.slow)], ids=["one", "two"]
)
def test_steps_with_rings_equal_jit(options: Any) -> None:
    case = gpt.make(layers=options.get("pipeline", 1), optimizer="sgd")
    method = sa.MegatronParallel(tensor=2, sequence_parallel=True, **options)
    step, plain = (
        sa.parallelize(case.step, method=method, cluster=in_rings(overlap))
        for overlap in (BESIDE, None)
    )
    plan = step.plan(*case.args)
    assert any("block by block beside products" in remark for remark in plan.remarks)
    assert plan.step_time_s < plain.plan(*case.args).step_time_s
    for stage in plan.stages:
        for phase in stage.phases:
            assert phase.compute_s <= phase.time_s
    assert_trees_close(step(*case.args), jax.jit(case.step)(*case.args), 1e-4, "results")
