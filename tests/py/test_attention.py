"""Attention as one operator: any split of it computes what ``jax.jit`` computes."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from alpa_runtime import SpmdProgram, compile_spmd
from attention_programs import (
    KEY,
    LEFT,
    LENGTH,
    RECOGNISED,
    dropout,
    heads,
    library,
    multiplied,
    selected,
    with_gradients,
)
from comparing import assert_equals_jit
from local_text import Operation, collective_bytes, parse
from programs import Program
from test_random_plans import MESHES, choose, compare, spmd_program, strategy_counts

import stablehlo_alpa as sa
from stablehlo_alpa import _core
from stablehlo_alpa.frontend import TracedProgram, trace

# Scores of 16 keys at a time of the largest blocks below, and of all of the smallest.
BLOCK_BYTES = 16 * 2 * 4 * 48 * 4


@functools.cache
def traced(name: str) -> TracedProgram:
    program = {**RECOGNISED, **LEFT}[name]
    return trace(program.fun, program.args, {})


def prepare(name: str, more: str) -> str:
    """A program's module with roles."""
    one = traced(name)
    pipeline = f"builtin.module(alpa-prepare-pipeline{{{one.state_option} {more}}})"
    return _core.run_pipeline(one.text, pipeline)[0]


@functools.cache
def outlined(name: str) -> str:
    merged = prepare(name, f"attention-keys=1 block-bytes={BLOCK_BYTES}")
    # All of it: no softmax is left.
    assert '"stablehlo.exponential"' not in re.sub(r"sine|cosine", "", merged)
    return merged


def own_loops(local: str) -> list[int]:
    """Turns of the loops of a per-device module, in the order in which they begin."""
    constants = {
        found[1]: int(found[2])
        for found in re.finditer(
            r'(%\w+) = "stablehlo\.constant"\(\) <\{value = dense<(-?\d+)> : tensor<i\d+>', local
        )
    }
    turns: list[int] = []

    def visit(operations: Sequence[Operation]) -> None:
        for op in operations:
            if op.name == "stablehlo.while":
                compared = next(one for one in op.inside if one.name == "stablehlo.compare")
                limit = re.search(r"\(%\w+, (%\w+)\)", compared.text)
                assert limit is not None
                turns.append(constants[limit[1]])
            visit(op.inside)

    visit(parse(local))
    return turns


def planned_and_local(
    one: TracedProgram, merged: str, mesh: Sequence[tuple[str, int]], seed: int, lowering: str
) -> tuple[str, SpmdProgram]:
    """A random plan, and the program that a back end has of it."""
    option = ",".join(f"{axis}:{size}" for axis, size in mesh)
    solution = ",".join(map(str, choose(strategy_counts(merged, mesh), seed)))
    planning = f"builtin.module(alpa-plan-pipeline{{mesh={option} solution={solution}}})"
    planned, _ = _core.run_pipeline(merged, planning)
    local, _ = _core.run_pipeline(planned, f"builtin.module({lowering})")
    name = f"{option} with {solution} (seed {seed})"
    is_global = "export" in lowering
    return planned, spmd_program(one, planned, local, mesh, name, is_global=is_global)


def assert_is_jit(spmd: SpmdProgram, program: Program) -> None:
    devices = jax.devices()[: math.prod(size for _, size in spmd.mesh)]
    results = compile_spmd(spmd, devices)(*program.args)
    expected = jax.tree.leaves(jax.jit(program.fun)(*program.args))
    for index, (result, value) in enumerate(zip(results, expected, strict=True)):
        assert result.dtype == value.dtype, spmd.name
        whole, split = (np.asarray(one, np.float32) for one in (value, result))
        compare(split, whole, program.tolerance, f"result {index} of {spmd.name}")


def run(name: str, mesh: Sequence[tuple[str, int]], seed: int) -> None:
    """A random plan against ``jax.jit``, and against its own prediction of what it sends."""
    planned, spmd = planned_and_local(
        traced(name), outlined(name), mesh, seed, "alpa-spmd-pipeline"
    )
    assert_is_jit(spmd, RECOGNISED[name])
    volumes = _core.communication(planned)
    sent = collective_bytes(spmd.text, tuple(n for _, n in mesh), own_loops(spmd.text))
    for key in zip(volumes["kind"].tolist(), volumes["axes"].tolist(), strict=True):
        mine = (volumes["kind"] == key[0]) & (volumes["axes"] == key[1])
        total = float((volumes["bytes"] * volumes["count"])[mine].sum())
        assert sent.pop(key, total) == total, spmd.name
    assert not sent, spmd.name


@pytest.mark.parametrize("name", RECOGNISED)
def test_any_split_of_attention_is_the_whole(name: str) -> None:
    # Each program on one mesh here; on all of them below.
    meshes = [*MESHES.values(), (("x", 3),)]
    number = list(RECOGNISED).index(name)
    run(name, meshes[number % len(meshes)], number)


@pytest.mark.matrix
@pytest.mark.parametrize("mesh", [*MESHES, "3"])
@pytest.mark.parametrize("name", RECOGNISED)
def test_any_split_of_attention_is_the_whole_on_every_mesh(name: str, mesh: str) -> None:
    for seed in range(1, 3):
        axes = MESHES.get(mesh, (("x", 3),))
        run(name, axes, seed)


