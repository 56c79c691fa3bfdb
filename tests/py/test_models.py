"""Parallel training equals plain ``jax.jit``: models, optimisers, meshes, odd sizes."""

import importlib
import math
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models.case import TrainCase

import stablehlo_alpa

STEPS = 3


@dataclass(frozen=True)
class Run:
    """One comparison: a model of the zoo with its options, on one mesh."""

    model: str
    mesh_shape: tuple[int, int]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """A readable test id."""
        options = [f"{name}={getattr(v, '__name__', v)}" for name, v in self.options.items()]
        return "-".join([self.model, "x".join(map(str, self.mesh_shape)), *options])


ODD_GPT = {"batch": 6, "vocabulary": 1001, "heads": 3, "hidden": 48, "layers": 1}

# Small enough for every change: one run a family, and the trivial mesh once.
QUICK = [
    Run("mlp", (2, 4)),
    Run("mlp", (1, 1)),
    Run("lstm", (1, 8), {"optimizer": "sgd"}),
]

# Other meshes, optimisers and sizes; every family on (2, 4) is in ``test_optimised.py``.
SLOW = [
    Run("mlp", (1, 8), {"optimizer": "sgd"}),
    Run("mlp", (8, 1), {"optimizer": "adafactor"}),
    Run("gpt", (2, 4), ODD_GPT),
    Run("gpt", (2, 4), {"dtype": jnp.bfloat16, "has_bias": False, "layers": 1}),
    Run("gpt", (1, 8), {"is_scanned": True}),
    Run("moe", (1, 8)),
]

MATRIX = [
    Run("gpt", (2, 4), {"optimizer": "adafactor", "layers": 1}),
    Run("gpt", (2, 4), {"layers": 1}),
    Run("gpt", (1, 8)),
    Run("gpt", (8, 1)),
    Run("gpt", (1, 1), {"layers": 1}),
    Run("gpt", (2, 4), {"optimizer": "sgd", "layers": 1}),
    Run("gpt", (2, 4), {"is_scanned": True}),
    Run("moe", (2, 4)),
    Run("wide_resnet", (2, 4)),
    Run("wide_resnet", (1, 8), {"optimizer": "adam"}),
    Run("vit", (2, 4)),
    Run("vit", (8, 1), {"optimizer": "sgd"}),
    Run("llama", (2, 4), {"layers": 1}),
    Run("unet", (2, 4)),
    Run("encoder_decoder", (2, 4)),
    Run("lstm", (2, 4)),
    Run("mixer", (2, 4)),
    Run("mixer", (8, 1), {"optimizer": "sgd"}),
]


def relative_error(actual: Any, expected: Any) -> float:
    """``|actual - expected| / |expected|`` in the Euclidean norm; the absolute norm at zero."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    scale = np.linalg.norm(expected)
    return float(np.linalg.norm(actual - expected) / (scale if scale > 0 else 1.0))


def assert_trees_close(actual: Any, expected: Any, bound: float, what: str) -> None:
    actual_leaves = jax.tree_util.tree_leaves_with_path(actual)
    expected_leaves = jax.tree_util.tree_leaves_with_path(expected)
    assert [path for path, _ in actual_leaves] == [path for path, _ in expected_leaves]
    wrong = []
    for (path, a), (_, e) in zip(actual_leaves, expected_leaves, strict=True):
        assert a.shape == e.shape
        assert a.dtype == e.dtype
        error = relative_error(a, e)
        if not error <= bound:
            wrong.append(f"{jax.tree_util.keystr(path)}: {error:.2e}")
    assert not wrong, f"{what} differ by more than {bound}: {wrong}"


def make(run: Run) -> TrainCase:
    module = importlib.import_module(f"models.{run.model}")
    case: TrainCase = module.make(with_gradients=True, **run.options)
    return case


def train(step: Any, case: TrainCase) -> tuple[Any, list[Any]]:
    """Runs the first steps; each takes another key, as training does."""
    state, history = case.state, []
    for index in range(STEPS):
        state, metrics = step(state, case.batch, jax.random.fold_in(case.rng, index))
        history.append(metrics)
    return state, history


@pytest.mark.parametrize(
    "run",
    [pytest.param(run, id=run.id) for run in QUICK]
    + [pytest.param(run, id=run.id, marks=pytest.mark.slow) for run in SLOW]
    + [pytest.param(run, id=run.id, marks=pytest.mark.matrix) for run in MATRIX],
)
def test_parallel_equals_jit(run: Run) -> None:
    compare(run)


def compare(run: Run, backend: str = "alpa") -> None:
    """Trains in parallel and by plain jit."""
    case = make(run)
    is_low_precision = run.options.get("dtype") == jnp.bfloat16
    bound_first, bound_params = (2e-2, 2e-2) if is_low_precision else (1e-5, 1e-4)

    state, history = train(jax.jit(case.step), case)
    method = stablehlo_alpa.ShardParallel(mesh_shape=run.mesh_shape, backend=backend)
    devices = jax.devices()[: math.prod(run.mesh_shape)]
    parallel = stablehlo_alpa.parallelize(case.step, method=method, devices=devices)
    parallel_state, parallel_history = train(parallel, case)

    assert_trees_close(parallel_history[0], history[0], bound_first, "loss and gradients")
    losses = [metrics["loss"] for metrics in history]
    parallel_losses = [metrics["loss"] for metrics in parallel_history]
    assert_trees_close(parallel_losses, losses, bound_params, "losses")
    assert_trees_close(parallel_state.params, state.params, bound_params, "parameters")
    assert_trees_close(parallel_state.statistics, state.statistics, bound_params, "statistics")


def test_zoo_trains_under_jit() -> None:
    """The zoo itself is sound: a few steps on one batch lower the loss."""
    case = make(Run("mlp", (1, 1)))
    _, history = train(jax.jit(case.step), case)
    assert history[-1]["loss"] < history[0]["loss"]
