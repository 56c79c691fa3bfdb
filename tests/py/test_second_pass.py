"""Gradients at what others of the same step have made: the batch is gone through once more."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from batch_steps import BATCH, MASK, PARAMS, ROWS, WIDTH, check, hidden, pipeline, weights
from often import each_with_one_of, one_in
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import DataParallel, ShardParallel
from stablehlo_alpa.errors import CompileError

OTHERS = [weights(WIDTH, WIDTH, seed=i) for i in range(3, 5)]
NOISE = jax.random.normal(jax.random.key(11), (ROWS, WIDTH))
KEY = jax.random.key(3)


def error(params: Any, x: Any) -> Any:
    return jnp.mean((hidden(params, x) - x) ** 2)


def moved(params: Any, gradients: Any, rate: Any = 0.1) -> Any:
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


def of_critic(critic: Any, maker: Any, noise: Any, x: Any) -> Any:
    real, made = hidden(critic, x).sum(-1), hidden(critic, hidden(maker, noise)).sum(-1)
    return jnp.mean(jax.nn.softplus(-real)) + jnp.mean(jax.nn.softplus(made))


def of_maker(maker: Any, critic: Any, noise: Any) -> Any:
    return jnp.mean(jax.nn.softplus(-hidden(critic, hidden(maker, noise)).sum(-1)))


def in_turn(maker: Any, critic: Any, noise: Any, x: Any) -> Any:
    """The generator against what the discriminator has become."""
    of_first, gradients = stablehlo_alpa.value_and_grad(of_critic)(critic, maker, noise, x)
    critic = moved(critic, gradients)
    of_second, gradients = stablehlo_alpa.value_and_grad(of_maker)(maker, critic, noise)
    return moved(maker, gradients), critic, of_first, of_second


def in_turn_of_drawn_noise(maker: Any, critic: Any, key: Any, x: Any) -> Any:
    return in_turn(maker, critic, jax.random.normal(key, x.shape), x)


def sharp(params: Any, x: Any) -> Any:
    """Sharpness-aware minimisation, whose momentum sees the second gradients only."""
    optimizer = optax.adam(1e-2)
    up = stablehlo_alpa.grad(error)(params, x)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in up))
    steep = jax.tree.map(lambda p, g: p + 0.05 * g / norm, params, up)
    value, gradients = stablehlo_alpa.value_and_grad(error)(steep, x)
    updates, state = optimizer.update(gradients, optimizer.init(params), params)
    return optax.apply_updates(params, updates), state, value, norm


def thrice(params: Any, x: Any) -> Any:
    values: list[Any] = []
    for _ in range(3):
        value, gradients = stablehlo_alpa.value_and_grad(error)(params, x)
        params, values = moved(params, gradients), [*values, value]
    return params, values


def with_dropout(params: Any, x: Any, key: Any) -> Any:
    def loss(params: Any, key: Any) -> Any:
        return error(params, x * jax.random.bernoulli(key, 0.5, x.shape))

    first, second = jax.random.split(key)
    params = moved(params, stablehlo_alpa.grad(loss)(params, first))
    return moved(params, stablehlo_alpa.grad(loss)(params, second))


def of_a_mask(params: Any, x: Any, mask: Any) -> Any:
    def loss(params: Any) -> Any:
        each = jnp.sum(hidden(params, x) ** 2, -1)
        return jnp.sum(each * mask) / jnp.sum(mask)

    params = moved(params, stablehlo_alpa.grad(loss)(params))
    return moved(params, stablehlo_alpa.grad(loss)(params)), jnp.sum(mask)


def with_results_per_example(params: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        out = hidden(params, x)
        return jnp.mean(out**2), (out, out.T, jnp.sum(out > 0), jnp.max(out))

    gradients, first = stablehlo_alpa.grad(loss, has_aux=True)(params)
    gradients, second = stablehlo_alpa.grad(loss, has_aux=True)(moved(params, gradients))
    return moved(params, gradients), first, second


def of_what_the_first_has_made(params: Any, others: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        out = hidden(params, x)
        return jnp.mean(out**2), out

    gradients, out = stablehlo_alpa.grad(loss, has_aux=True)(params)
    others = jax.tree.map(lambda p, g: p + g, others, gradients)
    return moved(others, stablehlo_alpa.grad(error)(others, out))


def weighted_by_the_first(params: Any, x: Any) -> Any:
    """Weights are normalised over the batch, which the first pass has made all of."""

    def each(params: Any) -> Any:
        errors = jnp.sum((hidden(params, x) - x) ** 2, -1)
        return jnp.mean(errors), errors

    def weighted(params: Any, shares: Any) -> Any:
        return jnp.sum(shares * each(params)[1])

    gradients, errors = stablehlo_alpa.grad(each, has_aux=True)(params)
    shares = jax.nn.softmax(errors)
    return moved(params, stablehlo_alpa.grad(weighted)(moved(params, gradients), shares)), shares


def measured_behind(params: Any, x: Any) -> Any:
    """No gradient is taken in the second pass, of several rates the best is chosen."""
    gradients = stablehlo_alpa.grad(error)(params, x)
    rates = jnp.array([1.0, 0.1, 0.01])
    errors = jnp.stack([error(moved(params, gradients, rate), x) for rate in (1.0, 0.1, 0.01)])
    params = moved(params, gradients, rates[jnp.argmin(errors)])
    return params, errors, hidden(params, x).argmax(-1)


def along_the_first(params: Any, x: Any, y: Any) -> Any:
    """The length of a step by the curvature along the gradient, of examples and their targets."""

    def loss(params: Any) -> Any:
        return jnp.mean((hidden(params, x) - y) ** 2)

    def product(left: Any, right: Any) -> Any:
        return sum(jnp.vdot(a, b) for a, b in zip(left, right, strict=True))

    gradients = stablehlo_alpa.grad(loss)(params)
    curvature = product(gradients, jax.jvp(jax.grad(loss), (params,), (gradients,))[1])
    length = product(gradients, gradients) / (1e-3 + jnp.abs(curvature))
    return moved(params, gradients, 0.1 * length), length


def of_complex_weights(params: Any, x: Any) -> Any:
    def loss(params: Any) -> Any:
        return jnp.mean(jnp.abs(hidden(params, x)) ** 2)

    params = moved(params, stablehlo_alpa.grad(loss)(params))
    params = moved(params, stablehlo_alpa.grad(loss)(params))
    return jax.tree.map(jnp.real, params), jax.tree.map(jnp.imag, params)


STEPS: dict[str, tuple[Any, ...]] = {
    "complex": (of_complex_weights, [p * (0.3 + 0.2j) for p in PARAMS], BATCH),
    "along the first": (along_the_first, PARAMS, BATCH, NOISE),
    "in turn": (in_turn, PARAMS, OTHERS, NOISE, BATCH),
    "in turn, of drawn noise": (in_turn_of_drawn_noise, PARAMS, OTHERS, KEY, BATCH),
    "sharp": (sharp, PARAMS, BATCH),
    "thrice": (thrice, PARAMS, BATCH),
    "dropout": (with_dropout, PARAMS, BATCH, KEY),
    "mask": (of_a_mask, PARAMS, BATCH, MASK),
    "per example": (with_results_per_example, PARAMS, BATCH),
    "of the first": (of_what_the_first_has_made, PARAMS, OTHERS, BATCH),
    "weighted": (weighted_by_the_first, PARAMS, BATCH),
    "measured": (measured_behind, PARAMS, BATCH),
}


@pytest.mark.parametrize(("name", "method"), each_with_one_of(STEPS, [ShardParallel, DataParallel]))
def test_the_batch_is_gone_through_once_more_on_one_mesh(name: str, method: Any) -> None:
    step, *args = STEPS[name]
    parallel = stablehlo_alpa.parallelize(step, method=method(num_micro_batches=4))
    assert_same(parallel(*args), jax.jit(step)(*args))


@pytest.mark.parametrize(
    ("name", "count"),
    [*((name, 4) for name in STEPS), *one_in(3, ((name, 1) for name in STEPS))],
)
def test_the_batch_is_gone_through_once_more_in_a_pipeline(name: str, count: int) -> None:
    step, *args = STEPS[name]
    check(step, *args, count=count)


def test_gradients_need_no_mark_on_one_mesh() -> None:
    def step(params: Any, x: Any) -> Any:
        params = moved(params, jax.grad(error)(params, x))
        value, gradients = jax.value_and_grad(error)(params, x)
        return moved(params, gradients), value

    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))
    assert_same(parallel(PARAMS, BATCH), jax.jit(step)(PARAMS, BATCH))


def test_the_second_pass_takes_the_memory_of_a_micro_batch() -> None:
    types = (
        [jax.ShapeDtypeStruct((64, 64), jnp.float32)] * 16,
        jax.ShapeDtypeStruct((16384, 64), jnp.float32),
    )

    def peak(count: int) -> float:
        method = DataParallel(num_micro_batches=count)
        return stablehlo_alpa.parallelize(thrice, method=method).plan(*types).peak_bytes

    assert peak(16) < 0.5 * peak(1)


def test_statistics_of_the_batch_in_the_second_pass_are_refused() -> None:
    def normalised(params: Any, x: Any) -> Any:
        x = hidden(params, x)
        return jnp.mean(((x - x.mean(0)) / (x.std(0) + 0.1)) @ params[0] ** 2)

    def step(params: Any, x: Any) -> Any:
        params = moved(params, stablehlo_alpa.grad(error)(params, x))
        return moved(params, stablehlo_alpa.grad(normalised)(params, x))

    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))
    with pytest.raises(CompileError, match="needs the whole batch"):
        parallel.plan(PARAMS, BATCH)


@pytest.mark.parametrize("per_update", [1, 2])
def test_no_schedule_without_a_flush_says_what_the_second_pass_reads(per_update: int) -> None:
    parallel = pipeline(sharp, 4, schedule=stablehlo_alpa.pipedream(per_update))
    with pytest.raises(CompileError, match=r"step of their own"):
        parallel.plan(PARAMS, BATCH)
