"""Convolutions that padding cuts off, split along space, are right where XLA for CPU is not."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from programs import Program, real
from test_random_plans import prepare, run_planned, strategy_counts

from stablehlo_alpa import _core

KERNEL = real(3, 2, 4, 8, seed=1)
LAYOUT = ("NHWC", "HWIO", "NHWC")


def transposed(x: Any) -> Any:
    """With padding that is larger than the kernel, and holes between rows."""
    return lax.conv_general_dilated(
        x, KERNEL, (1, 1), ((2, 1), (3, 0)), lhs_dilation=(2, 1), dimension_numbers=LAYOUT
    )


def gradient_of_transposed(g: Any) -> Any:
    """Columns are cut off at one end and padded at the other, rows have halves of windows."""
    (x,) = jax.linear_transpose(transposed, jnp.zeros((8, 10, 9, 4)))(g)
    return x


def written_out(g: Any) -> Any:
    """The same, with padding by an operator of its own."""
    padded = lax.pad(g, jnp.float32(0), ((0, 0, 0), (0, 1, 0), (-2, 1, 0), (0, 0, 0)))
    kernel = jnp.flip(KERNEL, (0, 1)).swapaxes(2, 3)
    return lax.conv_general_dilated(padded, kernel, (2, 1), "VALID", dimension_numbers=LAYOUT)


@pytest.mark.parametrize("mesh", [(("x", 2),), (("x", 2), ("y", 4))])
def test_columns_that_are_cut_off(mesh: Any) -> None:
    program = Program(gradient_of_transposed, (real(8, 20, 11, 8),), 1e-4)
    traced, merged = prepare(program)
    expected = np.asarray(jax.jit(written_out)(*program.args))
    axes = ",".join(f"{axis}:{size}" for axis, size in mesh)
    choices = [*itertools.product(*map(range, strategy_counts(merged, mesh)))]
    chosen = np.random.default_rng(0).permutation(len(choices))[:24]
    for solution in (choices[i] for i in chosen):
        option = f"mesh={axes} solution={','.join(map(str, solution))}"
        planned, _ = _core.run_pipeline(merged, f"builtin.module(alpa-plan-pipeline{{{option}}})")
        _, (found,) = run_planned(program, traced, planned, mesh, "cpu")
        np.testing.assert_allclose(found, expected, 1e-4, 1e-4, err_msg=option)
