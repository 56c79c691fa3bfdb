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
from alpa_runtime import SpmdProgram, compile_spmd
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func
from jax.interpreters import mlir
from jax.sharding import PartitionSpec as P
from test_random_plans import MESHES, assert_bytes_as_predicted, choose, compare, specs
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


def in_batches_of_their_own(x: Any, w: Any, sizes: Any) -> Any:
    """Groups of other sizes in each batch."""
    return in_batches(x, w, jnp.stack([jnp.roll(sizes, shift) for shift in range(len(x))]))


OPERANDS: Mapping[Callable[..., Any], tuple[Any, ...]] = {
    forward: (real(ROWS, DEPTH), real(EXPERTS, DEPTH, WIDTH)),
    gradients: (real(ROWS, DEPTH), real(EXPERTS, DEPTH, WIDTH), real(EXPERTS, WIDTH, DEPTH)),
    in_batches: (real(4, ROWS, DEPTH), real(EXPERTS, 4, DEPTH, WIDTH)),
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
def prepared(fun: Callable[..., Any]) -> tuple[TracedProgram, str]:
    """The function as jax lowers it where there are such products."""
    args = (*OPERANDS[fun], np.zeros(EXPERTS, np.int32))
    traced = trace_function(Function(fun), args, {}, platform="tpu")
    assert "chlo.ragged_dot" in traced.text
    pipeline = f"builtin.module(alpa-prepare-pipeline{{{traced.state_option}}})"
    return traced, _core.run_pipeline(traced.text, pipeline)[0]


def check(fun: Callable[..., Any], mesh: Sequence[tuple[str, int]], seed: int) -> None:
    traced, merged = prepared(fun)
    option = ",".join(f"{axis}:{size}" for axis, size in mesh)
    solution = ",".join(map(str, choose(counts_of(merged, mesh), seed)))
    what = f"{fun.__name__} on {option} with {solution}"
    planning = f"builtin.module(alpa-plan-pipeline{{mesh={option} solution={solution}}})"
    planned, _ = _core.run_pipeline(merged, planning)
    local, _ = _core.run_pipeline(planned, "builtin.module(alpa-spmd-pipeline)")
    signature = _core.signature(planned)
    spmd = SpmdProgram(
        text=for_cpu(local),
        mesh=tuple(mesh),
        inputs=specs(traced.inputs, signature["inputs"], signature["mesh_axes"]),
        outputs=specs(traced.outputs, signature["outputs"], signature["mesh_axes"]),
        name=fun.__name__,
    )
    assert_bytes_as_predicted(planned, local, mesh, what)
    run = compile_spmd(spmd, jax.devices()[: math.prod(size for _, size in mesh)])
    for name, sizes in SIZES.items():
        args = (*OPERANDS[fun], np.array(sizes, np.int32))
        expected = jax.tree.leaves(jax.jit(fun)(*args))
        for result, value in zip(run(*args), expected, strict=True):
            compare(result, value, 2e-5, f"{what}, {name}")


@pytest.mark.parametrize("fun", OPERANDS)
@pytest.mark.parametrize("mesh", [*MESHES, "3"])
def test_any_split_of_rows_and_groups_is_the_whole(fun: Callable[..., Any], mesh: str) -> None:
    axes = MESHES.get(mesh, (("x", 3),))
    for seed in range(4):
        check(fun, axes, seed)


def test_few_rows_go_to_the_weights_of_many_experts() -> None:
    """Sums of 100 elements are cut by none of 8 devices: rows are, or groups."""

    def loss_of(w: Any, x: Any, sizes: Any) -> Any:
        return (jax.lax.ragged_dot(x, w, sizes) ** 2).mean()

    device = replace(preset_for("cpu"), platform="tpu")
    method = sa.ManualSharding(mesh_shape=(8,), names=("x",), in_specs={0: P("x")})
    step = sa.parallelize(
        jax.grad(loss_of),
        method=method,
        cluster=sa.ClusterSpec(device, 1, 8),
        devices=jax.devices()[:1],
    )
    plan = step.plan(real(8, 500, 500), real(60, 500), np.zeros(8, np.int32))
    lines = plan.module_text("planned").splitlines()
    strategies = [line.partition("alpa.strategy = ")[2] for line in lines if "chlo.ragged" in line]
    assert len(strategies) == 2
    assert all(one.startswith("#alpa.strategy<d=[0]>") for one in strategies)
    # Weights and their gradients stay where they are.
    assert sum(one.bytes for one in plan.communication()) < 8 * 500 * 500
