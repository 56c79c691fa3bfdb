"""Equal layers are differentiated once, and nobody sees it in what comes out."""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr

from stablehlo_alpa.frontend import trace
from stablehlo_alpa.layers import (
    AutoLayers,
    Remat,
    layer_context,
    value_and_grad,
    with_own_names,
)
from stablehlo_alpa.layers.likeness import Likeness, find_likenesses

Layer = Callable[[jax.Array], jax.Array]

X = jax.ShapeDtypeStruct((4, 8), jnp.float32)


def layer(fun: Layer) -> ClosedJaxpr:
    return jax.make_jaxpr(fun)(X)


def firsts(*layers: Layer) -> list[int]:
    return [one.first for one in find_likenesses([layer(fun) for fun in layers])]


DEPTH = 6


def step() -> Callable[..., Any]:
    """A new function every time: what was traced is not traced again."""

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        for number in range(DEPTH):
            with jax.named_scope(f"block_{number}"):
                x = x + jax.nn.gelu(x @ weights["up"][number]) @ weights["down"][number]
        return jnp.mean(x**2)

    def train(weights: Any, x: jax.Array) -> tuple[Any, jax.Array]:
        value, gradients = value_and_grad(loss)(weights, x)
        return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value

    return train


ARGS = (
    {
        "up": [jax.ShapeDtypeStruct((16, 32), jnp.float32)] * DEPTH,
        "down": [jax.ShapeDtypeStruct((32, 16), jnp.float32)] * DEPTH,
    },
    jax.ShapeDtypeStruct((8, 16), jnp.float32),
)


def text(remat: Remat) -> str:
    with layer_context(AutoLayers(num_layers=DEPTH, remat=remat)):
        return trace(step(), ARGS, {}).text


@pytest.mark.parametrize("remat", [False, True, "attention"])
def test_the_module_is_that_of_layers_by_themselves(
    monkeypatch: pytest.MonkeyPatch, remat: Remat
) -> None:
    found: list[Likeness] = []

    def alone(layers: Any) -> list[Likeness]:
        found.extend(find_likenesses(layers))
        return [Likeness(number) for number in range(len(layers))]

    texts = []
    # From one line of code, which locations say.
    for find in (find_likenesses, alone):
        monkeypatch.setattr(sys.modules[value_and_grad.__module__], "find_likenesses", find)
        texts.append(text(remat))
    assert texts[0] == texts[1]
    assert "alpa_names" not in texts[0]
    # The first block takes an argument of the step, the last makes the loss.
    assert len({one.first for one in found}) < DEPTH
    assert any(one.names for one in found)


def test_names_are_those_of_every_layer_itself() -> None:
    def named(name: str) -> Layer:
        def fun(x: jax.Array) -> jax.Array:
            with jax.named_scope(name), jax.named_scope("mlp"):
                return jnp.sin(x) * 2

        return fun

    _, second = find_likenesses([layer(named("block_0")), layer(named("block_1"))])
    assert second == Likeness(0, {"block_0": "block_1"})
    scope = f"alpa_layer_1/{second.scope}"
    location = f'loc("jit(block_0)/jvp({scope})/jvp({scope})/block_0/mlp/sin"(#loc3))'
    # What stands around the layer is called as it was.
    assert with_own_names(location) == (
        'loc("jit(block_0)/jvp(alpa_layer_1)/jvp(alpa_layer_1)/block_1/mlp/sin"(#loc3))'
    )
    _, second = find_likenesses([layer(named("loc")), layer(named("loc_1"))])
    location = f'#loc7 = loc("jit(f)/alpa_layer_1/{second.scope}/loc/mlp/sin"(#loc3))'
    assert with_own_names(location) == '#loc7 = loc("jit(f)/alpa_layer_1/loc_1/mlp/sin"(#loc3))'


def test_layers_whose_names_cannot_be_told_part_by_part_are_by_themselves() -> None:
    def named(one: str, two: str) -> Layer:
        def fun(x: jax.Array) -> jax.Array:
            with jax.named_scope(one):
                x = jnp.sin(x)
            with jax.named_scope(two):
                return jnp.cos(x)

        return fun

    assert firsts(named("a", "a"), named("b", "c"), named("b", "b")) == [0, 1, 0]
    assert firsts(named("a", "a"), named("b=c", "b=c")) == [0, 1]


def with_rule(factor: float) -> Layer:
    """Tanh whose derivative is a number."""

    @jax.custom_jvp
    def fun(x: jax.Array) -> jax.Array:
        return jnp.tanh(x)

    fun.defjvp(lambda primals, tangents: (fun(*primals), factor * tangents[0]))
    return fun


HELD = np.arange(8, dtype=np.float32)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: x - x.T.T, lambda x: x.T.T - x),
        (lambda x: x.sum(0), lambda x: x.sum(1)),
        (lambda x: jnp.sin(x) + jnp.cos(x), lambda x: jnp.cos(x) + jnp.sin(x)),
        (lambda x: x.astype(jnp.bfloat16), lambda x: x.astype(jnp.float16)),
        (with_rule(1.0), with_rule(2.0)),
        (lambda x: x + HELD, lambda x: x + (HELD + 1)),
        (lambda x: jax.nn.relu(x + 1), lambda x: jax.nn.relu(x + 2)),
        (jax.jit(lambda x: x + 1), jax.jit(lambda x: x + 2)),
        (
            lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.sin(y), x),
            lambda x: jax.lax.fori_loop(0, 4, lambda _, y: jnp.sin(y), x),
        ),
        (
            lambda x: jax.lax.scan(lambda c, _: (c * 2, None), x, length=3)[0],
            lambda x: jax.lax.scan(lambda c, _: (c + c, None), x, length=3)[0],
        ),
    ],
)
def test_what_differs_is_not_equal(one: Layer, other: Layer) -> None:
    assert firsts(one, other) == [0, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: lambda x: jnp.sin(x) @ x.T + 1,
        lambda: lambda x: jax.nn.softmax(jax.nn.gelu(x)),
        lambda: lambda x: jax.lax.scan(lambda c, _: (c * 2, None), x, length=3)[0],
        lambda: lambda x: x + HELD,
    ],
)
def test_what_is_traced_twice_is_equal(make: Callable[[], Layer]) -> None:
    assert firsts(make(), make()) == [0, 0]
