"""Constants of every element type and size cross into the compiler and back unchanged."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax._src.interpreters import mlir as jax_mlir
from jax.extend.mlir import ir

import stablehlo_alpa
from stablehlo_alpa import ShardParallel, _core

# Bytes that jaxlib keeps for an element, and the largest value of a byte that is an element.
ELEMENTS = {
    "i1": (1, 1),
    "i2": (1, 3),
    "ui2": (1, 3),
    "i4": (1, 15),
    "ui4": (1, 15),
    "i8": (1, 255),
    "ui8": (1, 255),
    "i16": (2, 255),
    "i32": (4, 255),
    "ui32": (4, 255),
    "i64": (8, 255),
    "f4E2M1FN": (1, 15),
    "f6E2M3FN": (1, 63),
    "f8E4M3FN": (1, 255),
    "f8E5M2": (1, 255),
    "bf16": (2, 255),
    "f16": (2, 255),
    "f32": (4, 255),
    "f64": (8, 255),
    "complex<f32>": (8, 255),
    "complex<f64>": (16, 255),
}


def constant(element: str, shape: tuple[int, ...], data: bytes) -> str:
    """A module of jaxlib's that returns elements, given by their bytes."""
    tensor = f"tensor<{''.join(f'{size}x' for size in shape)}{element}>"
    text = (
        f"func.func public @main() -> {tensor} {{\n"
        f'  %0 = stablehlo.constant dense<"0x{data.hex()}"> : {tensor}\n'
        f"  return %0 : {tensor}\n}}"
    )
    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        printed = str(module.operation.get_asm(print_generic_op_form=True))
        return printed.strip()


def assert_unchanged(text: str) -> None:
    """Our text is jaxlib's text, in the generic form and after the pretty one."""
    generic = _core.run_pipeline(text, "builtin.module()", generic=True, locations=False)[0]
    assert generic.strip() == text
    pretty = _core.run_pipeline(text, "builtin.module()", generic=False, locations=False)[0]
    with jax_mlir.make_ir_context():
        read = str(ir.Module.parse(pretty).operation.get_asm(print_generic_op_form=True))
    assert read.strip() == text


@settings(max_examples=60, deadline=None)
@given(
    element=st.sampled_from(sorted(ELEMENTS)),
    shape=st.lists(st.integers(1, 24), min_size=1, max_size=3).map(tuple),
    is_splat=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_elements_cross_unchanged(
    element: str, shape: tuple[int, ...], is_splat: bool, seed: int
) -> None:
    width, most = ELEMENTS[element]
    count = 1 if is_splat else int(np.prod(shape))
    values = np.random.default_rng(seed).integers(0, most + 1, count * width, np.uint8)
    assert_unchanged(constant(element, shape, values.tobytes()))


@pytest.mark.parametrize("element", ["i1", "i4", "f32"])
def test_a_million_elements_cross_unchanged(element: str) -> None:
    width, most = ELEMENTS[element]
    values = np.random.default_rng(0).integers(0, most + 1, 10**6 * width, np.uint8)
    assert_unchanged(constant(element, (1000, 1000), values.tobytes()))


@pytest.mark.parametrize("size", [3, 10, 11, 40])
def test_masks_of_numpy_can_be_planned(size: int) -> None:
    """More than a hundred booleans are written as bytes."""
    mask = np.tril(np.ones((size, size), bool))

    def step(x: Any) -> jax.Array:
        return jnp.where(mask, x, 0) @ x.T

    # Whole numbers add up to the same in any order.
    x = np.random.default_rng(0).integers(-8, 9, (size, size)).astype(np.float32)
    planned = stablehlo_alpa.parallelize(step, method=ShardParallel(mesh_shape=(2, 4)))
    np.testing.assert_array_equal(planned(x), step(jnp.asarray(x)))
