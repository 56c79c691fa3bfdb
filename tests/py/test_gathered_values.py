"""What is gathered is kept where there is room, and gathered again where there is none."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import gpt

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.compiler import Module, enumerate_strategies
from stablehlo_alpa.cost import CollectiveKind, collective_seconds, price
from stablehlo_alpa.intra_op import solve
from stablehlo_alpa.planning.stage import SlotKind

WIDTH, BATCH = 256, 65536
_FOUR = ClusterSpec.preset("dgx-a100:1").part(1, 4)
_MESH = _FOUR.logical_mesh((4,))


def cast_step(params, batch):
    """Weights in f32, products in bf16: what is gathered is made from a parameter."""

    def loss(params):
        hidden = batch
        for weight in params:
            hidden = jnp.tanh(hidden.astype(jnp.bfloat16) @ weight.astype(jnp.bfloat16))
        return hidden.astype(jnp.float32).sum()

    grads = sa.grad(loss)(params)
    return jax.tree.map(lambda weight, grad: weight - 0.01 * grad, params, grads)


def test_a_stage_keeps_no_gathered_weights_for_micro_batches_in_flight():
    shape = jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32)
    batch = jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32)
    method = sa.PipeshardParallel(
        num_micro_batches=4,
        stages=sa.UniformStages(2, methods=sa.Zero3Parallel()),
        layers=sa.AutoLayers(num_layers=2, remat=False),
    )
    plan = sa.parallelize(cast_step, method=method).plan([shape] * 4, batch)
    gathered = 0
    for stage in plan.stages:
        for phase in stage.phases:
            gathered += any(one.kind == "all_gather" for one in phase.collectives)
            sizes = phase.program.mesh_sizes
            for slot, value in zip(phase.outputs, phase.program.outputs, strict=True):
                if slot.kind is SlotKind.LOCAL and value.shape == (WIDTH, WIDTH):
                    assert value.local_bytes(sizes) < 2 * WIDTH * WIDTH, (phase.name, value)
    # Forward and backward phases of both.
    assert gathered == 4


# What a stage computes again, and what its backward phase makes of that at the end.
_SEVERAL_READERS = """
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.phase = 1 : i64}
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.phase = 1 : i64}
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] {alpa.phase = 1 : i64}
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = stablehlo.dot_general %2, %0, contracting_dims = [0] x [0] {alpa.phase = 1 : i64}
    : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}
"""


def test_what_is_gathered_for_several_readers_is_counted_until_the_last():
    """The sum that they share has no phase of its own; it is gathered once, where it is made."""
    module = Module(_SEVERAL_READERS, "step")
    module.run("alpa-merge-operators")
    graph = enumerate_strategies(module, _MESH, "step")
    (shared,) = (i for i, op in enumerate(graph.node_op) if op == "alpa.resolve")
    (copy,) = np.flatnonzero(graph.copy_target == shared)
    (value,) = np.flatnonzero(graph.value_node == graph.copy_source[copy])
    assert graph.copy_start[copy] == graph.value_start[value] + 1
    assert graph.copy_end[copy] == graph.value_end[value] > graph.copy_start[copy] + 1


def _products(count):
    """So many products of one value and a weight each."""
    numbers = range(count)
    weights = "".join(f", %w{i}: tensor<512x4096xf32>" for i in numbers)
    lines = "".join(
        f"  %{i} = stablehlo.dot_general %x, %w{i}, contracting_dims = [1] x [0]"
        ": (tensor<4096x512xf32>, tensor<512x4096xf32>) -> tensor<4096x4096xf32>\n"
        for i in numbers
    )
    types = ", ".join(["tensor<4096x4096xf32>"] * count)
    results = ", ".join(f"%{i}" for i in numbers)
    head = f"func.func @main(%x: tensor<4096x512xf32>{weights}) -> ({types})"
    return f"{head} {{\n{lines}  return {results} : {types}\n}}"


def _resharding_s(count):
    """Least seconds of resharding where rows of the value lie on devices, columns of the rest."""
    module = Module(_products(count), "step")
    module.run("alpa-merge-operators")
    graph = enumerate_strategies(module, _MESH, "step")
    allowed = graph.allowed.copy()
    ends = [*zip(graph.input_node, graph.input_specs, strict=True)]
    ends += zip(graph.output_node, graph.output_specs, strict=True)
    for node, specs in ends:
        is_value = node == graph.input_node[0]
        rows = slice(graph.node_offset[node], graph.node_offset[node + 1])
        allowed[rows] = np.asarray(specs)[:, 0] == (0 if is_value else 1)
    priced = price(dataclasses.replace(graph, allowed=allowed), _MESH, _FOUR.device)
    return priced.split(solve(priced).choice)[2]


def test_what_three_products_read_is_gathered_and_charged_once():
    """Query, key and value of an attention."""
    alone = _resharding_s(1)
    kind, size = CollectiveKind.ALL_GATHER, 4096 * 512 * 4
    assert alone == pytest.approx(collective_seconds(kind, 1, size, _MESH, _FOUR.device)[0])
    assert _resharding_s(3) == pytest.approx(alone)


def _step(case, budget=None):
    method = sa.Zero3Parallel(mesh_shape=(8,), memory_budget=budget)
    return sa.parallelize(case.step, method=method, donate_argnums=0)


def _num_gathers(plan):
    (phase,) = plan.stages[0].phases
    return sum(one.count for one in phase.collectives if one.kind == "all_gather")


@pytest.mark.slow
def test_a_budget_lets_go_of_what_was_gathered():
    case = gpt.make(layers=2, hidden=256, length=64, batch=64, vocabulary=512, dropout=0.0)
    shapes = jax.eval_shape(lambda: case.args)
    free = _step(case).plan(*shapes)
    budget = 0.95 * free.peak_bytes
    step = _step(case, budget)
    tight = step.plan(*shapes)
    assert tight.peak_bytes <= budget
    # By the same strategies.
    chosen = [plan.stages[0].solution.choice for plan in (free, tight)]
    assert np.array_equal(*chosen)
    assert _num_gathers(tight) > _num_gathers(free)
    # Before the state is given away.
    expected = jax.jit(case.step)(*case.args)
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=2e-3, atol=2e-4), step(*case.args), expected
    )


@pytest.mark.parametrize("mebibytes", [11.5, 12.5, 13, 14])
def test_a_budget_is_met_by_what_is_run(mebibytes: float) -> None:
    """Products in parts are no tensors of the step: their scratch is known of what is run alone."""

    def step(state, x, y):
        def loss(state):
            out = jnp.tanh(x @ state[0]) @ state[1]
            return ((out - y) ** 2).mean()

        return jax.tree.map(lambda p, g: p - 0.1 * g, state, sa.grad(loss)(state))

    def shape(*sizes: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, jnp.float32)

    method = sa.ShardParallel(memory_budget=f"{mebibytes}MiB", num_micro_batches=1)
    parallel = sa.parallelize(step, method=method, cluster="p3.16xlarge:1")
    plan = parallel.plan((shape(512, 2048), shape(2048, 512)), shape(1280, 512), shape(1280, 512))
    assert plan.peak_bytes <= mebibytes * 2**20
