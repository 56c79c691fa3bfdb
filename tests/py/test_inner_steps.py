"""Loops and branches of a step that go through the whole batch, under micro-batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from batch_steps import BATCH, MASK, PARAMS, ROWS, check, hidden
from jax import lax
from often import each_with_one_of
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import DataParallel, ShardParallel, Zero3Parallel
from stablehlo_alpa.errors import CompileError


def error(params: Any, x: Any) -> Any:
    return jnp.mean((hidden(params, x) - x) ** 2)


def moved(params: Any, gradients: Any, rate: Any = 0.1) -> Any:
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def of_optimizer(optimizer: Any) -> Callable[..., Any]:
    """A step whose optimiser looks at the loss of other parameters itself."""

    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            return error(params, x)

        state = optimizer.init(params)
        for _ in range(2):
            value, gradients = stablehlo_alpa.value_and_grad(loss)(params)
            updates, state = optimizer.update(
                gradients, state, params, value=value, grad=gradients, value_fn=loss
            )
            params = optax.apply_updates(params, updates)
        return params, state, value

    return step


BACKTRACKING = optax.chain(
    optax.sgd(4.0), optax.scale_by_backtracking_linesearch(max_backtracking_steps=6)
)


def updates(params: Any, x: Any) -> Any:
    """Several updates on one batch."""

    def turn(params: Any, rate: Any) -> Any:
        value, gradients = jax.value_and_grad(error)(params, x)
        return moved(params, gradients, rate), value

    return lax.scan(turn, params, jnp.array([0.3, 0.2, 0.1]))


def until_small(params: Any, x: Any) -> Any:
    """As many as it takes, of what is made of the batch in front of the loop."""
    x = 0.5 * x + 0.1

    def turn(carried: Any) -> Any:
        params, number, _ = carried
        value, gradients = jax.value_and_grad(error)(params, x)
        return moved(params, gradients), number + 1, value

    start = params, jnp.int32(0), jnp.float32(9.0)
    return lax.while_loop(lambda now: (now[1] < 5) & (now[2] > 0.2), turn, start)


def in_turn(params: Any, x: Any) -> Any:
    """The second gradients of each turn are taken at what the first have made."""

    def turn(_: Any, params: Any) -> Any:
        up = jax.grad(error)(params, x)
        return moved(params, jax.grad(error)(moved(params, up, -0.05), x))

    return lax.fori_loop(0, 3, turn, params)


def updates_and_more(params: Any, x: Any) -> Any:
    """Losses and gradients at what a loop has made."""
    params, losses = updates(params, x)
    value, gradients = jax.value_and_grad(error)(params, x)
    params, more = updates(moved(params, gradients), x)
    return params, losses, value, more, error(params, x)


def now_and_then(params: Any, x: Any, does: Any) -> Any:
    """Updates in some steps, a loss in all."""
    trained = lax.cond(
        does, lambda: moved(params, jax.grad(error)(params, x)), lambda: list(params)
    )
    return trained, error(params, x)


def of_batch_or_noise(params: Any, x: Any, does: Any) -> Any:
    """Updates in turn, as of a discriminator and a generator: one has nothing of the batch."""
    noise = jax.random.normal(jax.random.key(0), x.shape)

    def update(x: Any) -> Any:
        value, gradients = jax.value_and_grad(error)(params, x)
        return moved(params, gradients), value

    return lax.cond(does, lambda: update(x), lambda: update(noise))


STEPS = {
    "lbfgs": of_optimizer(optax.lbfgs(memory_size=2)),
    "backtracking": of_optimizer(BACKTRACKING),
    "updates": updates,
    "until small": until_small,
    "updates and more": updates_and_more,
    "in turn": in_turn,
}
METHODS = {
    "search": ShardParallel(num_micro_batches=2),
    "data": DataParallel(num_micro_batches=4),
    "zero3": Zero3Parallel(num_micro_batches=2),
}


@pytest.mark.parametrize(("name", "method"), each_with_one_of(STEPS, METHODS))
def test_turns_go_through_the_micro_batches(name: str, method: str) -> None:
    parallel = stablehlo_alpa.parallelize(STEPS[name], method=METHODS[method])
    assert_same(parallel(PARAMS, BATCH), jax.jit(STEPS[name])(PARAMS, BATCH))


@pytest.mark.parametrize("does", [True, False])
@pytest.mark.parametrize("step", [now_and_then, of_batch_or_noise])
def test_branches_go_through_the_micro_batches(step: Callable[..., Any], does: bool) -> None:
    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))
    args = PARAMS, BATCH, jnp.bool_(does)
    assert_same(parallel(*args), jax.jit(step)(*args))


@pytest.mark.parametrize("name", ["lbfgs", "backtracking"])
def test_a_stage_searches_along_the_line(name: str) -> None:
    """Gradients are of the layers; other parameters are tried behind them, in one stage."""
    check(STEPS[name], PARAMS, BATCH, count=2)


def test_turns_take_the_memory_of_a_micro_batch() -> None:
    types = (
        [jax.ShapeDtypeStruct((64, 64), jnp.float32)] * 8,
        jax.ShapeDtypeStruct((16384, 64), jnp.float32),
    )

    def peak(count: int) -> float:
        method = DataParallel(num_micro_batches=count)
        return stablehlo_alpa.parallelize(updates, method=method).plan(*types).peak_bytes

    assert peak(16) < 0.5 * peak(1)


def test_the_remark_says_where_micro_batches_are() -> None:
    parallel = stablehlo_alpa.parallelize(updates, method=ShardParallel(num_micro_batches=2))
    remarks = [str(remark) for remark in parallel.plan(PARAMS, BATCH).remarks]
    assert any("its 2 micro-batches are a loop inside of it" in remark for remark in remarks)
    assert not any("no product is divided" in remark for remark in remarks)


def test_statistics_of_the_batch_in_turns_are_refused() -> None:
    def step(params: Any, x: Any) -> Any:
        def normalised(params: Any) -> Any:
            made = hidden(params, x)
            made = (made - made.mean(0)) / (made.std(0) + 0.1)
            return jnp.mean(hidden(params, made) * MASK[:, None])

        def turn(params: Any, _: Any) -> Any:
            return moved(params, jax.grad(normalised)(params)), None

        return lax.scan(turn, params, None, ROWS)[0]

    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=2))
    with pytest.raises(
        CompileError, match=r"while' cannot run once per.*fori_loop over parts of the batch"
    ):
        parallel.plan(PARAMS, BATCH)
    whole = stablehlo_alpa.parallelize(step, method=ShardParallel())
    assert_same(whole(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))
