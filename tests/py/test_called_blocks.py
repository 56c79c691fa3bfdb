"""Blocks that the model jits: traced once, whole in layers where these come out even."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import print_saved_residuals

import stablehlo_alpa
from stablehlo_alpa import AutoLayers
from stablehlo_alpa.layers import WholeFunction, in_layers, layer_context
from stablehlo_alpa.layers.assignment import assign, flatten_for
from stablehlo_alpa.layers.blocks import block_starts
from stablehlo_alpa.layers.equations import work_of
from stablehlo_alpa.layers.spared import spared_work

WIDTH, WIDE, LENGTH, BATCH, HEADS = 16, 64, 32, 8, 2


def attend(x: jax.Array, w: jax.Array) -> jax.Array:
    heads = (BATCH, LENGTH, HEADS, WIDTH // HEADS)
    query, key, value = (part.reshape(heads) for part in jnp.split(x @ w, 3, axis=-1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)
    return mixed.reshape(x.shape)


def block(x: jax.Array, weights: dict[str, jax.Array]) -> jax.Array:
    """Attention, which adds nothing to the products at its end, and two products."""
    x = x + attend(jnp.sin(x), weights["qkv"]) @ weights["out"]
    return x + jnp.tanh(jnp.cos(x) @ weights["up"]) @ weights["down"]


def make_params(count: int) -> list[dict[str, jax.Array]]:
    shapes = {
        "qkv": (WIDTH, 3 * WIDTH),
        "out": (WIDTH, WIDTH),
        "up": (WIDTH, WIDE),
        "down": (WIDE, WIDTH),
    }
    keys = jax.random.split(jax.random.PRNGKey(0), (count, len(shapes)))
    return [
        {
            name: 0.3 * jax.random.normal(key, shape)
            for key, (name, shape) in zip(row, shapes.items(), strict=True)
        }
        for row in keys
    ]


def loss_of(one: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def loss(params: Any, x: jax.Array) -> jax.Array:
        for weights in params:
            x = one(x, weights)
        return jnp.mean(x**2)

    return loss


X = jax.random.normal(jax.random.PRNGKey(1), (BATCH, LENGTH, WIDTH))
JITTED = jax.jit(block)


def layers_of(count: int, num_layers: int) -> tuple[Any, np.ndarray]:
    """The flat function of so many jitted blocks, and the work of its layers."""
    option = AutoLayers(num_layers=num_layers)
    flat = flatten_for(option, jax.make_jaxpr(loss_of(JITTED))(make_params(count), X), 1)
    return flat.jaxpr, np.bincount(assign(option, flat, 1), work_of(flat.jaxpr))


@pytest.mark.parametrize(("count", "num_layers", "is_whole"), [(6, 3, True), (3, 2, False)])
def test_blocks_stay_whole_where_layers_are_even(
    count: int, num_layers: int, is_whole: bool
) -> None:
    jaxpr, work = layers_of(count, num_layers)
    calls = [one for one in jaxpr.eqns if one.params.get("name") == "block"]
    assert len(calls) == (count if is_whole else 0)
    assert work.max() <= 1.26 * work.mean()


@pytest.mark.parametrize("num_layers", [2, 3], ids=["whole", "opened"])
@pytest.mark.parametrize("remat", [False, "attention", True])
def test_gradients_are_those_of_jax(remat: Any, num_layers: int) -> None:
    """Also of blocks that are closed over arrays."""
    params, shift = make_params(4), jnp.linspace(0.0, 1.0, WIDTH)

    def shifted(x: jax.Array, weights: Any) -> jax.Array:
        return block(x + shift + np.linspace(0, 1, LENGTH, dtype="f")[:, None], weights)

    wanted = jax.jit(jax.value_and_grad(loss_of(shifted)))(params, X)

    def run(params: Any, x: jax.Array) -> Any:
        with layer_context(AutoLayers(num_layers=num_layers, remat=remat)):
            return stablehlo_alpa.value_and_grad(loss_of(jax.jit(shifted)))(params, x)

    found = jax.jit(run)(params, X)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("one", [block, JITTED], ids=["inline", "jitted"])
@pytest.mark.parametrize("remat", ["attention", True])
def test_scores_are_computed_again(
    one: Callable[..., jax.Array], remat: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """As jax tells it: no scores are kept, and of all but them only what is between blocks."""
    with layer_context(WholeFunction(AutoLayers(num_layers=2, remat=remat))):
        print_saved_residuals(in_layers(loss_of(one), "loss"), make_params(4), X)
    kept = [line for line in capsys.readouterr().out.splitlines() if "argument" not in line]
    assert not any(f"[{BATCH},{HEADS},{LENGTH},{LENGTH}]" in line for line in kept)
    is_wide = [f"[{BATCH},{LENGTH},{WIDE}]" in line for line in kept]
    assert any(is_wide) == (remat == "attention")


def test_blocks_end_where_a_product_is_spared() -> None:
    """The widest product is the last of a block: what it makes is added and needed no more."""
    jaxpr = jax.make_jaxpr(loss_of(block))(make_params(4), X).jaxpr
    starts = block_starts(jaxpr)
    assert len(starts) == 4
    assert {jaxpr.eqns[start].primitive.name for start in starts} == {"sin"}
    spared = spared_work(jaxpr, work_of(jaxpr), of_sums=True)
    down = 2.0 * BATCH * LENGTH * WIDE * WIDTH
    assert all(down <= spared[start] < 1.1 * down for start in starts[1:])
    ends = [i for i, one in enumerate(jaxpr.eqns) if one.primitive.name == "cos"]
    assert all(spared[i] < down / 2 for i in ends)


@pytest.mark.parametrize(
    ("fun", "reader"),
    [
        (lambda x, w: jnp.sin((x @ w) / 2.0 + 1.0), "sin"),
        (lambda x, w: (2.0 - x @ w) * x, "mul"),
        (lambda x, w: jax.nn.relu(x @ w), "custom_jvp_call"),
    ],
    ids=["elementwise", "bilinear", "call"],
)
def test_what_a_derivative_needs_is_not_spared(fun: Callable[..., jax.Array], reader: str) -> None:
    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.cos(fun(x, w))

    jaxpr = jax.make_jaxpr(run)(X[0], jnp.ones((WIDTH, WIDTH))).jaxpr
    spared = spared_work(jaxpr, work_of(jaxpr))
    product = 2.0 * LENGTH * WIDTH * WIDTH
    last = [one.primitive.name for one in jaxpr.eqns].index(reader)
    assert (spared[1 : last + 1] >= product).all()
    assert (spared[last + 1 :] < product).all()
    assert (spared_work(jaxpr, work_of(jaxpr), of_sums=True) < product).all()
