"""Attention in blocks of keys under every method, with micro-batches and in stages of pipelines."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from attention_programs import dropout, multiplied
from often import one_in, seldom
from test_random_plans import compare
from test_random_step_plans import choose_at_random

import stablehlo_alpa as sa
from stablehlo_alpa.inter_op.forms import layered_forms
from stablehlo_alpa.planning import mesh_search, planner

BATCH, LENGTH, HEADS, DEPTH = 4, 12, 2, 4
WIDTH = HEADS * DEPTH


def in_stages(remat: Any = "search", **options: Any) -> sa.Method:
    layers, stages = sa.AutoLayers(num_layers=2, remat=remat), sa.UniformStages(2)
    return sa.PipeshardParallel(num_micro_batches=2, layers=layers, stages=stages, **options)


METHODS: dict[str, Callable[..., sa.Method]] = {
    "data": lambda **options: sa.DataParallel(mesh_shape=(2, 2), **options),
    "zero": lambda **options: sa.Zero3Parallel(mesh_shape=(2, 2), **options),
    "manual": lambda **options: sa.ManualSharding(
        in_specs={1: jax.P("x", "y")}, mesh_shape=(2, 2), **options
    ),
    "megatron": lambda **options: sa.MegatronParallel(tensor=2, data=2, **options),
    "megatron, stages": lambda **options: sa.MegatronParallel(
        tensor=2, data=1, pipeline=2, num_micro_batches=2, **options
    ),
    "micro-batches": lambda **options: sa.ShardParallel(
        mesh_shape=(2, 2), num_micro_batches=2, **options
    ),
    "independent micro-batches": lambda **options: sa.DataParallel(
        num_micro_batches=2, micro_batches="independent", **options
    ),
    "stages": in_stages,
    "stages, computed again": lambda **options: in_stages(remat=True, **options),
    "stages, weights' gradients apart": lambda **options: in_stages(
        schedule="zero_bubble", **options
    ),
}


def attend(x: Any, w: Any) -> Any:
    q, k, v = ((x @ w[name]).reshape(*x.shape[:2], HEADS, -1) for name in "qkv")
    out = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="xla")
    return x + out.reshape(x.shape) @ w["o"]


def step(params: Any, x: Any, y: Any) -> Any:
    def loss(params: Any, x: Any, y: Any) -> Any:
        for w in params:
            x = attend(x, w)
        return ((x - y) ** 2).mean()

    found, gradients = sa.value_and_grad(loss)(params, x, y)
    return found, jax.tree.map(lambda p, g: p - 0.5 * g, params, gradients)


def attend_dropping(x: Any, w: Any, key: Any) -> Any:
    q, k, v = ((x @ w[name]).reshape(*x.shape[:2], HEADS, -1) for name in "qkv")
    out = dropout(multiplied, is_causal=False)(q, k, v, key)
    return x + out.reshape(x.shape) @ w["o"]


def dropping_step(params: Any, x: Any, y: Any) -> Any:
    def loss(params: Any, x: Any, y: Any) -> Any:
        for number, w in enumerate(params):
            x = attend_dropping(x, w, jax.random.key(number))
        return ((x - y) ** 2).mean()

    found, gradients = sa.value_and_grad(loss)(params, x, y)
    return found, jax.tree.map(lambda p, g: p - 0.5 * g, params, gradients)


def arguments() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)

    def real(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    params = [{name: real(WIDTH, WIDTH) / 3 for name in "qkvo"} for _ in range(2)]
    return params, real(BATCH, LENGTH, WIDTH), real(BATCH, LENGTH, WIDTH)


def take_blocks(patch: pytest.MonkeyPatch) -> None:
    """The form in which attention is one operator is the one that is planned."""
    prepared_forms = planner.prepared_forms

    def last(*args: Any) -> Any:
        forms = prepared_forms(*args)
        assert len(forms) > 1
        return forms[-1:]

    def last_layers(*args: Any) -> Any:
        forms = layered_forms(*args)
        assert len(forms) > 1
        return forms[-1:]

    patch.setattr(planner, "prepared_forms", last)
    # The package has a function of the module's name.
    sweep = importlib.import_module("stablehlo_alpa.inter_op.sweep")
    patch.setattr(sweep, "layered_forms", last_layers)


# Independent parts of a batch draw the bits of a batch of their size.
DRAWING = [name for name in METHODS if name != "independent micro-batches"]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        *((name, step) for name in METHODS),
        *one_in(2, ((name, dropping_step) for name in DRAWING)),
    ],
    ids=[*METHODS, *(f"{name}, dropout" for name in DRAWING)],
)
def test_blocks_under_any_method_are_jit(
    name: str, step: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_blocks(monkeypatch)
    monkeypatch.setattr(mesh_search, "solve", choose_at_random(list(METHODS).index(name)))
    method = METHODS[name](attention_keys=1)
    args = arguments()
    parallel: Any = sa.parallelize(
        step, method=method, batch_argnums=(1, 2), devices=jax.devices()[:4]
    )
    plan = parallel.plan(*args)
    assert any(f"attention over {LENGTH} keys" in remark for remark in plan.remarks)
    local = plan.module_text("planned")
    assert "alpa.attention_gradient" in local
    expected = jax.jit(step)(*args)
    for one, other in zip(jax.tree.leaves(parallel(*args)), jax.tree.leaves(expected), strict=True):
        compare(np.asarray(one), np.asarray(other), 1e-5, name)


@pytest.mark.parametrize("name", METHODS)
def test_attention_is_left_alone_where_it_is_asked_for(name: str) -> None:
    method = METHODS[name](attention_keys=None)
    parallel = sa.parallelize(step, method=method, batch_argnums=(1, 2), devices=jax.devices()[:4])
    assert "alpa.attention" not in parallel.plan(*arguments()).module_text("planned")


@pytest.mark.parametrize(
    "method",
    [
        sa.DataParallel,
        lambda **options: sa.ShardParallel(num_micro_batches=2, **options),
        in_stages,
        lambda **options: sa.PipeshardParallel(
            num_micro_batches=2, layers=sa.AutoLayers(num_layers=2), schedule="1f1b", **options
        ),
    ],
    ids=["data", "micro-batches", "stages", "searched stages"],
)
@pytest.mark.parametrize("step", [step, seldom(dropping_step)], ids=["causal", "dropout"])
def test_long_sequences_fit(method: Callable[..., sa.Method], step: Any) -> None:
    """128k tokens of eight examples on eight H100: all scores of one head are 32 GiB."""
    w = jax.ShapeDtypeStruct((2048, 2048), jnp.bfloat16)
    x = jax.ShapeDtypeStruct((8, 131072, 2048), jnp.bfloat16)
    args = [dict.fromkeys("qkvo", w)] * 2, x, x

    def plan(**options: Any) -> sa.Plan:
        options = {"method": method(**options), "batch_argnums": (1, 2)}
        return sa.parallelize(step, cluster="dgx-h100", **options).plan(*args)

    with pytest.raises(sa.InfeasibleError):
        plan(attention_keys=None)
    assert any("attention over 131072 keys" in remark for remark in plan().remarks)


@pytest.mark.parametrize("name", ["data", "stages"])
def test_a_refusal_is_of_the_form_that_lacks_least(name: str) -> None:
    """With all scores 128 GiB are lacking, in blocks less than two."""
    w = jax.ShapeDtypeStruct((256, 256), jnp.bfloat16)
    x = jax.ShapeDtypeStruct((4, 131072, 256), jnp.bfloat16)

    def refusal(**options: Any) -> sa.InfeasibleError:
        method = METHODS[name](memory_budget="100MB", **options)
        with pytest.raises(sa.InfeasibleError) as found:
            sa.parallelize(step, method=method, batch_argnums=(1, 2), cluster="cpu:1x4").plan(
                [dict.fromkeys("qkvo", w)] * 2, x, x
            )
        return found.value

    whole, blocks = refusal(attention_keys=None), refusal()
    assert whole.least_bytes is not None
    assert blocks.least_bytes is not None
    assert blocks.needed_bytes is not None
    assert whole.least_bytes > 2**37 > 2**31 > blocks.needed_bytes >= blocks.least_bytes
    assert "select_n" not in str(blocks)


def test_attention_keys_are_of_the_whole_pipeline() -> None:
    with pytest.raises(ValueError, match="attention_keys is of the whole function"):
        sa.PipeshardParallel(stages=sa.UniformStages(2, methods=sa.DataParallel(attention_keys=1)))
