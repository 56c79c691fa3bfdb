"""Kernels of linear algebra run on blocks of their batch, and equal plain jax."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from linear_algebra import DIFFERENTIABLE, PROGRAMS, SIZE, gradient, matrices

import stablehlo_alpa as sa

_CALL = re.compile(r"call_target_name = \"(\w+_ffi)\".* : \(tensor<(\d+)x")


def calls(plan: Any) -> dict[str, set[int]]:
    """Kernels of a device's program, with the sizes of the batch that they are called on."""
    found: dict[str, set[int]] = {}
    for line in plan.module_text("local").splitlines():
        if match := _CALL.search(line):
            found.setdefault(match[1], set()).add(int(match[2]))
    return found


def assert_equal(found: Any, expected: Any) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_batch_that_the_mesh_divides_is_split(name: str) -> None:
    routine, program = PROGRAMS[name]
    step = sa.parallelize(program, method=sa.DataParallel(mesh_shape=(8,)), batch_argnums=0)
    a = matrices(16)
    found = calls(step.plan(a))
    assert any(routine in target for target in found)
    assert all(sizes == {2} for sizes in found.values()), found
    assert_equal(step(a), jax.jit(program)(a))


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_a_gradient_is_split_as_well(name: str) -> None:
    program = gradient(PROGRAMS[name][1])
    step = sa.parallelize(program, method=sa.DataParallel(mesh_shape=(8,)), batch_argnums=0)
    a = matrices(16)
    found = calls(step.plan(a))
    assert found
    assert all(sizes == {2} for sizes in found.values()), found
    assert_equal(step(a), jax.jit(program)(a))


@pytest.mark.parametrize("routine", sorted({routine for routine, _ in PROGRAMS.values()}))
def test_six_complex_matrices_on_two_devices(routine: str) -> None:
    program = next(program for own, program in PROGRAMS.values() if own == routine)
    step = sa.parallelize(
        program,
        method=sa.DataParallel(mesh_shape=(2,)),
        batch_argnums=0,
        devices=jax.devices()[:2],
    )
    a = matrices(6, np.complex64)
    found = calls(step.plan(a))
    assert found
    assert all(sizes == {3} for sizes in found.values()), found
    assert_equal(step(a), jax.jit(program)(a))


@pytest.mark.parametrize("count", [3, 6])
@pytest.mark.parametrize("routine", sorted({routine for routine, _ in PROGRAMS.values()}))
def test_a_batch_that_the_mesh_does_not_divide(routine: str, count: int) -> None:
    program = next(program for own, program in PROGRAMS.values() if own == routine)
    step = sa.parallelize(program, method=sa.ShardParallel(mesh_shape=(2, 4)))
    a = matrices(count)
    assert_equal(step(a), jax.jit(program)(a))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("target", ["trsm", "ormqr"])
def test_sides_of_one_matrix_are_split(target: str, left: bool, transpose: bool) -> None:
    def program(a: Any, sides: Any) -> Any:
        sides = sides.T if left else sides
        if target == "trsm":
            a = a + 4 * SIZE * jnp.eye(SIZE)
            return lax.linalg.triangular_solve(a, sides, left_side=left, transpose_a=transpose)
        raw, factors = jnp.linalg.qr(a, mode="raw")
        return lax.linalg.ormqr(raw.T, factors, sides, left=left, transpose=transpose)

    step = sa.parallelize(program, method=sa.DataParallel(mesh_shape=(8,)), batch_argnums=1)
    a = matrices(1)[0]
    sides = np.random.default_rng(1).normal(size=(64, SIZE)).astype("f")
    text = step.plan(a, sides).module_text("local")
    (call,) = [line for line in text.splitlines() if f"lapack_s{target}" in line]
    assert f"-> tensor<{'5x8' if left else '8x5'}xf32>" in call
    assert_equal(step(a, sides), jax.jit(program)(a, sides))


def test_a_matrix_that_is_no_batch_is_said_to_be_whole() -> None:
    a = np.eye(256, dtype="f") * 2
    plan = sa.parallelize(jnp.linalg.cholesky, method=sa.ShardParallel(mesh_shape=(8,))).plan(a)
    (remark,) = [text for text in plan.remarks if "lapack_spotrf_ffi" in text]
    # n^3 / 3
    assert "no dimension that can be split" in remark
    assert f"every device does {256**3 // 3} FLOPs" in remark
