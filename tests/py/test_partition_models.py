"""Models of other libraries through ``partition`` and ``shardings``, in a user's own jit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from models import mixer, transformer, vit
from models.case import TrainCase
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from test_models import assert_trees_close

import stablehlo_alpa

STEPS = 3


@pytest.fixture
def mesh() -> Mesh:
    return jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def train(step: Any, state: Any, data: Any, rng: jax.Array) -> tuple[Any, list[Any]]:
    losses = []
    for number in range(STEPS):
        state, metrics = step(state, data, jax.random.fold_in(rng, number))
        losses.append(metrics["loss"])
    return state, losses


MODELS: dict[str, Callable[[], TrainCase]] = {
    "haiku transformer": transformer.make,
    "equinox mixer": mixer.make,
    "flax nnx vit": vit.make,
}


# Each model by one of the doors with every run of the tests.
OFTEN = {("haiku transformer", "partition"), ("flax nnx vit", "shardings")}


@pytest.mark.parametrize(
    ("name", "door"),
    [
        pytest.param(*one, marks=pytest.mark.slow if one in OFTEN else pytest.mark.matrix)
        for one in itertools.product(MODELS, ("partition", "shardings"))
    ],
)
def test_train_steps(name: str, door: str, mesh: Mesh) -> None:
    case = MODELS[name]()
    step = case.make_step(jax.value_and_grad)
    if door == "partition":
        rows = NamedSharding(mesh, PartitionSpec("data"))
        found = jax.jit(stablehlo_alpa.partition(step), in_shardings=(None, rows, None))
    else:
        into, out = stablehlo_alpa.shardings(step, mesh, *case.args, donate_argnums=0)
        found = jax.jit(step, in_shardings=into, out_shardings=out)
    state, losses = train(found, *case.args)
    expected, expected_losses = train(jax.jit(step), *case.args)
    assert_trees_close(losses, expected_losses, 1e-5, "loss")
    assert_trees_close(state, expected, 1e-4, "state")


def regression(x: jax.Array, y: jax.Array | None = None) -> None:
    """Bayesian linear regression."""
    with numpyro.plate("features", x.shape[1]):
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Normal(x @ slope, scale), obs=y)


@pytest.mark.parametrize(
    "door",
    [
        pytest.param("partition", marks=pytest.mark.slow),
        pytest.param("shardings", marks=pytest.mark.matrix),
    ],
)
def test_svi_of_numpyro(door: str, mesh: Mesh) -> None:
    svi = SVI(regression, AutoNormal(regression), numpyro.optim.Adam(0.01), Trace_ELBO())
    x = jax.random.normal(jax.random.key(0), (64, 16))
    y = x @ jnp.arange(16.0) / 16
    first = svi.init(jax.random.key(1), x, y)
    rows = NamedSharding(mesh, PartitionSpec("data"))
    if door == "partition":
        update = jax.jit(stablehlo_alpa.partition(svi.update), in_shardings=(None, rows, rows))
    else:
        into, out = stablehlo_alpa.shardings(svi.update, mesh, first, x, y, donate_argnums=0)
        update = jax.jit(svi.update, in_shardings=into, out_shardings=out)
    state, expected = first, first
    for _ in range(STEPS):
        state, loss = update(state, x, y)
        expected, expected_loss = jax.jit(svi.update)(expected, x, y)
        assert_trees_close(loss, expected_loss, 1e-5, "loss")
    assert_trees_close(svi.get_params(state), svi.get_params(expected), 1e-4, "parameters")
