"""The exact solver and the integer programme agree on every model of the zoo."""

from __future__ import annotations

import importlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stablehlo_alpa import _core
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.cost import PricedGraph, StrategyGraph, price
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.intra_op import SolveOptions, solve
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.exact import minimize
from stablehlo_alpa.intra_op.ilp import solve_ilp
from stablehlo_alpa.intra_op.work import Work

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "mlp": ("mlp", {}),
    "mlp_adafactor": ("mlp", {"optimizer": "adafactor"}),
    "gpt": ("gpt", {"layers": 1}),
    "gpt_odd": ("gpt", {"batch": 6, "vocabulary": 1001, "heads": 3, "hidden": 48, "layers": 1}),
    "gpt_scanned": ("gpt", {"is_scanned": True}),
    "gpt_bf16": ("gpt", {"dtype": jnp.bfloat16, "has_bias": False, "layers": 1}),
    "llama": ("llama", {"layers": 1}),
    "moe": ("moe", {"layers": 1}),
    "wide_resnet": ("wide_resnet", {}),
    "unet": ("unet", {}),
    "vit": ("vit", {}),
    "lstm": ("lstm", {}),
    "mixer": ("mixer", {}),
    "encoder_decoder": ("encoder_decoder", {}),
}


def priced_graph(name: str, mesh_shape: tuple[int, ...]) -> PricedGraph:
    """The strategy graph of a model's train step, in seconds on V100s."""
    model, options = MODELS[name]
    module = importlib.import_module(f"models.{model}")
    found: list[Any] = []

    def build() -> Any:
        found.append(module.make(**options))
        return found[0].args

    args = jax.eval_shape(build)
    program = trace(found[0].step, args, {})
    pipeline = f"alpa-prepare-pipeline{{{program.state_option}}}"
    merged, _ = _core.run_pipeline(program.text, f"builtin.module({pipeline})")
    device = preset_for("v100")
    mesh = ClusterSpec(device, mesh_shape[0], int(np.prod(mesh_shape[1:]))).logical_mesh(mesh_shape)
    return price(StrategyGraph.from_arrays(_core.strategy_graph(merged, mesh.axes)), mesh, device)


# The integer programme takes long on three axes; one model is solved there with every run of the
# tests, the others with `make test-matrix`, and so is every other model on every other mesh.
THREE_AXES = {"mlp"}
SHAPES = ((1, 8), (2, 4), (2, 2, 2))


def _how_often(model: str, shape: tuple[int, ...]) -> Any:
    if model in THREE_AXES:
        return ()
    if SHAPES.index(shape) != list(MODELS).index(model) % 2:
        return pytest.mark.matrix
    return pytest.mark.slow


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        pytest.param(model, shape, marks=_how_often(model, shape), id=f"{model}-{shape}")
        for model in MODELS
        for shape in SHAPES
    ],
)
def test_optimum_equals_the_integer_programme(model: str, shape: tuple[int, ...]) -> None:
    priced = priced_graph(model, shape)
    exact = solve(priced)
    assert exact.status == "optimal"
    # The programme over what the bound did not drop, and over everything where that is quick.
    costs = Costs.of(priced)
    kept = minimize(costs, small_table=0).kept
    problems = [costs.restrict(kept)]
    if sum(table.size for table in costs.tables) < 100_000:
        problems.append(costs)
    for problem in problems:
        answer = solve_ilp(problem, None, Work.of(300.0), 1e-10)
        assert answer.status == "optimal"
        assert answer.labels is not None
        assert problem.value(answer.labels) == pytest.approx(exact.objective_s, rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param("gpt", marks=pytest.mark.matrix),
        pytest.param("moe", marks=pytest.mark.slow),
        pytest.param("unet", marks=pytest.mark.matrix),
    ],
)
def test_a_budget_is_kept_within_the_reported_gap(model: str) -> None:
    priced = priced_graph(model, (2, 4))
    free = solve(priced)
    least = solve(priced, SolveOptions(memory_budget=0.98 * free.memory_peak_bytes))
    assert least.memory_peak_bytes <= 0.98 * free.memory_peak_bytes * (1 + 1e-6)
    assert least.objective_s >= free.objective_s
    assert least.gap <= 2e-3
    assert least.memory_price_s > 0
