"""Steps that take more than one gradient, under methods that take micro-batches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
from batch_steps import BATCH, PARAMS, ROWS, WIDTH, check, hidden, weights
from oracle import assert_same

import stablehlo_alpa
from stablehlo_alpa import ShardParallel

OTHERS = [weights(WIDTH, WIDTH, seed=i + 5) for i in range(2)]
NOISE = jax.random.normal(jax.random.key(9), (ROWS, WIDTH))


def updated(params: Any, gradients: Any) -> Any:
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def score(critic: Any, x: Any) -> Any:
    return hidden(critic, x).sum(-1)


def of_critic(critic: Any, maker: Any, noise: Any, x: Any) -> Any:
    made = score(critic, hidden(maker, noise))
    return jnp.mean(jax.nn.softplus(-score(critic, x)) + jax.nn.softplus(made))


def of_maker(maker: Any, critic: Any, noise: Any) -> Any:
    return jnp.mean(jax.nn.softplus(-score(critic, hidden(maker, noise))))


def adversaries(maker: Any, critic: Any, noise: Any, x: Any) -> Any:
    """Generator and discriminator, each against the other as the step got it."""
    first = stablehlo_alpa.value_and_grad(of_critic)(critic, maker, noise, x)
    second = stablehlo_alpa.value_and_grad(of_maker)(maker, critic, noise)
    return updated(maker, second[1]), updated(critic, first[1]), first[0], second[0]


def actor_and_critic(actor: Any, critic: Any, noise: Any, x: Any) -> Any:
    def of_actor(actor: Any) -> Any:
        gain = jax.lax.stop_gradient(noise[:, 0] - score(critic, x))
        return -jnp.mean(jax.nn.log_softmax(hidden(actor, x))[:, 0] * gain)

    def of_values(critic: Any) -> Any:
        return jnp.mean((score(critic, x) - noise[:, 0]) ** 2)

    first = stablehlo_alpa.grad(of_values)(critic)
    value, second = stablehlo_alpa.value_and_grad(of_actor)(actor)
    return updated(actor, second), updated(critic, first), value


def penalised(maker: Any, critic: Any, noise: Any, x: Any) -> Any:
    """The gradient by the examples is a part of what is differentiated."""

    def loss(critic: Any) -> Any:
        mixed = 0.3 * x + 0.7 * hidden(maker, noise)
        slopes = jax.vmap(jax.grad(lambda one: score(critic, one[None]).sum()))(mixed)
        steep = jnp.sqrt(1e-6 + jnp.sum(slopes**2, -1)) - 1
        return of_critic(critic, maker, noise, x) + 10 * jnp.mean(steep**2)

    value, gradients = stablehlo_alpa.value_and_grad(loss)(critic)
    return updated(critic, gradients), value


def learning_to_learn(inner: Any, outer: Any, jitted: bool) -> Any:
    """Every example takes a step of its own: gradients by a layer's weights inside of the loss."""

    def step(maker: Any, critic: Any, noise: Any, x: Any) -> Any:
        def one(maker: Any, goal: Any, example: Any) -> Any:
            def distance(weights: Any) -> Any:
                return jnp.mean((hidden(weights, example[None]) - goal) ** 2)

            return distance(updated(maker, inner(distance)(maker)))

        def loss(maker: Any) -> Any:
            return jnp.mean(jax.vmap(one, (None, 0, 0))(maker, noise, x))

        value, gradients = outer(jax.jit(loss) if jitted else loss)(maker)
        return updated(maker, gradients), value

    return step


def in_turn(maker: Any, critic: Any, noise: Any, x: Any) -> Any:
    """The generator against what the discriminator has become."""
    critic = updated(critic, stablehlo_alpa.grad(of_critic)(critic, maker, noise, x))
    return updated(maker, stablehlo_alpa.grad(of_maker)(maker, critic, noise)), critic


def attacked(maker: Any, critic: Any, noise: Any, x: Any) -> Any:
    """Examples are moved up the loss, by gradients that are in no layer, in front of the layers."""

    def loss(maker: Any, x: Any) -> Any:
        return jnp.mean((hidden(maker, x) - noise) ** 2)

    moved = x
    for _ in range(3):
        moved = moved + 0.05 * jnp.sign(jax.grad(loss, argnums=1)(maker, moved))
    value, gradients = stablehlo_alpa.value_and_grad(loss)(maker, moved)
    return updated(maker, gradients), value, moved


ARGS = PARAMS, OTHERS, NOISE, BATCH


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("step", [adversaries, actor_and_critic, penalised, attacked])
def test_a_pipeline_takes_several_gradients(step: Any, count: int) -> None:
    check(step, *ARGS, count=count)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("outer", [jax.value_and_grad, stablehlo_alpa.value_and_grad])
def test_gradients_inside_of_a_loss_may_be_ours(outer: Any, jitted: bool) -> None:
    check(learning_to_learn(stablehlo_alpa.grad, outer, jitted), *ARGS, count=2)


@pytest.mark.parametrize("step", [adversaries, actor_and_critic, penalised, attacked])
def test_several_gradients_are_accumulated_on_one_mesh(step: Any) -> None:
    parallel = stablehlo_alpa.parallelize(step, method=ShardParallel(num_micro_batches=4))
    assert_same(parallel(*ARGS), jax.jit(step)(*ARGS))


def test_gradients_in_turn_can_be_two_steps() -> None:
    def first(critic: Any, maker: Any, noise: Any, x: Any) -> Any:
        return updated(critic, stablehlo_alpa.grad(of_critic)(critic, maker, noise, x))

    def second(maker: Any, critic: Any, noise: Any) -> Any:
        return updated(maker, stablehlo_alpa.grad(of_maker)(maker, critic, noise))

    method = ShardParallel(num_micro_batches=4)
    critic = stablehlo_alpa.parallelize(first, method=method)(OTHERS, PARAMS, NOISE, BATCH)
    maker = stablehlo_alpa.parallelize(second, method=method)(PARAMS, critic, NOISE)
    assert_same((maker, critic), jax.jit(in_turn)(*ARGS))
