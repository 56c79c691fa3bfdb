"""What a pipeline computes again is searched: the fastest that fits, against every choice."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models import gpt, mlp
from models.case import TrainCase
from often import seldom
from test_models import assert_trees_close

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, PipeshardParallel, UniformStages
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.layers.attention import recomputing_attention
from stablehlo_alpa.planning import Plan

CHOICES = {False: "", "attention": "attention", True: "layers"}


@functools.cache
def make_case() -> TrainCase:
    return gpt.make(batch=16, layers=2, dropout=0.0, length=64, hidden=32, heads=4)


def parallel(remat: Any, budget: float | None) -> Any:
    method = PipeshardParallel(
        num_micro_batches=2,
        layers=AutoLayers(num_layers=2) if remat is None else AutoLayers(2, remat=remat),
        stages=UniformStages(2, (4,)),
        schedule="1f1b",
        memory_budget=budget,
    )
    return stablehlo_alpa.parallelize(make_case().step, method=method)


def plan(remat: Any, budget: float | None = None) -> Plan:
    found: Plan = parallel(remat, budget).plan(*make_case().args)
    return found


def fits(remat: Any, budget: float) -> Plan | None:
    try:
        return plan(remat, budget)
    except InfeasibleError:
        return None


@functools.cache
def peaks() -> dict[Any, float]:
    return {remat: plan(remat).peak_bytes for remat in CHOICES}


@pytest.mark.slow
def test_more_is_computed_again_for_less_memory() -> None:
    assert peaks()[False] > peaks()["attention"] > peaks()[True]
    # Memory that nobody lacks: nothing else is looked at.
    found = plan(None, 10 * peaks()[False])
    assert found.recomputed == ""
    assert found.tried == ()
    assert "computed again" not in str(found)


@pytest.mark.slow
@pytest.mark.parametrize("share", [seldom(1.05), 0.7, seldom(0.4)])
def test_the_fastest_that_fits_is_chosen(share: float) -> None:
    """The memory that nothing computed again takes, and less of it, down to that of all."""
    least, most = peaks()[True], peaks()[False]
    budget = least + share * (most - least)
    found = plan(None, budget)
    explicit = {remat: fits(remat, budget) for remat in CHOICES}
    fitting = {remat: one for remat, one in explicit.items() if one is not None}
    assert (False in fitting) == (share > 1)
    fastest = min(fitting, key=lambda remat: fitting[remat].step_time_s)
    assert found.step_time_s == pytest.approx(fitting[fastest].step_time_s)
    assert found.recomputed == CHOICES[fastest]
    assert found.peak_bytes <= budget
    considered = [one.recomputed for one in found.tried]
    assert considered == list(CHOICES.values())
    for one, remat in zip(found.tried, CHOICES, strict=True):
        own = explicit[remat]
        time_s = None if own is None else own.step_time_s
        assert one.step_time_s == (None if time_s is None else pytest.approx(time_s))
    if found.recomputed:
        assert f"computed again in the backward phase: {found.recomputed}" in str(found)


@pytest.mark.slow
def test_what_is_computed_again_is_what_was_computed() -> None:
    case = make_case()
    step = parallel(None, 1.1 * peaks()[True])
    assert step.plan(*case.args).recomputed
    assert_trees_close(step(*case.args), jax.jit(case.step)(*case.args), 1e-4, "results")


@pytest.mark.slow
def test_layers_of_one_value() -> None:
    """A layer that nothing but one value goes into waits behind a barrier of one."""
    case = mlp.make()
    method = PipeshardParallel(
        num_micro_batches=2, layers=AutoLayers(8, remat=True), stages=UniformStages(2)
    )
    step = stablehlo_alpa.parallelize(case.step, method=method)
    assert_trees_close(step(*case.args), jax.jit(case.step)(*case.args), 1e-4, "results")


def test_nothing_fits_and_all_was_tried() -> None:
    with pytest.raises(InfeasibleError, match="memory budget"):
        plan(None, 0.5 * peaks()[True])


def loss(weights: Any, batch: Any) -> jax.Array:
    return jax.numpy.mean((jax.numpy.tanh(batch @ weights[0]) @ weights[1]) ** 2)


@pytest.mark.parametrize("grad", [jax.grad, stablehlo_alpa.grad])
def test_without_attention_or_layers_of_its_own(grad: Any) -> None:
    """Gradients by jax itself have no layers to compute again; and what is no attention is kept."""
    weights, batch = [np.ones((8, 64), "f"), np.ones((64, 8), "f")], np.ones((64, 8), "f")

    def found(budget: float | None) -> Plan:
        method = PipeshardParallel(
            num_micro_batches=2,
            layers=AutoLayers(num_layers=2),
            stages=UniformStages(1),
            memory_budget=budget,
        )
        step = stablehlo_alpa.parallelize(grad(loss), method=method)
        return step.plan(weights, batch)

    tried = [one.recomputed for one in found(1.1 * found(None).peak_bytes).tried]
    assert tried == ([] if grad is jax.grad else ["", "layers"])


@pytest.mark.slow
def test_a_layer_that_needs_all_micro_batches_is_computed_again_once() -> None:
    """Parts of a parameter are the micro-batches here, and a layer that needs all is made once."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(10, 16, 12)).astype("f")

    def step(params: Any) -> Any:
        def loss(params: Any) -> jax.Array:
            hidden = jax.numpy.tanh(x @ params["w"])
            policy = jax.nn.log_softmax(hidden @ params["a"])
            return policy.mean() + ((hidden @ params["v"])[..., 0] ** 2).mean()

        return stablehlo_alpa.grad(loss)(params)

    def parallel(remat: Any, budget: float | None) -> Any:
        method = PipeshardParallel(
            num_micro_batches=4,
            layers=AutoLayers(num_layers=2, remat=remat),
            stages=UniformStages(2),
            memory_budget=budget,
        )
        return stablehlo_alpa.parallelize(step, method=method)

    shapes = {"w": (12, 32), "a": (32, 6), "v": (32, 1)}
    params = {name: draw.normal(size=shape).astype("f") for name, shape in shapes.items()}
    assert_trees_close(parallel(True, None)(params), jax.jit(step)(params), 1e-4, "results")
    most = 1.5 * parallel(False, None).plan(params).peak_bytes
    assert parallel("search", most).plan(params).recomputed == ""


