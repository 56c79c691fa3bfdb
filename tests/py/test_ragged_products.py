"""Products in groups of rows (`lax.ragged_dot`), split by rows and by groups.

XLA for CPU has no such product: in the program of a device each is what jax writes for CPU.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime import compile_spmd
from comparing import assert_equals_jit
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func
from jax.interpreters import mlir
from jax.sharding import PartitionSpec as P
from often import one_in
from test_random_plans import MESHES, assert_bytes_as_predicted, choose, compare, spmd_program
from test_random_plans import strategy_counts as counts_of

import stablehlo_alpa as sa
from stablehlo_alpa import _core
from stablehlo_alpa.cluster import preset_for
from stablehlo_alpa.frontend import Function, TracedProgram, trace_function

ROWS, DEPTH, WIDTH, EXPERTS = 24, 16, 12, 8
SIZES = {
    "even": [3] * EXPERTS,
    "some empty": [0, 7, 0, 0, 11, 1, 5, 0],
    "rows of nobody": [2, 0, 5, 1, 0, 3, 0, 4],
    "all of one": [0, 0, 0, 24, 0, 0, 0, 0],
}


def real(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("f")


def forward(x: Any, w: Any, sizes: Any) -> Any:
    return jax.lax.ragged_dot(x, w, sizes)


def layer(sizes: Any, x: Any, up: Any, down: Any) -> Any:
    hidden = jnp.tanh(jax.lax.ragged_dot(x, up, sizes))
    return jax.lax.ragged_dot(hidden, down, sizes)


def gradients(x: Any, up: Any, down: Any, sizes: Any) -> Any:
    return jax.grad(lambda *args: (layer(sizes, *args) ** 2).mean(), (0, 1, 2))(x, up, down)


def in_batches(x: Any, w: Any, sizes: Any) -> Any:
    """Groups of the same sizes in every batch."""
    numbers = jax.lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (1,))), (1,), (0,))
    return jax.lax.ragged_dot_general(x, w, sizes, numbers)


def of_odd_sizes(x: Any, up: Any, down: Any, sizes: Any) -> Any:
    """Rows and widths that no mesh here divides but one."""
    return gradients(x, up, down, sizes)


def of_sorted_rows(x: Any, up: Any, down: Any, sizes: Any) -> Any:
    """Rows that each of the devices sorts by itself."""
    experts = jax.lax.top_k(x[:, :EXPERTS] + sizes, 2)[1].reshape(-1)
    order, counts = jnp.argsort(experts), jnp.bincount(experts, length=EXPERTS)

    def loss(x: Any, up: Any, down: Any) -> Any:
        rows = layer(counts, x[order // 2], up, down)
        return (jnp.zeros((len(x), down.shape[-1])).at[order // 2].add(rows) ** 2).mean()

    return jax.grad(loss, (0, 1, 2))(x, up, down)


def in_batches_of_their_own(x: Any, w: Any, sizes: Any) -> Any:
    """Groups of other sizes in each batch."""
    return in_batches(x, w, jnp.stack([jnp.roll(sizes, shift) for shift in range(len(x))]))


OPERANDS: Mapping[Callable[..., Any], tuple[Any, ...]] = {
    forward: (real(ROWS, DEPTH), real(EXPERTS, DEPTH, WIDTH)),
    gradients: (real(ROWS, DEPTH), real(EXPERTS, DEPTH, WIDTH), real(EXPERTS, WIDTH, DEPTH)),
    of_sorted_rows: (real(ROWS, DEPTH), real(EXPERTS, DEPTH, WIDTH), real(EXPERTS, WIDTH, DEPTH)),
    in_batches: (real(4, ROWS, DEPTH), real(EXPERTS, 4, DEPTH, WIDTH)),
    of_odd_sizes: (real(26, 17), real(EXPERTS, 17, 13), real(EXPERTS, 13, 17)),
    in_batches_of_their_own: (real(4, ROWS, DEPTH), real(EXPERTS, 4, DEPTH, WIDTH)),
}


def numbers_of(op: Any) -> jax.lax.RaggedDotDimensionNumbers:
    from jaxlib.mlir.dialects import chlo

    found = chlo.RaggedDotDimensionNumbers(op.attributes["ragged_dot_dimension_numbers"])
    sums = found.lhs_contracting_dimensions, found.rhs_contracting_dimensions
    batch = found.lhs_batching_dimensions, found.rhs_batching_dimensions
    return jax.lax.RaggedDotDimensionNumbers(
        tuple(tuple(map(tuple, pair)) for pair in (sums, batch)),
        found.lhs_ragged_dimensions,
        found.rhs_group_dimensions,
    )


def for_cpu(text: str) -> str:
    """A program whose ragged products are written out as jax does for CPU."""
    context = mlir.make_ir_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        symbols = ir.SymbolTable(module.operation)
        found: list[Any] = []

        def visit(op: Any) -> Any:
            if op.name == "chlo.ragged_dot":
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        for op in found:
            types = [
                jax.ShapeDtypeStruct(tuple(v.type.shape), np.int32 if i == 2 else np.float32)
                for i, v in enumerate(op.operands)
            ]
            product = functools.partial(
                jax.lax.ragged_dot_general, ragged_dot_dimension_numbers=numbers_of(op)
            )
            source = ir.Module.parse(jax.jit(product).lower(*types).as_text())
            name = mlir.merge_mlir_modules(module, "product", source, dst_symtab=symbols)
            with ir.InsertionPoint(op):
                callee = ir.FlatSymbolRefAttr.get(name)
                made = func.CallOp([op.results[0].type], callee, list(op.operands))
            op.results[0].replace_all_uses_with(made.results[0])
            op.erase()
        assert found
        return str(module.operation.get_asm())


@functools.cache
def prepared(fun: Callable[..., Any], devices: int) -> tuple[TracedProgram, str]:
    """The function as jax lowers it where there are such products, odd sizes padded.

    Of rows that are sorted every device sorts its own.
    """
    args = (*OPERANDS[fun], np.zeros(EXPERTS, np.int32))
    traced = trace_function(Function(fun), args, {}, platform="tpu")
    assert "chlo.ragged_dot" in traced.text
    forms = {
        of_odd_sizes: f"pad-to={devices} most-added=1",
        of_sorted_rows: f"sort-parts={devices}",
    }
    form = forms.get(fun, "")
    pipeline = f"builtin.module(alpa-prepare-pipeline{{{traced.state_option} {form}}})"
    merged, said = _core.run_pipeline(traced.text, pipeline)
    assert (fun is of_sorted_rows) == any("sorted in" in remark for remark in said)
    products = [line for line in merged.splitlines() if '"chlo.ragged_dot"' in line]
    assert fun is not of_odd_sizes or not any("x17x" in line for line in products)
    return traced, merged


def check(fun: Callable[..., Any], mesh: Sequence[tuple[str, int]], seed: int) -> None:
    traced, merged = prepared(fun, math.prod(size for _, size in mesh))
    option = ",".join(f"{axis}:{size}" for axis, size in mesh)
    solution = ",".join(map(str, choose(counts_of(merged, mesh), seed)))
    what = f"{fun.__name__} on {option} with {solution}"
    planning = f"builtin.module(alpa-plan-pipeline{{mesh={option} solution={solution}}})"
    planned, _ = _core.run_pipeline(merged, planning)
    local, _ = _core.run_pipeline(planned, "builtin.module(alpa-spmd-pipeline)")
    spmd = spmd_program(traced, planned, for_cpu(local), mesh, fun.__name__)
    assert_bytes_as_predicted(planned, local, mesh, what)
    run = compile_spmd(spmd, jax.devices()[: math.prod(size for _, size in mesh)])
    for name, sizes in SIZES.items():
        args = (*OPERANDS[fun], np.array(sizes, np.int32))
        expected = jax.tree.leaves(jax.jit(fun)(*args))
        for result, value in zip(run(*args), expected, strict=True):
            compare(result, value, 2e-5, f"{what}, {name}")


@pytest.mark.parametrize("fun", OPERANDS)
@pytest.mark.parametrize("mesh", ["8", "2x4", "3"])
def test_any_split_of_rows_and_groups_is_the_whole(fun: Callable[..., Any], mesh: str) -> None:
    axes = MESHES.get(mesh, (("x", 3),))
    for seed in range(2):
        check(fun, axes, seed)


@pytest.mark.matrix
@pytest.mark.parametrize("fun", OPERANDS)
@pytest.mark.parametrize("mesh", [*MESHES, "3"])
def test_many_splits_of_rows_and_groups_are_the_whole(fun: Callable[..., Any], mesh: str) -> None:
    axes = MESHES.get(mesh, (("x", 3),))
    for seed in range(0 if mesh == "2x2x2" else 2, 12):
        check(fun, axes, seed)


def mixture(params: Any, x: Any, chosen: int) -> Any:
    """Tokens sorted by expert, none dropped, and put back: x + the sum of its experts' products."""
    weights, experts = jax.lax.top_k(jax.nn.softmax(x @ params["router"]), chosen)
    order = jnp.argsort(experts.reshape(-1), stable=True)
    sizes = jnp.bincount(experts.reshape(-1), length=params["up"].shape[0])
    rows = x[order // chosen]
    rows = jax.nn.gelu(jax.lax.ragged_dot(rows, params["up"], sizes))
    rows = jax.lax.ragged_dot(rows, params["down"], sizes)[jnp.argsort(order)]
    rows = rows.reshape(x.shape[0], chosen, -1)
    return x + jnp.einsum("tkh,tk->th", rows, weights.astype(x.dtype))


def train_step(params: Any, x: Any, y: Any) -> Any:
    def loss_of(params: Any) -> Any:
        return ((mixture(params, x, 2) - y).astype(jnp.float32) ** 2).mean()

    loss, grads = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda a, b: a - b.astype(a.dtype), params, grads), loss


