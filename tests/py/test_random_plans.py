"""Any choice of strategies computes what ``jax.jit`` computes, and moves the bytes it says."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import extreme_programs  # noqa: F401  (adds its programs)
import jax
import library_programs  # noqa: F401  (adds its programs)
import narrow_programs  # noqa: F401  (adds its programs)
import numpy as np
import pytest
from alpa_runtime import SpmdProgram, ValueSpec, compile_spmd
from local_text import collective_bytes, trip_counts
from programs import PROGRAMS, Program

from stablehlo_alpa import _core
from stablehlo_alpa.compiler.notation import parse_sharding
from stablehlo_alpa.frontend import TracedProgram, TracedValue, trace

MESHES = {"8": (("x", 8),), "2x4": (("x", 2), ("y", 4)), "2x2x2": (("x", 2), ("y", 2), ("z", 2))}
NAMES = sorted(PROGRAMS)


def prepare(program: Program) -> tuple[TracedProgram, str]:
    """The traced function and its module with roles."""
    traced = trace(program.fun, program.args, {})
    pipeline = f"builtin.module(alpa-prepare-pipeline{{{traced.state_option}}})"
    return traced, _core.run_pipeline(traced.text, pipeline)[0]


def strategy_counts(merged: str, mesh: Sequence[tuple[str, int]]) -> np.ndarray:
    """How many strategies each node has, int[nodes]."""
    return np.diff(_core.strategy_graph(merged, list(mesh))["node_offset"])


def choose(counts: np.ndarray, seed: int) -> list[int]:
    """One strategy per node, each as likely as any other."""
    return [int(i) for i in np.random.default_rng(seed).integers(0, counts)]


def spmd_program(
    traced: TracedProgram,
    planned: str,
    text: str,
    mesh: Sequence[tuple[str, int]],
    name: str,
    **others: Any,
) -> SpmdProgram:
    """What a planned module became, with the shardings of its arguments and results."""
    signature = _core.signature(planned)

    def specs(values: Sequence[TracedValue], shardings: Sequence[str]) -> tuple[ValueSpec, ...]:
        return tuple(
            ValueSpec(
                v.shape,
                v.dtype,
                parse_sharding(s, signature["mesh_axes"]),
                v.key_impl,
                v.is_weak,
                v.name,
            )
            for v, s in zip(values, shardings, strict=True)
        )

    return SpmdProgram(
        text=text,
        mesh=tuple(mesh),
        inputs=specs(traced.inputs, signature["inputs"]),
        outputs=specs(traced.outputs, signature["outputs"]),
        name=name,
        **others,
    )


def check(name: str, mesh: Sequence[tuple[str, int]], seeds: Sequence[int]) -> None:
    """Random plans of a program against ``jax.jit`` and against their own prediction."""
    check_plans(PROGRAMS[name], *prepare(PROGRAMS[name]), mesh, seeds, name)


def check_plans(
    program: Program,
    traced: TracedProgram,
    merged: str,
    mesh: Sequence[tuple[str, int]],
    seeds: Sequence[int],
    name: str,
    *,
    has_dead_ends: bool = False,
) -> None:
    """The same of a program that is traced and prepared.

    With ``has_dead_ends`` operators may turn out to change nothing when they are lowered, and what
    they would have been sent is sent no more.
    """
    expected = jax.tree.leaves(jax.jit(program.fun)(*program.args))
    option = ",".join(f"{axis}:{size}" for axis, size in mesh)
    counts = strategy_counts(merged, mesh)
    for seed in seeds:
        solution = ",".join(map(str, choose(counts, seed)))
        what = f"{name} on {option} with {solution} (seed {seed})"
        planning = f"alpa-plan-pipeline{{mesh={option} solution={solution}}}"
        planned, _ = _core.run_pipeline(merged, f"builtin.module({planning})")
        # Forms of equal meaning: each is run by every second seed.
        local, results = run_planned(program, traced, planned, mesh, "tpu" if seed % 2 else "cpu")
        for index, (result, value) in enumerate(zip(results, expected, strict=True)):
            assert result.dtype == value.dtype, what
            compare(result, value, program.tolerance, f"result {index} of {what}")
        assert_bytes_as_predicted(planned, local, mesh, what, has_dead_ends)


def run_planned(
    program: Program,
    traced: TracedProgram,
    planned: str,
    mesh: Sequence[tuple[str, int]],
    platform: str,
) -> tuple[str, Sequence[Any]]:
    """The module of one device in the form for a platform, and its results on the devices here."""
    lowering = f"builtin.module(alpa-spmd-pipeline{{platform={platform}}})"
    local, _ = _core.run_pipeline(planned, lowering)
    run = local
    if platform == "tpu":
        run, _ = _core.run_pipeline(local, "builtin.module(alpa-constrain-blocks)")
    spmd = spmd_program(traced, planned, run, mesh, "planned")
    devices = jax.devices()[: math.prod(size for _, size in mesh)]
    return local, compile_spmd(spmd, devices)(*program.args)


def compare(result: Any, value: Any, tolerance: float, what: str) -> None:
    result, value = np.asarray(result), np.asarray(value)
    if jax.dtypes.issubdtype(value.dtype, np.inexact):
        if not np.issubdtype(value.dtype, np.inexact):  # A type of JAX alone, as bfloat16.
            result, value = result.astype(np.float32), value.astype(np.float32)
        scale = max(1.0, float(np.max(np.abs(value[np.isfinite(value)]), initial=0)))
        np.testing.assert_allclose(
            result, value, rtol=tolerance, atol=tolerance * scale, err_msg=what
        )
    else:
        np.testing.assert_array_equal(result, value, err_msg=what)


def assert_bytes_as_predicted(
    planned: str,
    local: str,
    mesh: Sequence[tuple[str, int]],
    what: str,
    has_dead_ends: bool = False,
) -> None:
    """``communication`` of the plan equals what is counted in the per-device module."""
    volumes = _core.communication(planned)
    predicted: Counter[tuple[int, int]] = Counter()
    for kind, axes, size, count in zip(
        volumes["kind"].tolist(),
        volumes["axes"].tolist(),
        volumes["bytes"].tolist(),
        volumes["count"].tolist(),
        strict=True,
    ):
        predicted[kind, axes] += size * count
    actual = collective_bytes(local, tuple(n for _, n in mesh), trip_counts(planned))
    assert actual <= predicted if has_dead_ends else actual == predicted, what


@pytest.mark.parametrize("name", NAMES)
def test_random_plan_equals_jit(name: str) -> None:
    # Each program on one mesh here; on all of them below.
    mesh = list(MESHES.values())[NAMES.index(name) % len(MESHES)]
    check(name, mesh, range(2))


def test_plans_of_convolutions_of_bytes_equal_jit() -> None:
    """XLA for CPU writes their results in rows, whatever layout a reduce-scatter asks for."""
    numbers = np.random.default_rng(0)
    images = numbers.integers(-3, 4, (16, 8, 8, 8)).astype(np.int8)
    kernel = numbers.integers(-3, 4, (3, 3, 8, 32)).astype(np.int8)

    def convolve(images: jax.Array, kernel: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(
            images,
            kernel,
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            preferred_element_type=jax.numpy.int32,
        )

    program = Program(convolve, (images, kernel))
    # Even numbers: the form for CPU.
    check_plans(program, *prepare(program), MESHES["2x4"], range(0, 24, 2), "convolve_bytes")


@pytest.mark.matrix
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", NAMES)
def test_random_plans_equal_jit_on_every_mesh(name: str, mesh: str) -> None:
    check(name, MESHES[mesh], range(100, 112))
