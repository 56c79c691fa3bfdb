"""Sizes that the devices do not divide are padded inside of a program, and nothing else changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import test_random_plans
import test_random_step_plans
from comparing import assert_equals_jit
from jax import lax
from models import gpt
from models.case import TrainCase
from often import seldom
from programs import Program, real, whole
from random_programs import Recipe
from test_random_programs import examples

import stablehlo_alpa
from stablehlo_alpa import Plan, ShardParallel, _core
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.inter_op import sweep
from stablehlo_alpa.inter_op.forms import layered_forms
from stablehlo_alpa.planning import planner
from stablehlo_alpa.planning.planner import prepared_forms

MESHES = {**test_random_plans.MESHES, "3": (("x", 3),)}
PADDED: dict[str, Program] = {}


def padded(*args: Any, tolerance: float = 2e-5) -> Callable[[Callable[..., Any]], Any]:
    """Registers a function under its name."""

    def register(fun: Callable[..., Any]) -> Callable[..., Any]:
        PADDED[fun.__name__] = Program(fun, args, tolerance)
        return fun

    return register


def gradients(loss: Callable[..., Any], *args: Any) -> Any:
    return jax.value_and_grad(loss, tuple(range(len(args))))(*args)


@padded(real(8, 13), real(13, 11), real(11, 8))
def chain_of_products(x: Any, w: Any, v: Any) -> Any:
    return gradients(lambda x, w, v: ((jnp.exp(x @ w) / (x @ w)) @ v).sum(), x, w, v)


@padded(real(8, 12), real(29, 12), whole(29, 8))
def cross_entropy_of_tied_table(x: Any, table: Any, labels: Any) -> Any:
    def loss(x: Any, table: Any) -> Any:
        x = x + table[labels]
        logits = jax.nn.log_softmax(x @ table.T)
        return -jnp.take_along_axis(logits, labels[:, None], 1).mean()

    return gradients(loss, x, table)


@padded(real(8, 12), real(12, 29), np.array([-3, -29, -30, 0, 28, 29, 31, 1000], np.int32))
def labels_out_of_range(x: Any, w: Any, labels: Any) -> Any:
    def loss(mode: Any, x: Any, w: Any) -> Any:
        rows = jnp.arange(8)
        return jnp.tanh(x @ w).at[rows, labels].get(mode=mode, fill_value=0.5)

    modes = ("clip", "fill", "promise_in_bounds")
    inside = jnp.clip(labels, 0, 28)
    picked = [loss(mode, x, w) for mode in modes[:2]]
    picked.append(jnp.tanh(x @ w).at[jnp.arange(8), inside].get(mode="promise_in_bounds"))
    updated = (x @ w).at[jnp.arange(8), labels].add(1.0, mode="drop") @ w.T
    return picked, updated, gradients(lambda x, w: (loss("clip", x, w) ** 2).sum(), x, w)


@padded(real(10, 12), real(12, 6), real(10, 6), tolerance=1e-4)
def odd_batch_with_statistics(x: Any, w: Any, y: Any) -> Any:
    def loss(w: Any) -> Any:
        h = x @ w
        extrema = jnp.max(h) + jnp.log(9 - h.min(0)).sum()
        h = (h - h.mean(0)) / jnp.sqrt(h.var(0) + 1e-5)
        return ((h - y) ** 2).mean() + extrema

    return gradients(loss, w)


@padded(real(2, 5, 12), real(12, 3, 8), real(12, 3, 8, seed=1), real(3, 8, 12))
def attention_of_three_heads(x: Any, wq: Any, wk: Any, wo: Any) -> Any:
    def loss(wq: Any, wk: Any, wo: Any) -> Any:
        q, k = jnp.einsum("bse,ehd->bshd", x, wq), jnp.einsum("bse,ehd->bshd", x, wk)
        scores = jnp.einsum("bihd,bjhd->bhij", q, k)
        scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -jnp.inf)
        mixed = jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(scores), k)
        return (jnp.einsum("bihd,hde->bie", mixed, wo) ** 2).mean()

    return gradients(loss, wq, wk, wo)


@padded(real(6, 9, 9, 3), real(3, 3, 3, 10), whole(10, 6))
def convolution_and_pooling(x: Any, k: Any, labels: Any) -> Any:
    def loss(x: Any, k: Any) -> Any:
        dims = ("NHWC", "HWIO", "NHWC")
        h = jax.nn.relu(lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=dims))
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        logits = jax.nn.log_softmax(h.mean((1, 2)))
        return -jnp.take_along_axis(logits, labels[:, None], 1).mean()

    return gradients(loss, x, k)


@padded(real(10, 7), real(7, 9))
def what_reads_the_whole_dimension(x: Any, w: Any) -> Any:
    h = x @ w
    return (
        jnp.sort(h, 1),
        jnp.argmax(h, 0),
        jnp.cumsum(h, 1) @ w.T,
        h.reshape(-1) * 2,
        jnp.concatenate([h, 2 * h], 1).sum(0),
        h[2:7] @ w.T,
        h[:, ::2].max(1),
        jnp.prod(h, 1),
        jnp.any(h > 1, 0),
        jnp.all(h < 2, 1),
    )


@padded(real(10, 7), real(7, 13))
def places_of_extrema(x: Any, w: Any) -> Any:
    h = x @ w
    ties, nowhere = jnp.round(3 * h), jnp.where(h > 0, -jnp.inf, jnp.inf)
    found = [jnp.argmax(h, 1), jnp.argmin(h, 0)]
    for one in (ties, nowhere, 0 * nowhere, jnp.log(h)):
        found += [jnp.argmax(one, 1), jnp.argmin(one, 1)]
    return found, lax.top_k(h, 4), (h @ w.T).sum()


@padded(real(10, 7), real(7, 7))
def recurrence(x: Any, w: Any) -> Any:
    def loss(w: Any) -> Any:
        def body(h: Any, _: Any) -> Any:
            h = jnp.tanh(h @ w)
            return h, h.sum(0)

        h, sums = lax.scan(body, x, None, length=3)
        return (h**2).sum() + (sums**2).sum()

    return gradients(loss, w)


@padded(real(6, 11), real(11, 5))
def products_with_itself(x: Any, w: Any) -> Any:
    h = x @ w
    return (h @ h.T) @ h, (h.T @ h).sum(0), jnp.exp(h @ h.T).sum()


@padded(np.full((6, 5), 1e38, np.float32), real(5, 11))
def infinities(x: Any, w: Any) -> Any:
    h = (x * 10) @ jnp.abs(w)
    return jnp.isinf(h).all(), jnp.where(jnp.isinf(h), 1.0, h) @ w.T, jnp.min(h)


@padded(whole(9, 6, 7), whole(9, 7, 11))
def integers(x: Any, w: Any) -> Any:
    h = x @ w
    return (
        h.max(1),
        h.min(0),
        h.sum(),
        lax.reduce(h, np.int32(0), lax.bitwise_or, (1,)),
        (h @ w.T).astype(jnp.int8),
    )


def prepare(program: Program, devices: int) -> tuple[str, list[str]]:
    traced = trace(program.fun, program.args, {})
    options = f"{traced.state_option} pad-to={devices}"
    merged, remarks = _core.run_pipeline(
        traced.text, f"builtin.module(alpa-prepare-pipeline{{{options}}})"
    )
    return merged, list(remarks)


def check(
    name: str,
    mesh: str,
    seeds: Any,
    monkeypatch: pytest.MonkeyPatch,
    programs: dict[str, Program] = PADDED,
) -> None:
    """Random plans of the padded form of a program against ``jax.jit``."""
    devices = int(np.prod([size for _, size in MESHES[mesh]]))

    def prepare_padded(program: Program) -> Any:
        merged, remarks = prepare(program, devices)
        assert any("is padded to" in remark for remark in remarks)
        return trace(program.fun, program.args, {}), merged

    monkeypatch.setattr(test_random_plans, "prepare", prepare_padded)
    monkeypatch.setitem(test_random_plans.PROGRAMS, name, programs[name])
    test_random_plans.check(name, MESHES[mesh], seeds)


@pytest.mark.parametrize("name", PADDED)
def test_padded_programs_equal_jit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, list(MESHES)[list(PADDED).index(name) % len(MESHES)], range(2), monkeypatch)


@pytest.mark.matrix
@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", PADDED)
def test_padded_programs_equal_jit_on_every_mesh(
    name: str, mesh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(name, mesh, range(10, 14), monkeypatch)


def check_steps(method: str, recipes: Sequence[Recipe], monkeypatch: pytest.MonkeyPatch) -> int:
    """Random plans of the most padded form of random steps; how many have one."""
    num_padded = 0

    def most_padded(*args: Any) -> Any:
        nonlocal num_padded
        forms = prepared_forms(*args)
        num_padded += len(forms) > 1
        return forms[1:2] or forms

    def most_padded_layers(*args: Any) -> Any:
        nonlocal num_padded
        forms = layered_forms(*args)
        num_padded += len(forms) > 1
        return forms[-1:]

    monkeypatch.setattr(planner, "prepared_forms", most_padded)
    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules[sweep.__module__], "layered_forms", most_padded_layers)
    rows = {"whole batch": (6, 10, 9, 13), "micro-batches": (12, 20), "stages": (12, 20, 18, 26)}
    # Narrow floats round differently, and what is the largest of some numbers may follow from that;
    # XLA's compiler for CPUs refuses Fourier transforms of operands in some layouts.
    odd = [
        replace(recipe, rows=rows[method][number % len(rows[method])], width=(12, 16)[number % 2])
        for number, recipe in enumerate(recipes)
        if "bf16" not in recipe.blocks and "spectrum" not in recipe.blocks
    ]
    test_random_step_plans.check(method, odd, monkeypatch)
    return num_padded


@pytest.mark.slow
def test_random_plans_of_padded_steps_equal_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    flowing = [Recipe(blocks=(name, "dense")) for name in test_random_step_plans.CONTROL_FLOW]
    assert check_steps("whole batch", [*flowing, *examples(4)], monkeypatch) >= 6


@pytest.mark.matrix
@pytest.mark.parametrize("method", ["micro-batches", "stages"])
def test_random_plans_of_padded_micro_batches_equal_jit(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flowing = [Recipe(blocks=(name, "dense")) for name in test_random_step_plans.CONTROL_FLOW]
    assert check_steps(method, [*flowing, *examples(4)], monkeypatch) >= 4


@pytest.mark.matrix
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("method", ["whole batch", "micro-batches", "stages"])
def test_random_plans_of_many_padded_steps_equal_jit(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert check_steps(method, examples(120), monkeypatch) >= 60


# Plans -------------------------------------------------------------------------------------------


def plan_of(step: Any, *args: Any, pad: bool = True) -> Plan:
    method = ShardParallel(pad=pad)
    return stablehlo_alpa.parallelize(step, method=method, cluster="dgx-a100:1").plan(*args)


def gpt_step(vocabulary: int) -> tuple[Any, tuple[Any, ...]]:
    """The step of a small GPT and the shapes of its arguments."""
    found: list[TrainCase] = []

    def build() -> Any:
        sizes: dict[str, Any] = {"hidden": 1024, "heads": 16, "length": 1024, "layers": 2}
        sizes |= {"dropout": 0.0, "dtype": jnp.bfloat16}
        found.append(gpt.make(batch=16, vocabulary=vocabulary, **sizes))
        return found[0].args

    args = jax.eval_shape(build)
    return found[0].step, args


def says_padded(plan: Plan, size: int, padded: int) -> bool:
    said = f"a loop of {size} is padded to {padded}, a multiple of 8 devices"
    return any(said in remark for remark in plan.remarks)


@pytest.mark.slow
def test_an_odd_vocabulary_takes_as_long_as_an_even_one() -> None:
    step, args = gpt_step(50257)
    odd, whole_ = plan_of(step, *args), plan_of(step, *args, pad=False)
    step, args = gpt_step(50304)
    even = plan_of(step, *args)
    assert odd.step_time_s <= 1.03 * even.step_time_s
    assert whole_.step_time_s >= 1.08 * even.step_time_s
    assert says_padded(odd, 50257, 50264)
    assert not says_padded(whole_, 50257, 50264)
    # What crosses the boundary keeps its shape, and rests split along another dimension, or whole.
    (table,) = [
        value
        for value in odd.stages[0].phases[0].program.inputs
        if value.name.startswith("state.params") and value.shape[:1] == (50257,)
    ]
    assert len(table.spec) == 0 or table.spec[0] is None


def convolutions(kernels: Any, x: Any) -> Any:
    def loss(kernels: Any) -> Any:
        h = x
        for kernel in kernels:
            dims = ("NHWC", "HWIO", "NHWC")
            h = jax.nn.relu(
                lax.conv_general_dilated(h, kernel, (1, 1), "VALID", dimension_numbers=dims)
            )
        return (h**2).mean()

    return jax.tree.map(lambda k, g: k - 0.1 * g, kernels, jax.grad(loss)(kernels))


@pytest.mark.parametrize("batch", [6, 10])
def test_an_odd_batch_is_split_over_all_devices(batch: int) -> None:
    kernels = [jax.ShapeDtypeStruct((3, 3, 128, 128), np.float32)] * 3
    x = jax.ShapeDtypeStruct((batch, 56, 56, 128), np.float32)
    plan, whole_ = plan_of(convolutions, kernels, x), plan_of(convolutions, kernels, x, pad=False)
    assert says_padded(plan, batch, -(-batch // 8) * 8)
    assert plan.step_time_s <= 0.7 * whole_.step_time_s


def test_attention_of_odd_sizes_is_split_over_all_devices() -> None:
    def mixed(q: Any, k: Any, v: Any) -> Any:
        weights = jax.nn.softmax(jnp.einsum("hid,hjd->hij", q, k))
        return jnp.einsum("hij,hjd->hid", weights, v)

    shape = jax.ShapeDtypeStruct((3, 4093, 509), np.float32)
    plan, whole_ = plan_of(mixed, *[shape] * 3), plan_of(mixed, *[shape] * 3, pad=False)
    assert says_padded(plan, 3, 8) or says_padded(plan, 4093, 4096)
    assert plan.step_time_s <= 0.7 * whole_.step_time_s


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["alpa", "shardy", seldom("gspmd")])
def test_padded_steps_run(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def last(*args: Any) -> Any:
        forms = prepared_forms(*args)
        assert len(forms) > 1
        return forms[1:]

    monkeypatch.setattr(planner, "prepared_forms", last)
    args: tuple[Any, ...] = [real(3, 3, 4, 4), real(3, 3, 4, 4, seed=1)], real(6, 8, 8, 4)
    method = ShardParallel(mesh_shape=(2, 4), backend=backend)
    parallel: Any = stablehlo_alpa.parallelize(convolutions, method=method)
    assert_equals_jit(parallel(*args), jax.jit(convolutions)(*args))
    case = gpt.make(batch=6, hidden=36, heads=3, vocabulary=61, length=10, dropout=0.0)
    parallel = stablehlo_alpa.parallelize(case.step, method=method)
    assert_equals_jit(parallel(*case.args), jax.jit(case.step)(*case.args))