def mixture_state(experts: int, favoured: int | None, dtype: Any) -> Any:
    draw = np.random.default_rng(experts)
    router = draw.normal(size=(32, experts))
    # Tokens are positive in their first feature: all of them go to one expert, and to the first.
    router[0, [] if favoured is None else [0, favoured]] += 1000
    up, down = draw.normal(size=(experts, 32, 48)) / 6, draw.normal(size=(experts, 48, 32)) / 6
    return {n: jnp.asarray(a, dtype) for n, a in (("router", router), ("up", up), ("down", down))}


MIXTURES = [
    (64, 8, None, jnp.float32, 1e-5),
    (63, 6, 4, jnp.float32, 1e-5),
    (64, 8, 7, jnp.bfloat16, 3e-2),
]


@pytest.mark.parametrize(
    ("mesh", "tokens", "experts", "favoured", "dtype", "tolerance"),
    one_in(3, [(mesh, *one) for one in MIXTURES for mesh in [*MESHES, "3"]]),
)
def test_a_mixture_planned_without_pins_is_the_whole(
    mesh: str, tokens: int, experts: int, favoured: int | None, dtype: Any, tolerance: float
) -> None:
    shape = tuple(size for _, size in MESHES.get(mesh, (("x", 3),)))
    draw = np.random.default_rng(tokens)
    x, y = jnp.asarray(draw.normal(size=(2, tokens, 32)), dtype)
    x = x.at[:, 0].set(1)
    args = (mixture_state(experts, favoured, dtype), x, y)
    devices = jax.devices()[: math.prod(shape)]
    method = sa.ShardParallel(mesh_shape=shape)
    found = sa.parallelize(train_step, method=method, devices=devices)(*args)
    assert_equals_jit(found, jax.jit(train_step)(*args), tolerance)


