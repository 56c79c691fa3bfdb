"""Arg-reductions, sorts, the greatest elements and running totals, along a split dimension."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_random_plans
from jax import lax
from often import seldom
from programs import PROGRAMS, Program, real

import stablehlo_alpa
from stablehlo_alpa import Plan, ShardParallel
from stablehlo_alpa.compiler.measures import Work

MESHES = {**test_random_plans.MESHES, "3": (("x", 3),)}
# 24 is divided by all meshes, 25 by none; rows of 5 leave the other dimension to split.
ROWS = 5


def tied(*shape: int) -> Any:
    """Numbers of which many are equal, some infinite and some not there."""
    a = np.round(4 * real(*shape)).astype(np.float32)
    a.reshape(-1)[3::17] = np.inf
    a.reshape(-1)[5::19] = -np.inf
    return a


def with_nan(*shape: int) -> Any:
    a = tied(*shape)
    a[1, 7] = a[1, 20] = a[3, 0] = np.nan
    a[2] = -np.inf
    return a


def places(a: Any) -> Any:
    return jnp.argmax(a, 1), jnp.argmin(a, 1), jnp.argmax(a), jnp.argmin(a.T, 0)


def reductions(a: Any, b: Any) -> Any:
    def of_pairs(x: Any, y: Any) -> Any:
        return x[0] + y[0], jnp.minimum(x[1], y[1])

    both = lax.reduce((a, b), (np.float32(0), np.float32(np.inf)), of_pairs, (0, 1))
    return both, lax.reduce(b, np.float32(-np.inf), jnp.logaddexp, (1,))


def greatest(a: Any) -> Any:
    return lax.top_k(a, 3), lax.top_k(a, 23), lax.top_k(a[0], 2)


def gradient_of_greatest(a: Any, b: Any) -> Any:
    def loss(a: Any) -> Any:
        values, positions = lax.top_k(a, 3)
        return (values * jnp.take_along_axis(b, positions, 1)).sum()

    return jax.value_and_grad(loss)(a)


def totals(a: Any) -> Any:
    return (
        *(lax.cumsum(a, 1), lax.cumsum(a, 1, reverse=True), lax.cumsum(a, 0)),
        *(lax.cumprod(a, 1), lax.cumprod(a, 1, reverse=True)),
        *(lax.cummax(a, 1), lax.cummin(a, 1, reverse=True)),
        lax.cumlogsumexp(a, 1),
        jnp.cumsum(a),
        jnp.cumsum((4 * a).astype(jnp.int8), 1),
    )


def gradient_of_totals(a: Any, b: Any) -> Any:
    def loss(a: Any) -> Any:
        parts = (lax.cumsum(a, 1), lax.cumlogsumexp(a, 1, reverse=True), lax.cumprod(a, 1))
        return sum((part * b).sum() for part in parts)

    return jax.grad(loss)(a)


def totals_of_two_dimensions(a: Any) -> Any:
    rows, columns = a.shape
    padding = ((rows - 1, 0), (0, columns - 1))
    return lax.reduce_window(a, np.float32(0), lax.add, a.shape, (1, 1), padding)


PLANNED: dict[str, Program] = {}
for width in (24, 25):
    PLANNED |= {
        f"places_{width}": Program(places, (tied(ROWS, width),)),
        f"places_with_nan_{width}": Program(places, (with_nan(ROWS, width),)),
        f"reductions_{width}": Program(
            reductions, (real(ROWS, width), real(ROWS, width, seed=1)), 1e-4
        ),
        f"greatest_{width}": Program(greatest, (tied(ROWS, width),)),
        f"greatest_with_nan_{width}": Program(greatest, (with_nan(ROWS, width),)),
        f"gradient_of_greatest_{width}": Program(
            gradient_of_greatest, (real(ROWS, width), real(ROWS, width, seed=1))
        ),
        f"totals_{width}": Program(totals, (1 + real(ROWS, width) / 4,), 1e-4),
        f"gradient_of_totals_{width}": Program(
            gradient_of_totals, (1 + real(ROWS, width) / 4, real(ROWS, width, seed=1)), 1e-4
        ),
    }
PLANNED["totals_of_two_dimensions"] = Program(totals_of_two_dimensions, (real(24, 48),), 1e-4)


# In the form for CPU on every other mesh, in that for TPU on those between; seldom the other way.
FORMS = pytest.mark.parametrize("form", [0, seldom(1)])


@FORMS
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", PLANNED)
def test_random_plans_equal_jit(
    name: str, mesh: str, form: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROGRAMS, name, PLANNED[name])
    number = list(PLANNED).index(name) + list(MESHES).index(mesh) + form
    test_random_plans.check(name, MESHES[mesh], range(number, number + 1))


# Blocks of rows that 2, 3, 4 and 8 devices sort together: 8 * 8 and 3 * 3 divide it, and
# 7488 / 8 >= 2 * 7 * 7.
SORTED = 7488


def signed(*shape: int) -> Any:
    """Numbers many of which are equal, zeros of both signs, infinite, or not there."""
    a = with_nan(*shape)
    a[0, ::5] = -0.0
    a[0, 1::5] = 0.0
    return a


def sorts(a: Any) -> Any:
    whole = (100 * jnp.nan_to_num(a, posinf=1, neginf=0)).astype(jnp.int8)
    return (
        *(jnp.sort(a, 1), jnp.sort(a[0], descending=True), jnp.sort(a.T.astype(jnp.bfloat16), 0)),
        *(jnp.sort(whole, 1), jnp.sort(whole.astype(jnp.uint8), 1), jnp.sort(whole[0] > 20)),
        lax.bitcast_convert_type(jnp.sort(a, 1), jnp.uint32),
    )


def sorts_of_several(a: Any) -> Any:
    keys = jnp.round(jnp.nan_to_num(a[0], posinf=1, neginf=0))
    return (
        *(jnp.argsort(a, 1), jnp.argsort(a[1], descending=True), jnp.argsort(keys, stable=False)),
        lax.sort((keys, a[1], jnp.arange(SORTED, 0, -1, jnp.uint8)), num_keys=2),
        jnp.lexsort((a[3], keys)),
        jnp.sort(lax.complex(keys, jnp.round(a[3]))),
    )


def gradient_of_sorts(a: Any, b: Any) -> Any:
    def loss(a: Any) -> Any:
        return (jnp.sort(a, 1) * b).sum() + jnp.median(a * b) + jnp.quantile(a, 0.9, 1).sum()

    return jax.value_and_grad(loss)(a)


SORTS = {
    "sorts": Program(sorts, (signed(ROWS, SORTED),)),
    "sorts_of_several": Program(sorts_of_several, (signed(ROWS, SORTED),)),
    "gradient_of_sorts": Program(
        gradient_of_sorts, (real(ROWS, SORTED), real(ROWS, SORTED, seed=1)), 1e-4
    ),
}


@FORMS
@pytest.mark.parametrize("mesh", ["8", seldom("2x4"), "2x2x2", "3"])
@pytest.mark.parametrize("name", SORTS)
def test_random_plans_of_sorts_equal_jit(
    name: str, mesh: str, form: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROGRAMS, name, SORTS[name])
    number = list(SORTS).index(name) + list(MESHES).index(mesh) + form
    test_random_plans.check(name, MESHES[mesh], range(number, number + 1))


ROWS_OF_LOGITS, HIDDEN, VOCABULARY = 4, 2048, 32768


def plan_of(fun: Any) -> Plan:
    method = ShardParallel(mesh_shape=(8,))
    step = stablehlo_alpa.parallelize(fun, method=method, cluster="dgx-a100:1")
    x = jax.ShapeDtypeStruct((1, ROWS_OF_LOGITS, HIDDEN), np.float32)
    return step.plan(x, jax.ShapeDtypeStruct((HIDDEN, VOCABULARY), np.float32))


FUNCTIONS = {
    "argmax": lambda x, w: jnp.argmax((x @ w)[0], -1),
    "top_k": lambda x, w: lax.top_k((x @ w)[0], 4)[1],
    "cumsum": lambda x, w: lax.cumsum(jax.nn.relu(x @ w)[0], 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_logits_stay_split_by_words(name: str) -> None:
    """Candidates are gathered, not logits."""
    plan = plan_of(FUNCTIONS[name])
    gathered = [one.bytes for one in plan.communication() if one.kind == "all_gather"]
    assert 0 < sum(gathered) < 4 * ROWS_OF_LOGITS * VOCABULARY / 8
    work = Work.of(plan.module_text("planned"))
    assert work.is_split[np.array(work.ops) == "stablehlo.dot_general"].all()


def test_words_that_no_mesh_divides_are_padded_for_an_argmax() -> None:
    def sample(x: Any, w: Any) -> Any:
        return jnp.argmax((x @ w)[0], -1)

    x, w = real(1, ROWS, 64), real(64, 1001)
    w[:, 5:] -= np.inf
    step = stablehlo_alpa.parallelize(sample, method=ShardParallel(mesh_shape=(8,)))
    np.testing.assert_array_equal(step(x, w), jax.jit(sample)(x, w))


def test_micro_batches_are_no_blocks_of_a_running_total() -> None:
    """What examples have in common is made of all of them, and the batch is gone through twice."""

    def loss(w: Any, x: Any) -> Any:
        return (lax.cumsum(x @ w, 0) ** 2).mean()

    def step(w: Any, x: Any) -> Any:
        return stablehlo_alpa.grad(loss)(w, x)

    method = ShardParallel(mesh_shape=(8,), num_micro_batches=2)
    parallel = stablehlo_alpa.parallelize(step, method=method, batch_argnums=1)
    w, x = real(16, 16), real(16, 16)
    gradient = jax.jit(jax.grad(loss))(w, x)
    np.testing.assert_allclose(parallel(w, x), gradient, rtol=1e-5, atol=1e-5)
    assert any("gone through once more" in one for one in parallel.plan(w, x).remarks)
