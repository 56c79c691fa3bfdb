"""Modules of JAX go through stablehlo-alpa-opt and come back unchanged."""

import os
import pathlib
import subprocess

import jax
import jax.numpy as jnp
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("STABLEHLO_ALPA_BUILD", ROOT / "build"))
TOOL = BUILD / "bin" / "stablehlo-alpa-opt"

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")


def _mlp(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(x @ w) ** 2)


def _conv(w: jax.Array, x: jax.Array) -> jax.Array:
    numbers = ("NHWC", "HWIO", "NHWC")
    y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)
    y = (y - y.mean((0, 1, 2))) / jnp.sqrt(y.var((0, 1, 2)) + 1e-5)
    window = (1, 2, 2, 1)
    return jnp.sum(jax.lax.reduce_window(y, -jnp.inf, jax.lax.max, window, window, "SAME") ** 2)


def _scan(w: jax.Array, x: jax.Array) -> jax.Array:
    carry, _ = jax.lax.scan(lambda c, xi: (jnp.tanh(c @ w + xi), None), jnp.zeros((4,)), x)
    return jnp.sum(carry)


def _misc(w: jax.Array, x: jax.Array) -> jax.Array:
    picked = x[jnp.array([1, 0])] + jax.lax.top_k(x, 4)[0][:2]
    spectrum = jnp.abs(jnp.fft.rfft(x)).sum()
    return jnp.sum(jnp.sort(x, 0) @ w) + jnp.sum(picked) + spectrum


PROGRAMS = {
    "mlp": (_mlp, (8, 4), (2, 8)),
    "conv": (_conv, (3, 3, 2, 4), (2, 8, 8, 2)),
    "scan": (_scan, (4, 4), (5, 4)),
    "misc": (_misc, (4, 4), (6, 4)),
}


def _opt(text: str, *flags: str) -> str:
    command = [str(TOOL), "--allow-unregistered-dialect", *flags]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("is_generic", [True, False])
def test_text_returns_unchanged(name: str, is_generic: bool) -> None:
    function, *shapes = PROGRAMS[name]
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes]
    module = jax.jit(jax.value_and_grad(function)).lower(*arguments).compiler_ir("stablehlo")
    assert module is not None
    text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
    expected = module.operation.get_asm(print_generic_op_form=is_generic, enable_debug_info=True)
    flags = ["--mlir-print-debuginfo"] + (["--mlir-print-op-generic"] if is_generic else [])
    assert _opt(text, *flags).strip() == expected.strip()
