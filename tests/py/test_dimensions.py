"""Which dimensions go together, and how products use those of arguments."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("stablehlo_alpa._core")

from stablehlo_alpa.compiler import BoundaryClasses, Module
from stablehlo_alpa.frontend import Function, trace, trace_function


def classes(fun: Any, *shapes: Any) -> BoundaryClasses:
    args = [s if hasattr(s, "dtype") else np.zeros(s, "f") for s in shapes]
    text = trace(fun, args, {}).text
    module = Module(text, "f")
    module.run("alpa-prepare-pipeline")
    return BoundaryClasses.of(module)


def uses(found: BoundaryClasses, argument: int) -> list[str]:
    return [use.name.lower() for use in found.uses[argument]]


def test_a_product_says_how_it_uses_dimensions() -> None:
    def fun(experts: Any, matrix: Any, x: Any) -> Any:
        y = jnp.einsum("etd,edf->etf", x, experts)
        return jnp.einsum("etf,gf->etg", y, matrix.T.astype("f"))

    found = classes(fun, (4, 8, 6), (6, 10), (4, 16, 8))
    assert uses(found, 0) == ["batch", "contracted", "free"]
    assert uses(found, 1) == ["contracted", "free"]
    # The features between the two are one class; so are the experts.
    assert found.inputs[0][2] == found.inputs[1][0] >= 0
    assert found.inputs[0][0] == found.inputs[2][0] == found.outputs[0][0] >= 0
    assert found.inputs[1][1] == found.outputs[0][2]


def test_rows_in_groups_say_which_dimension_counts_them() -> None:
    """The gradient of weights in groups has a dimension that neither of its operands has."""

    def fun(weights: Any, x: Any, sizes: Any) -> Any:
        gradient = jax.grad(lambda w: (jax.lax.ragged_dot(x, w, sizes) ** 2).sum())(weights)
        return weights - gradient, gradient

    args = (np.zeros((4, 8, 6), "f"), np.zeros((32, 8), "f"), np.zeros(4, np.int32))
    module = Module(trace_function(Function(fun), args, {}, platform="tpu").text, "f")
    module.run("alpa-prepare-pipeline")
    found = BoundaryClasses.of(module)
    assert uses(found, 0) == ["batch", "contracted", "free"]
    assert found.inputs[0] == found.outputs[0] == found.outputs[1]


def test_taps_of_a_window_are_summed_over() -> None:
    def fun(kernel: Any, x: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            x, kernel, (1, 1), ((1, 1), (1, 1)), None, None, numbers
        )

    # As many taps as pixels, as the gradient of a kernel has: the loop over them is split.
    found = classes(fun, (16, 16, 8, 6), (2, 16, 16, 8))
    assert uses(found, 0) == ["contracted", "contracted", "contracted", "free"]


def test_only_data_look_up_rows() -> None:
    def fun(table: Any, positions: Any, tokens: Any) -> Any:
        return table[tokens] + positions[jnp.arange(12)]

    found = classes(fun, (64, 8), (32, 8), np.zeros((4, 12), np.int32))
    assert uses(found, 0) == ["looked_up", "none"]
    assert uses(found, 1) == ["none", "none"]


def test_reductions_are_no_products() -> None:
    def fun(weight: Any, x: Any) -> Any:
        return x @ (weight - weight.mean(0)) + jnp.sort(weight, axis=0).sum()

    assert uses(classes(fun, (8, 6), (4, 8)), 0) == ["none", "none"]


def test_layers_of_a_scan_are_seen_through_it() -> None:
    def fun(stack: Any, x: Any) -> Any:
        def body(x: Any, layer: Any) -> Any:
            return x + jnp.tanh(x @ layer[0]) @ layer[1], None

        return jax.lax.scan(body, x, stack)[0]

    found = classes(lambda up, down, x: fun((up, down), x), (3, 8, 16), (3, 16, 8), (4, 8))
    assert uses(found, 0) == ["none", "contracted", "free"]
    assert uses(found, 1) == ["none", "contracted", "free"]
    assert found.inputs[0][2] == found.inputs[1][1] >= 0
    assert found.inputs[0][1] == found.inputs[1][2] == found.inputs[2][1] >= 0
    assert found.inputs[2] == found.outputs[0]


def test_constants_and_broadcasts_join_nothing() -> None:
    def fun(a: Any, b: Any, scale: Any) -> Any:
        zeros, spread = jnp.zeros(8), jnp.full(8, 1.0) * scale
        return jnp.maximum(a, zeros) * spread, jnp.maximum(b, zeros) * spread

    found = classes(fun, (8,), (8,), ())
    assert found.inputs[0] == found.outputs[0]
    assert found.inputs[1] == found.outputs[1]
    assert found.inputs[0] != found.inputs[1]
