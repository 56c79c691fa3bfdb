"""Steps whose gradients jax has taken, or a library that calls it, are pipelines too."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from flax.training.train_state import TrainState
from often import seldom
from test_models import assert_trees_close

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    AutoStages,
    FollowModuleLayers,
    ManualLayers,
    PipeshardParallel,
    UniformStages,
)
from stablehlo_alpa.errors import StageError, TraceError

TWO = UniformStages(2)
DRAW = np.random.default_rng(4)
X, Y = DRAW.normal(size=(16, 12)).astype("f"), DRAW.normal(size=(16, 4)).astype("f")
WEIGHTS = [0.4 * DRAW.normal(size=size).astype("f") for size in ((12, 20), (20, 20), (20, 4))]


def planned(step: Any, *args: Any, stages: Any = TWO, layers: Any = None, count: int = 2) -> Any:
    """The plan of a pipeline whose results are those of jit."""
    method = PipeshardParallel(
        num_micro_batches=count, stages=stages, layers=layers or AutoLayers(num_layers=4)
    )
    parallel = stablehlo_alpa.parallelize(step, method=method)
    assert_trees_close(parallel(*args), jax.jit(step)(*args), 1e-4, "results")
    return parallel.plan(*args)


def model(weights: Any, x: Any) -> Any:
    for weight in weights[:-1]:
        x = jnp.tanh(x @ weight)
    return x @ weights[-1]


def loss(weights: Any, x: Any, y: Any) -> Any:
    return jnp.mean((model(weights, x) - y) ** 2)


def descend(weights: Any, gradients: Any) -> Any:
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


ALIKE = ("vit", "unet", "encoder_decoder")
"""Models whose stages differ by a message or an operator, and are no slower for it."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["mlp", "gpt", "moe", *map(seldom, ("llama", "vit", "unet", "encoder_decoder", "lstm"))]
)
def test_models_are_cut_as_where_layers_are_marked(name: str) -> None:
    case = importlib.import_module(f"models.{name}").make()
    layers = AutoLayers(num_layers=2, remat=False)
    by_jax = planned(case.make_step(jax.value_and_grad), *case.args, layers=layers)
    method = PipeshardParallel(num_micro_batches=2, stages=TWO, layers=layers)
    marked = stablehlo_alpa.parallelize(case.step, method=method).plan(*case.args)
    sent = [sum(map(len, plan.runtime.instructions)) for plan in (by_jax, marked)]
    assert sent[0] <= 1.05 * sent[1] if name in ALIKE else sent[0] == sent[1]
    for one, other in zip(by_jax.stages, marked.stages, strict=True):
        found, wanted = (sum(phase.compute_s for phase in stage.phases) for stage in (one, other))
        assert found <= 1.02 * wanted
        for phase in () if name in ALIKE else other.phases:
            seconds = one.phase(phase.name).compute_s
            assert seconds == pytest.approx(phase.compute_s, rel=0.05, abs=1e-6)


def nnx_step() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            sizes = (12, 24, 24, 4)
            self.parts = nnx.List([nnx.Linear(a, b, rngs=rngs) for a, b in pairwise(sizes)])

        def __call__(self, x: Any) -> Any:
            for part in self.parts:
                x = part(jnp.tanh(x))
            return x

    whole = Model(nnx.Rngs(0))
    graph, state = nnx.split((whole, nnx.Optimizer(whole, optax.adam(1e-2), wrt=nnx.Param)))

    def step(state: Any, x: Any, y: Any) -> Any:
        model, optimizer = nnx.merge(graph, state)
        value, gradients = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        optimizer.update(model, gradients)
        return nnx.state((model, optimizer)), value

    return step, (state, X, Y)


def equinox_step() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    net = eqx.nn.MLP(12, 4, 24, 3, key=jax.random.key(0))
    params, static = eqx.partition(net, eqx.is_inexact_array)
    optimizer = optax.adamw(1e-3)

    def step(params: Any, opt_state: Any, x: Any, y: Any) -> Any:
        net = eqx.combine(params, static)
        lost = eqx.filter_value_and_grad(lambda net: jnp.mean((jax.vmap(net)(x) - y) ** 2))
        value, gradients = lost(net)
        gradients = eqx.filter(gradients, eqx.is_inexact_array)
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        return eqx.apply_updates(params, updates), opt_state, value

    return step, (params, optimizer.init(params), X, Y)


