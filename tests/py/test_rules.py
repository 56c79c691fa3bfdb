"""Sharding rules as text: of every operator, pasted back, and of kernels that users name."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import PROGRAMS
from test_random_plans import MESHES, choose, prepare, strategy_counts

import stablehlo_alpa as sa
from stablehlo_alpa import KernelRule, _core, register_rule
from stablehlo_alpa.errors import CompileError, ShardingError, TraceError
from stablehlo_alpa.frontend import rules as registry

WRITE = "builtin.module(alpa-print-sharding-rules{as-attributes=true})"


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_rules_that_are_pasted_back_give_the_same_plan(name: str) -> None:
    mesh = MESHES["2x4"]
    _, merged = prepare(PROGRAMS[name])
    carried, _ = _core.run_pipeline(merged, WRITE)
    graph, again = (_core.strategy_graph(text, list(mesh)) for text in (merged, carried))
    structure: Any = jax.tree.structure(graph)
    assert structure == jax.tree.structure(again)
    for value, other in zip(jax.tree.leaves(graph), jax.tree.leaves(again), strict=True):
        assert np.array_equal(value, other)
    option = ",".join(f"{axis}:{size}" for axis, size in mesh)
    solution = ",".join(map(str, choose(strategy_counts(merged, mesh), seed=5)))
    plan = f"alpa-plan-pipeline{{mesh={option} solution={solution}}},alpa-spmd-pipeline"
    texts = [_core.run_pipeline(t, f"builtin.module({plan})")[0] for t in (merged, carried)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_rules_that_are_pasted_back_before_import_give_the_same_program(name: str) -> None:
    traced, merged = prepare(PROGRAMS[name])
    carried, _ = _core.run_pipeline(traced.text, WRITE)
    assert "alpa.rule" in carried
    pipeline = f"builtin.module(alpa-prepare-pipeline{{{traced.state_option}}})"
    assert _core.run_pipeline(carried, pipeline)[0] == merged


# A kernel that XLA's CPU client has: Cholesky factors of matrices, and whether there is one.
TARGET = "lapack_spotrf_ffi"
RULE = "b i j -> b k l, b"


@pytest.fixture(scope="module", autouse=True)
def lapack() -> None:
    """LAPACK is there once jax has needed it."""
    jnp.linalg.cholesky(jnp.eye(2))


def factor(a: Any) -> Any:
    types = (jax.ShapeDtypeStruct(a.shape, a.dtype), jax.ShapeDtypeStruct(a.shape[:1], jnp.int32))
    return jax.ffi.ffi_call(TARGET, types)(a, uplo=np.uint8(ord("L")))


def matrices() -> np.ndarray:
    a = np.random.default_rng(0).normal(size=(16, 4, 4)).astype("f")
    return a @ a.swapaxes(1, 2) + 4 * np.eye(4, dtype="f")


def step(a: Any) -> Any:
    lower, info = factor(a)
    return jnp.tanh(lower), info


def test_a_kernel_is_split_by_its_rule() -> None:
    method = sa.DataParallel(mesh_shape=(8,))
    rule = KernelRule.parse(TARGET, RULE)
    whole, split = (
        sa.parallelize(step, method=method, batch_argnums=0, rules=rules) for rules in ((), [rule])
    )
    a = matrices()
    for parallel, size in ((whole, 16), (split, 2)):
        text = parallel.plan(a).module_text("local")
        calls = [line for line in text.splitlines() if "stablehlo.custom_call" in line]
        assert calls
        assert all(f"(tensor<{size}x4x4xf32>)" in call for call in calls)
        for found, expected in zip(parallel(a), jax.jit(step)(a), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_rule_stands_in_the_program() -> None:
    rules = [KernelRule.parse(TARGET, RULE)]
    text = sa.parallelize(step, method=sa.DataParallel(), rules=rules).plan(matrices())
    assert "alpa.rule = #alpa.rule<([b, i, j]) -> ([b, k, l], [b])" in text.module_text("traced")


def test_registration_is_for_the_process_and_traces_keep_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Other tests of the process have no rule for the kernel.
    monkeypatch.setattr(registry, "_registered", registry.registered_rules())
    parallel = sa.parallelize(lambda a: factor(a)[0], method=sa.DataParallel(mesh_shape=(8,)))
    before = parallel.plan(matrices())
    rule = register_rule(TARGET, RULE)
    assert register_rule(TARGET, RULE) == rule
    with pytest.raises(ShardingError, match=r"'b i j -> b i j, b' of @lapack_spotrf_ffi cannot be"):
        register_rule(TARGET, "b i j -> b i j, b")
    assert parallel.plan(matrices()) is before
    later = sa.parallelize(lambda a: factor(a)[0], method=sa.DataParallel(mesh_shape=(8,)))
    assert "alpa.rule" in later.plan(matrices()).module_text("traced")


def test_a_matrix_product_of_a_kernel_sums() -> None:
    made = KernelRule.parse(
        "mm", "(i j) k, k l 1 -> i j l", reductions={"k": "sum"}, sizes={"i": 2}
    )
    assert made.attribute == "#alpa.rule<([(i j), k], [k, l, 1]) -> ([i, j, l]) {i=2, j, k=sum, l}>"


def test_what_only_one_side_has_is_replicated() -> None:
    made = KernelRule.parse("attend", "b s h d, b t h d, b t h d -> b s h d")
    assert "{b, s, h, d, t=replicated}" in made.attribute


@pytest.mark.parametrize(
    ("notation", "options", "message"),
    [
        ("a b", {}, r"rule 'a b' of @kernel has 0 arrows, not 1"),
        ("a a -> a", {}, r"has a tensor with factor 'a' twice"),
        ("a -> $", {}, r"'\$' is no factor"),
        ("a -> a", {"reductions": {"b": "sum"}}, r"reduces 'b', it has \['a'\]"),
        ("a b -> a", {"reductions": {"b": "mean"}}, r"reduces 'b' by 'mean', not by"),
        ("a -> a", {"reductions": {"a": "sum"}}, r"reduces 'a', and a result has it"),
        ("a -> a", {"sizes": {"a": 0}}, r"gives factor 'a' size 0"),
    ],
)
def test_rules_of_another_form_are_refused(
    notation: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShardingError, match=message):
        KernelRule.parse("kernel", notation, **options)


@pytest.mark.parametrize(
    ("notation", "message"),
    [
        ("b i j, b -> b k l, b", r"names 2 operands, a call of it has 1: tensor<16x4x4xf32>"),
        ("b i j -> b k l", r"names 1 results, a call of it has 2"),
        ("b i -> b k l, b", r"gives operand 0 2 dimensions, in a call of it it has 3"),
    ],
)
def test_calls_that_do_not_fit_are_refused(notation: str, message: str) -> None:
    rules = [KernelRule.parse(TARGET, notation)]
    parallel = sa.parallelize(step, method=sa.DataParallel(), rules=rules)
    with pytest.raises(TraceError, match=message):
        parallel.plan(matrices())


def test_sizes_that_do_not_fit_are_refused() -> None:
    rules = [KernelRule.parse(TARGET, "(b c) i j -> (b c) k l, (b c)", sizes={"b": 3})]
    parallel = sa.parallelize(step, method=sa.DataParallel(), rules=rules)
    with pytest.raises(CompileError, match="whose size no shape gives"):
        parallel.plan(matrices())


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.int16])
def test_upper_halves_of_products(dtype: Any) -> None:
    """Of 64 bits there is no wider type to multiply in; Python's integers have all bits."""
    limits = np.iinfo(dtype)
    half = 1 << limits.bits // 2
    ends = [limits.min, limits.min + 1, -1 if limits.min else 1, 0, 1, half, limits.max]
    drawn = np.random.default_rng(3).integers(limits.min, limits.max, (8, 8), dtype, endpoint=True)
    a, b = (grid.reshape(-1) for grid in np.meshgrid(np.array(ends, dtype), drawn.reshape(-1)))
    b[: a.size // 2] = np.resize(np.array(ends[::-1], dtype), a.size // 2)
    exact = [int(x) * int(y) >> limits.bits for x, y in zip(a, b, strict=True)]
    with jax.enable_x64(True):
        found = sa.parallelize(jax.lax.mulhi, method=sa.ShardParallel(mesh_shape=(8,)))(a, b)
    assert found.dtype == dtype
    assert np.asarray(found).tolist() == exact