def on_paper(platform: str) -> Mapping[str, Any]:
    """Eight devices that are planned for as jax lowers products for a platform."""
    device = replace(preset_for("cpu"), platform=platform)
    return {"cluster": sa.ClusterSpec(device, 1, 8), "devices": jax.devices()[:1]}


def test_every_device_computes_by_its_part_of_the_weights() -> None:
    """No product of a large mixture is done by all devices, and weights lie on one each."""
    make = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.bfloat16)
    shapes = {"router": (512, 16), "up": (16, 512, 2048), "down": (16, 2048, 512)}
    params = {name: make(shape) for name, shape in shapes.items()}
    tokens = make((8192, 512))
    method = sa.ShardParallel(mesh_shape=(8,))
    plan = sa.parallelize(train_step, method=method, **on_paper("tpu")).plan(params, tokens, tokens)
    lines = plan.module_text("planned").splitlines()
    products = [line for line in lines if '"chlo.ragged_dot"' in line]
    assert len(products) == 5
    assert not any("#alpa.strategy<>" in line for line in products)
    ((split, *_), _) = plan.input_shardings
    assert all("x" in split[name] for name in ("up", "down"))


def test_experts_are_found_by_their_groups() -> None:
    """The first product counts groups along a dimension: gradients of the weights are split so.

    Tokens are few beside the weights: they are less to send.
    """
    make = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.float32)
    params = {"router": make((128, 16)), "up": make((16, 128, 512)), "down": make((16, 512, 128))}
    tokens = make((1024, 128))
    method = sa.ExpertParallel()
    plan = sa.parallelize(train_step, method=method, **on_paper("tpu")).plan(params, tokens, tokens)
    ((split, *_), _) = plan.input_shardings
    assert split == {"router": P(), "up": P("expert"), "down": P("expert")}
    strategies = [
        line.partition("alpa.strategy = ")[2].partition(">")[0]
        for line in plan.module_text("planned").splitlines()
        if '"chlo.ragged_dot"' in line
    ]
    assert strategies == ["#alpa.strategy<d=[1]"] * 5


def test_few_rows_go_to_the_weights_of_many_experts() -> None:
    """Sums of 100 elements are cut by none of 8 devices: rows are, or groups."""

    def loss_of(w: Any, x: Any, sizes: Any) -> Any:
        return (jax.lax.ragged_dot(x, w, sizes) ** 2).mean()

    method = sa.ManualSharding(mesh_shape=(8,), names=("x",), in_specs={0: P("x")})
    step = sa.parallelize(jax.grad(loss_of), method=method, **on_paper("tpu"))
    plan = step.plan(real(8, 500, 500), real(60, 500), np.zeros(8, np.int32))
    lines = plan.module_text("planned").splitlines()
    strategies = [line.partition("alpa.strategy = ")[2] for line in lines if "chlo.ragged" in line]
    assert len(strategies) == 2
    assert all(one.startswith("#alpa.strategy<d=[0]>") for one in strategies)
    # Weights and their gradients stay where they are.
    assert sum(one.bytes for one in plan.communication()) < 8 * 500 * 500
