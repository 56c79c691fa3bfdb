"""Losses that go over a batch in a loop, under methods that take micro-batches."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from batch_steps import PARAMS, WIDTH, hidden, pipeline, weights
from jax import lax
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, PipeshardParallel, ShardParallel, UniformStages
from stablehlo_alpa.errors import CompileError

X, Y = weights(32, WIDTH, seed=3), weights(32, WIDTH, seed=4)


def error(params: Any, x: Any, y: Any) -> Any:
    return jnp.sum((hidden(params, x) - y) ** 2)


def mapped(params: Any, x: Any, y: Any) -> Any:
    """Examples one by one."""
    return jnp.mean(lax.map(lambda one: error(params, *one), (x, y)))


def mapped_in_blocks(params: Any, x: Any, y: Any) -> Any:
    return jnp.mean(lax.map(lambda one: error(params, *one), (x, y), batch_size=4))


def chunked(params: Any, x: Any, y: Any, turn: Any = error) -> Any:
    chunks = x.reshape(-1, 4, WIDTH), y.reshape(-1, 4, WIDTH)
    total, _ = lax.scan(lambda total, one: (total + turn(params, *one), None), 0.0, chunks)
    return total / x.size


def computed_again(params: Any, x: Any, y: Any) -> Any:
    return chunked(params, x, y, jax.checkpoint(error))


def counted(params: Any, x: Any, y: Any) -> Any:
    """Chunks are counted beside."""

    def turn(carry: Any, one: Any) -> Any:
        return (carry[0] + error(params, *one), carry[1] + 1), None

    chunks = x.reshape(-1, 4, WIDTH), y.reshape(-1, 4, WIDTH)
    (total, number), _ = lax.scan(turn, (0.0, 0), chunks)
    return total / number


def by_number(params: Any, x: Any, y: Any) -> Any:
    def turn(number: Any, total: Any) -> Any:
        return total + error(params, x[number], y[number])

    return lax.fori_loop(0, len(x), turn, 0.0) / len(x)


def dropped(params: Any, x: Any, y: Any) -> Any:
    """Blocks and keys by the number of the turn."""

    def turn(number: Any, total: Any) -> Any:
        key = jax.random.fold_in(jax.random.key(5, impl="rbg"), number)
        rows, other = (lax.dynamic_slice_in_dim(a, 4 * number, 4) for a in (x, y))
        return total + error(params, rows * jax.random.bernoulli(key, 0.5, rows.shape), other)

    return lax.fori_loop(0, len(x) // 4, turn, 0.0) / x.size


def of_tokens(params: Any, x: Any, y: Any) -> Any:
    """The cross entropy of sequences whose tokens are put behind each other, and cut."""
    *layers, head = params
    sequences = jnp.stack([x, -x, x / 2], 1)
    tokens = hidden(layers, sequences).reshape(-1, 12, WIDTH)
    targets = jnp.stack([y, y, y], 1).reshape(-1, 12, WIDTH)

    @jax.checkpoint
    def turn(total: Any, one: Any) -> Any:
        logits = one[0] @ head
        return total + jnp.sum(jax.nn.logsumexp(logits, -1) - jnp.sum(logits * one[1], -1)), None

    return lax.scan(turn, 0.0, (tokens, targets))[0] / tokens.size


def headed(params: Any, x: Any, y: Any) -> Any:
    """The model has the whole batch, the loss one example after the other."""
    *layers, head = params
    return jnp.mean(lax.map(lambda one: error([head], *one), (hidden(layers, x), y)))


LOSSES = (
    mapped,
    mapped_in_blocks,
    chunked,
    computed_again,
    counted,
    by_number,
    dropped,
    of_tokens,
    headed,
)


def step_of(loss: Any, params: Any, x: Any, y: Any) -> Any:
    value, gradients = stablehlo_alpa.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


@pytest.mark.parametrize("loss", LOSSES)
def test_micro_batches_take_turns_of_a_loss(loss: Any) -> None:
    """Each of its own examples: work is divided, and the results are those of the whole batch."""
    step = functools.partial(step_of, loss)
    method = ShardParallel(num_micro_batches=4)
    parallel = stablehlo_alpa.parallelize(step, method=method)
    plan = parallel.plan(PARAMS, X, Y)
    (said,) = [one for one in plan.remarks if one.startswith("4 micro-batches")]
    assert "cut along dimension 0: x, y; whole for each: none" in said
    assert_same(parallel(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))


@pytest.mark.parametrize("layers", [2, 16])
@pytest.mark.parametrize("loss", [headed, of_tokens])
def test_stages_take_turns_of_a_loss(loss: Any, layers: int) -> None:
    """The loop is of one layer, however many there are to be."""
    step = functools.partial(step_of, loss)
    method = PipeshardParallel(
        num_micro_batches=2, stages=UniformStages(2), layers=AutoLayers(num_layers=layers)
    )
    parallel = stablehlo_alpa.parallelize(step, method=method)
    assert_same(parallel(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))


def test_turns_that_see_all_examples_stay_whole() -> None:
    """A contrastive loss compares each example with all others."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        made = hidden(params, x)
        return jnp.mean(lax.map(lambda one: jax.nn.logsumexp(made @ one), made)) - jnp.mean(
            made * y
        )

    step = functools.partial(step_of, loss)
    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))
    assert_same(parallel(PARAMS, X, Y), jax.jit(step)(PARAMS, X, Y))
    with pytest.raises(CompileError, match="needs the whole batch"):
        pipeline(step, 4).plan(PARAMS, X, Y)


def test_turns_that_slice_their_examples_say_how_to_scan_over_them() -> None:
    def step(params: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            def turn(total: Any, number: Any) -> Any:
                now = [jax.lax.dynamic_slice_in_dim(one, number * 4, 4) for one in (x, y)]
                return total + error(params, *now), None

            return jax.lax.scan(turn, 0.0, jnp.arange(8))[0]

        return stablehlo_alpa.grad(loss)(params)

    mend = r"scans over them \(xs=x.reshape\(turns, ...\), or lax.map\), in a multiple of 4 turns"
    with pytest.raises(CompileError, match=mend):
        pipeline(step, 4).plan(PARAMS, X, Y)
