"""Steps of a small batch, as pipelines and as they are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from test_models import assert_trees_close

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, PipeshardParallel, UniformStages

WIDTH, ROWS = 16, 8


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> jax.Array:
    """Normal numbers, for which nothing is compiled: modules of tests have them when imported."""
    return jnp.asarray(np.random.default_rng(seed).normal(0, scale, shape), jnp.float32)


def weights(*shape: int, seed: int = 0) -> jax.Array:
    return normal(*shape, seed=seed, scale=shape[0] ** -0.5)


def pipeline(fun: Any, count: int = 4, stages: int = 2, **options: Any) -> Any:
    return stablehlo_alpa.parallelize(
        fun,
        method=PipeshardParallel(
            num_micro_batches=count,
            stages=UniformStages(stages),
            layers=AutoLayers(num_layers=stages),
            **options,
        ),
    )


def hidden(params: Any, x: Any) -> Any:
    for w in params:
        x = jnp.tanh(x @ w)
    return x


PARAMS = [weights(WIDTH, WIDTH, seed=i) for i in range(2)]
BATCH = normal(ROWS, WIDTH, seed=7)
INDEX = jnp.asarray(np.arange(ROWS, dtype=np.int32) * 3 % 5)
MASK = jnp.asarray(np.arange(ROWS) % 3 != 0)


def grads(loss: Any, **options: Any) -> Any:
    def step(params: Any, *rest: Any) -> Any:
        return stablehlo_alpa.value_and_grad(loss, **options)(params, *rest)

    return step


def check(step: Any, *args: Any, count: int = 4, stages: int = 2, tolerance: float = 1e-5) -> Any:
    """The pipeline equals plain ``jax.jit`` of the step on the whole batch, dtypes included."""
    found = pipeline(step, count, stages)(*args)
    expected = jax.jit(step)(*args)
    structure: Any = jax.tree.structure(found)
    assert structure == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
    assert_trees_close(found, expected, tolerance, "results")
    return found
