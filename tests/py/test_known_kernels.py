"""The table of kernels in the documentation: nothing that jax calls is left out, and it is true."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from call_rules import call_rules
from jax import lax
from jax._src.config import threefry_gpu_kernel_lowering
from jax._src.cudnn import fused_attention_stablehlo
from jax._src.export import _export
from jax.experimental.layout import Layout, with_layout_constraint
from jaxlib import lapack
from linear_algebra import PROGRAMS, SIZE

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import ClusterSpec

PAGE = Path(__file__).parents[2] / "docs/kernels.md"
_ROW = re.compile(r"^\| (`[^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
# How jax names targets in its sources, prefixes of libraries left open.
_NAMED = re.compile(
    r"(?:custom_call|ffi_lowering|CustomCallOp)\(\s*f?['\"]([^'\"]+)['\"]"
    r"|(?:target_name|custom_call_name|call_target_name) ?= ?f?['\"]([^'\"]+)['\"]"
    r"|call_target_name=(?:mlir\.)?ir\.StringAttr\.get\(\s*['\"]([^'\"]+)['\"]"
)
BATCH = 16


def rows() -> list[tuple[list[str], str]]:
    """Patterns of targets, and along what they are split."""
    return [(re.findall(r"`([^`]+)`", row[1]), row[3]) for row in _ROW.finditer(PAGE.read_text())]


def split_along(target: str) -> str | None:
    for patterns, dimensions in rows():
        if any(fnmatchcase(target, pattern) for pattern in patterns):
            return dimensions
    return None


def named_in_sources() -> Iterator[str]:
    root = Path(jax.__file__).parent
    for path in (*root.glob("_src/**/*.py"), *root.glob("experimental/**/*.py")):
        if "internal_test_util" in path.parts:
            continue
        for found in _NAMED.finditer(path.read_text()):
            name = re.sub(
                r"\{[^}]*(?:prefix|platform)[^}]*\}", "cu", next(filter(None, found.groups()))
            )
            # What is left are parameters of helpers, and names that are made elsewhere.
            if "{" not in name and "custom_call" not in name.removeprefix("tpu_"):
                yield name


def test_no_target_of_jax_is_missing() -> None:
    known = set(_export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE)
    known |= {name for name, *_ in lapack.registrations()["cpu"]}
    known |= set(fused_attention_stablehlo._custom_name_maps.values())
    sources = set(named_in_sources())
    assert {"Qr", "cusolver_potrf_ffi", "ApproxTopK", "AllocateBuffer"} <= sources
    missing = sorted(name for name in known | sources if split_along(name) is None)
    assert not missing


def test_no_target_in_modules_of_older_versions_is_missing() -> None:
    root = Path(jax.__file__).parent / "_src/internal_test_util/export_back_compat_test_data"
    lists = re.findall(
        r"custom_call_targets=\[([^\]]*)\]", "".join(p.read_text() for p in root.rglob("*.py"))
    )
    found = {name for names in lists for name in re.findall(r"['\"]([^'\"]+)['\"]", names)}
    assert "xla.sdy.FuncResultSharding" in found
    # From before there was a foreign function interface.
    found -= {"hipsolver_syevd", "hipsolver_syevj"}
    assert not sorted(name for name in found if split_along(name) is None)


def lowered(function: Callable[..., Any], platform: str, *args: Any) -> str | None:
    try:
        made = jax.jit(function).trace(*args).lower(lowering_platforms=(platform,))
    except NotImplementedError:
        return None
    operation: Any = made.compiler_ir("stablehlo")
    return str(operation.operation.get_asm(print_generic_op_form=True))


def is_split(rule: str) -> bool:
    kinds = rule[rule.index("{") + 1 : rule.index("}")].split(", ")
    return any(f"={BATCH}" in kind and ":" not in kind for kind in kinds)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "tpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_batches_are_split_where_the_table_says_so(name: str, platform: str) -> None:
    matrices = jax.ShapeDtypeStruct((BATCH, SIZE, SIZE), jnp.float32)
    text = lowered(PROGRAMS[name][1], platform, matrices)
    if text is None:
        pytest.skip(f"jax has no {name} for {platform}")
    for target, rule in call_rules(text).items():
        assert (split_along(target) or "").startswith("batch"), target
        assert is_split(rule), (target, rule)


OTHERS: dict[str, Callable[[Any], Any]] = {
    "ApproxTopK": lambda x: lax.approx_max_k(x, 3),
    "AllocateBuffer": lambda x: x + lax.empty(x.shape, x.dtype),
    "LayoutConstraint": lambda x: with_layout_constraint(x, Layout((1, 0))),
    "annotate_device_placement": lambda x: jax.device_put(x * 2, jax.memory.Space.Host),
    "cusolver_syrk_ffi": lambda x: lax.linalg.symmetric_product(
        x[..., None], x[..., None] * x[:, None], alpha=2.0, beta=1.0
    ),
}


@pytest.mark.parametrize("target", OTHERS)
def test_other_kernels_are_called_on_blocks(target: str) -> None:
    # Sixteen GPUs that are not there.
    step = sa.parallelize(
        OTHERS[target],
        method=sa.DataParallel(mesh_shape=(16,)),
        batch_argnums=0,
        cluster=ClusterSpec.preset("p4d.24xlarge:2"),
    )
    text = step.plan(jax.ShapeDtypeStruct((BATCH * 2, 8), jnp.float32)).module_text("local")
    (call,) = [line for line in text.splitlines() if f'"{target}"' in line]
    assert "-> tensor<2x" in call or "-> (tensor<2x" in call
    assert split_along(target) not in (None, "whole")


def test_random_bits_of_a_kernel_are_split() -> None:
    def bits(key: Any) -> Any:
        return jax.random.bits(jax.random.wrap_key_data(key), (BATCH, 8))

    with threefry_gpu_kernel_lowering(True):
        text = lowered(bits, "cuda", jax.ShapeDtypeStruct((2,), jnp.uint32))
    assert text
    assert is_split(call_rules(text)["cu_threefry2x32_ffi"])


def test_a_layout_is_asked_for_on_blocks() -> None:
    def program(x: Any) -> Any:
        return with_layout_constraint(x * 2, Layout((1, 0))) + 1

    x = np.arange(BATCH * 8, dtype="f").reshape(BATCH, 8)
    method = sa.DataParallel(mesh_shape=(8,))
    step = sa.parallelize(program, method=method, batch_argnums=0)
    np.testing.assert_array_equal(step(x), jax.jit(program)(x))


def test_older_forms_of_top_k_are_rows() -> None:
    text = """
      func.func @main(%a: tensor<16x8xf32>) -> (tensor<16x2xf32>, tensor<16x2xi32>) {
        %0:2 = stablehlo.custom_call @TARGET(%a)
          : (tensor<16x8xf32>) -> (tensor<16x2xf32>, tensor<16x2xi32>)
        return %0#0, %0#1 : tensor<16x2xf32>, tensor<16x2xi32>
      }"""
    for target in ("mhlo.topk", "TopK"):
        assert is_split(call_rules(text.replace("TARGET", target))[target])
