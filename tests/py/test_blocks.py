"""Blocks that a layer consists of: where they begin, and what recomputing each by itself saves."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import print_saved_residuals

import stablehlo_alpa
from stablehlo_alpa import AutoLayers
from stablehlo_alpa.layers import WholeFunction, in_layers, layer_context
from stablehlo_alpa.layers.blocks import block_starts

WIDTH, WIDE, BATCH, COUNT = 8, 64, 512, 6


def make_params(count: int = COUNT) -> list[tuple[jax.Array, jax.Array]]:
    key = jax.random.PRNGKey(0)
    up = 0.3 * jax.random.normal(key, (WIDTH, WIDE))
    down = 0.3 * jax.random.normal(key, (WIDE, WIDTH))
    return [(up + i / 10, down - i / 10) for i in range(count)]


def residual(params: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    for up, down in params:
        x = x + jnp.tanh(jnp.sin(x) @ up) @ down
    return x


def model(params: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    """An embedding of its own kind, blocks, a head."""
    return jnp.mean(residual(params, jnp.cos(x) * 2.0) ** 2)


def starts_of(fun: Any, *args: Any) -> tuple[list[int], Any]:
    jaxpr = jax.make_jaxpr(fun)(*args).jaxpr
    return block_starts(jaxpr), jaxpr


def test_blocks_begin_where_least_goes_across() -> None:
    starts, jaxpr = starts_of(model, make_params(), jnp.ones((BATCH, WIDTH)))
    assert len(starts) == COUNT
    names = [jaxpr.eqns[start].primitive.name for start in starts]
    assert names == ["cos", *["sin"] * (COUNT - 1)]


def test_what_does_not_repeat_is_one_block() -> None:
    assert starts_of(lambda x: jnp.sin(jnp.cos(x) @ x), jnp.ones((4, 4)))[0] == [0]
    assert starts_of(lambda x: x, jnp.ones(()))[0] == [0]


def test_a_few_of_very_many_blocks_go_together() -> None:
    starts, jaxpr = starts_of(residual, make_params(50), jnp.ones((BATCH, WIDTH)))
    assert 2 <= len(starts) <= 16
    lengths = np.diff([*starts, len(jaxpr.eqns)])
    assert len(set(lengths[:-1])) == 1


def test_a_part_of_a_block_is_a_piece_of_its_own() -> None:
    def fun(params: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
        return jnp.sin(residual(params[:3], x)) @ params[3][0]

    starts, jaxpr = starts_of(fun, make_params(), jnp.ones((BATCH, WIDTH)))
    assert len(starts) == 4
    assert len(jaxpr.eqns) - starts[-1] < starts[2] - starts[1]


def gradients(remat: Any) -> Any:
    def run(params: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> Any:
        with layer_context(AutoLayers(num_layers=1, remat=remat)):
            return stablehlo_alpa.value_and_grad(model)(params, x)

    return jax.jit(run)


def test_gradients_are_those_of_jax() -> None:
    params, x = make_params(), jax.random.normal(jax.random.PRNGKey(1), (BATCH, WIDTH))
    value, found = gradients(True)(params, x)
    wanted_value, wanted = jax.jit(jax.value_and_grad(model))(params, x)
    np.testing.assert_allclose(value, wanted_value, rtol=1e-6)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_what_is_kept_is_between_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    """As jax tells it: nothing wide, and the values between blocks."""
    layered = in_layers(model, "model")
    with layer_context(WholeFunction(AutoLayers(num_layers=1, remat=True))):
        print_saved_residuals(layered, make_params(), jnp.ones((BATCH, WIDTH)))
    kept = [line for line in capsys.readouterr().out.splitlines() if "argument" not in line]
    shapes = [line.split()[0] for line in kept]
    assert shapes.count(f"f32[{BATCH},{WIDTH}]") == COUNT - 1
    assert f"f32[{BATCH},{WIDE}]" not in shapes