@pytest.mark.parametrize("name", LEFT)
def test_what_needs_scores_stays_as_it_is(name: str) -> None:
    assert prepare(name, "attention-keys=1") == prepare(name, "")


def test_few_keys_stay_as_they_are() -> None:
    name = "library, causal"
    assert prepare(name, "attention-keys=49") == prepare(name, "")
    assert prepare(name, "attention-keys=48") != prepare(name, "")


@pytest.mark.parametrize("mesh", [*MESHES, "3"])
def test_what_is_dropped_is_what_is_dropped_of_the_whole(mesh: str) -> None:
    """Values that are one in one place each: a result is the weights, zero where they are."""
    axes = MESHES.get(mesh, (("x", 3),))
    query, key, _ = heads()
    value = np.broadcast_to(np.eye(LENGTH, dtype="f")[:, None], (*query.shape[:3], LENGTH))
    program = Program(dropout(multiplied, is_causal=False), (query, key, value, KEY))
    one = trace(program.fun, program.args, {})
    options = f"{one.state_option} attention-keys=1 block-bytes={BLOCK_BYTES}"
    merged, _ = _core.run_pipeline(one.text, f"builtin.module(alpa-prepare-pipeline{{{options}}})")
    weights = np.asarray(jax.jit(program.fun)(*program.args))
    assert 0.05 < np.mean(weights == 0) < 0.15
    for seed in range(4):
        _, spmd = planned_and_local(one, merged, axes, seed, "alpa-spmd-pipeline")
        devices = jax.devices()[: math.prod(size for _, size in axes)]
        (found,) = compile_spmd(spmd, devices)(*program.args)
        np.testing.assert_array_equal(np.asarray(found) == 0, weights == 0, err_msg=spmd.name)


def test_bits_of_another_generator_stay_whole() -> None:
    """Their positions say nothing: they are drawn, and their blocks are what a block needs."""
    program = Program(with_gradients(dropout(multiplied)), (*heads(), KEY))

    def step(q: Any, k: Any, v: Any, key: Any) -> Any:
        return program.fun(q, k, v, jax.random.wrap_key_data(key, impl="rbg"))

    args = (*heads(), np.array([17, 4, 3, 9], np.uint32))
    method = sa.ShardParallel(mesh_shape=(2, 4), attention_keys=1)
    assert_equals_jit(sa.parallelize(step, method=method)(*args), jax.jit(step)(*args))


def attention_step(q: Any, k: Any, v: Any) -> Any:
    return with_gradients(library(is_causal=True))(q, k, v)


def test_scores_that_do_not_fit_go_around_the_devices() -> None:
    """128k tokens on eight H100: the plan that has all scores takes more than there is."""
    parts = [jax.ShapeDtypeStruct((1, 131072, n, 128), jax.numpy.bfloat16) for n in (16, 2, 2)]

    def plan(**options: Any) -> sa.Plan:
        method = sa.ShardParallel(**options)
        return sa.parallelize(attention_step, method=method, cluster="dgx-h100").plan(*parts)

    with pytest.raises(sa.InfeasibleError, match="BNTS"):
        plan(attention_keys=None)
    assert_goes_around(plan())


def assert_goes_around(plan: sa.Plan) -> None:
    assert plan.peak_bytes < 8 * 2**30
    assert "collective_permute" in {one.kind for one in plan.communication()}
    assert any("attention over 131072 keys" in remark for remark in plan.remarks)


def test_dropped_weights_that_do_not_fit_go_around_the_devices() -> None:
    """Random bits of all weights take 64 GiB for each of four heads."""
    parts = [jax.ShapeDtypeStruct((1, 131072, 4, 128), jax.numpy.bfloat16)] * 3
    step = sa.parallelize(with_gradients(dropout(selected, is_causal=False)), cluster="dgx-h100")
    assert_goes_around(step.plan(*parts, KEY))


def test_scores_that_fit_stay() -> None:
    """Blocks are there for what does not fit: otherwise the plan is the one without them."""
    args = heads()
    plans = [
        sa.parallelize(attention_step, method=sa.ShardParallel(attention_keys=keys)).plan(*args)
        for keys in (None, LENGTH)
    ]
    assert plans[0].module_text("planned") == plans[1].module_text("planned")


def test_another_partitioner_gets_what_one_device_computes() -> None:
    name, lowering = "library, groups of heads", "alpa-export-shardings{form=shardy}"
    _, program = planned_and_local(traced(name), outlined(name), MESHES["2x4"], 0, lowering)
    assert "alpa." not in program.text
    assert_is_jit(program, RECOGNISED[name])


def test_attention_over_no_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="attention_keys is 0, must be None or >= 1"):
        sa.ShardParallel(attention_keys=0)


def test_programs_are_what_they_say() -> None:
    """Rows without a key are NaN, as under ``jax.jit``: the comparison sees them."""
    for name in ("rows without keys", "masked, infinite behind"):
        program = RECOGNISED[name]
        assert np.isnan(np.asarray(jax.jit(program.fun)(*program.args))).any()
    program = RECOGNISED["masked, padded before"]
    found = np.asarray(jax.jit(program.fun)(*program.args))
    # Such a row is the mean of all values, as a row has it that is masked as a whole.
    assert np.allclose(found[:, 0], program.args[2][:, 1:].mean(1), atol=1e-2)