_LENGTH = 16
_KEY = jax.random.key(3)


def core(query: Any, key_: Any, value: Any) -> tuple[Any, Any]:
    """Attention with a dropout, and the mask of it."""
    scores = jnp.einsum("bqad,bkad->baqk", query, key_)
    kept = jax.random.bernoulli(jax.random.fold_in(_KEY, 1), 0.5, scores.shape)
    weights = jnp.where(kept, jax.nn.softmax(scores), 0.0)
    return jnp.einsum("baqk,bkad->bqad", weights, value), kept


@pytest.mark.parametrize("is_returned", [False, True])
def test_the_mask_of_a_dropout_is_drawn_again_unless_something_else_reads_it(
    is_returned: bool,
) -> None:
    def function(*args: Any) -> Any:
        mixed, kept = core(*args)
        return (mixed, kept.astype(jnp.float32)) if is_returned else (mixed,)

    args = [jax.random.normal(jax.random.key(i), (2, _LENGTH, 4, 8)) for i in range(3)]
    run = recomputing_attention(jax.make_jaxpr(function)(*args))
    results, back = jax.vjp(lambda *a: run(*a), *args)
    expected, plain_back = jax.vjp(function, *args)
    ones = [jnp.ones_like(one) for one in results]
    assert_trees_close(tuple(results), expected, 1e-6, "results")
    assert_trees_close(back(ones), plain_back(tuple(ones)), 1e-6, "gradients")
    held = [one.shape for one in jax.tree.leaves(back) if one.shape[-2:] == (_LENGTH, _LENGTH)]
    assert bool(held) == is_returned