def flax_step() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Jitted by its author, with dropout, and what the optimiser needs of all gradients."""

    class Model(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(3):
                x = linen.Dropout(0.3, deterministic=False)(linen.relu(linen.Dense(24)(x)))
            return linen.Dense(4)(x)

    module, keys = Model(), {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-3))
    made = TrainState.create(
        apply_fn=module.apply, params=module.init(keys, X)["params"], tx=optimizer
    )

    @jax.jit
    def step(state: Any, x: Any, y: Any, key: Any) -> Any:
        def lost(params: Any) -> Any:
            found = state.apply_fn({"params": params}, x, rngs={"dropout": key})
            return jnp.mean((found - y) ** 2), found.sum()

        (value, total), gradients = jax.value_and_grad(lost, has_aux=True)(state.params)
        return state.apply_gradients(grads=gradients), value, total

    return step, (made, X, Y, jax.random.key(2))


@pytest.mark.slow
@pytest.mark.parametrize("make", [nnx_step, equinox_step, flax_step])
def test_libraries_that_take_gradients_by_jax(make: Any) -> None:
    step, args = make()
    assert len(planned(step, *args, stages=AutoStages()).remarks) >= 1
    assert len(planned(step, *args).stages) == 2


def test_layers_are_those_that_are_asked_for() -> None:
    def marked(weights: Any, x: Any, y: Any) -> Any:
        hidden = jnp.tanh(x @ weights[0])
        stablehlo_alpa.layer_boundary()
        return jnp.mean((jnp.tanh(hidden @ weights[1]) @ weights[2] - y) ** 2)

    def step(weights: Any, x: Any, y: Any) -> Any:
        return descend(weights, jax.grad(marked)(weights, x, y))

    plan = planned(step, WEIGHTS, X, Y, layers=ManualLayers())
    # A layer's parameters, their gradients and their updates are where the layer is.
    for stage, numbers in zip(plan.stages, ((0,), (1, 2)), strict=True):
        held = {value.name for phase in stage.phases for value in phase.program.inputs}
        assert {f"weights[{n}]" for n in numbers} <= held
        assert not {f"weights[{n}]" for n in range(3) if n not in numbers} & held


def test_a_loss_that_is_jitted_itself() -> None:
    def step(weights: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(jax.jit(loss))(weights, x, y)
        return descend(weights, gradients), value

    assert len(planned(step, WEIGHTS, X, Y).stages) == 2


@pytest.mark.slow
def test_blocks_that_the_model_computes_again() -> None:
    class Model(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(4):
                x = linen.remat(linen.Dense)(12)(x) + linen.tanh(x)
            return linen.Dense(4)(x)

    params = Model().init(jax.random.key(0), X)

    def step(params: Any, x: Any, y: Any) -> Any:
        value, found = jax.value_and_grad(lambda p: jnp.mean((Model().apply(p, x) - y) ** 2))(
            params
        )
        return descend(params, found), value

    planned(step, params, X, Y, layers=FollowModuleLayers())


def test_a_penalty_on_gradients_is_a_part_of_the_loss() -> None:
    def penalised(weights: Any, x: Any, y: Any) -> Any:
        slopes = jax.vmap(jax.grad(lambda row: model(weights, row).sum()))(x)
        return loss(weights, x, y) + jnp.mean(slopes**2)

    def step(weights: Any, x: Any, y: Any) -> Any:
        value, gradients = jax.value_and_grad(penalised)(weights, x, y)
        return descend(weights, gradients), value

    planned(step, WEIGHTS, X, Y)


def test_gradients_of_each_example() -> None:
    """As they are clipped for privacy: the backward phase has them side by side."""

    def step(weights: Any, x: Any, y: Any) -> Any:
        each = jax.vmap(jax.grad(loss), (None, 0, 0))(weights, x[:, None], y[:, None])
        norms = jnp.sqrt(sum(jnp.sum(one**2, (1, 2)) for one in each))
        scale = jnp.minimum(1.0, 1.0 / norms) / len(x)
        return descend(weights, [jnp.einsum("n,nij->ij", scale, one) for one in each])

    planned(step, WEIGHTS, X, Y)


def in_turns(weights: Any, x: Any, y: Any) -> Any:
    """The gradient at what another gradient has made."""
    ahead = descend(weights, jax.grad(loss)(weights, x, y))
    return descend(weights, jax.grad(loss)(ahead, x, y))


def along_itself(weights: Any, x: Any, y: Any) -> Any:
    """The gradient, and its derivative in its own direction."""
    slope = jax.grad(lambda w: loss(w, x, y))
    gradients, bent = jax.jvp(slope, (weights,), (slope(weights),))
    return descend(descend(weights, gradients), bent)


@pytest.mark.parametrize("step", [in_turns, along_itself])
def test_gradients_that_are_taken_more_than_once_are_one_layer(step: Any) -> None:
    plan = planned(step, WEIGHTS, X, Y, stages=AutoStages(), count=1)
    assert len(plan.stages) == 1
    assert any("only where they are taken once" in remark for remark in plan.remarks)
    with pytest.raises(StageError, match=r"2 stages need .* has 1: .* taken once.*value_and_grad"):
        planned(step, WEIGHTS, X, Y)


def test_nothing_is_computed_again_behind_jax() -> None:
    def step(weights: Any, x: Any, y: Any) -> Any:
        return descend(weights, jax.grad(loss)(weights, x, y))

    with pytest.raises(TraceError, match="behind which no layer can be computed again"):
        planned(step, WEIGHTS, X, Y, layers=AutoLayers(num_layers=2, remat=True))
