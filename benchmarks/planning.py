"""Time from a GPT train step to its plan: tracing, strategies, the integer linear programme."""

import report

report.prepare_devices(64)

import math
import time
from typing import Any

import jax
from models import gpt
from models.case import TrainCase

import stablehlo_alpa
from stablehlo_alpa import _core
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.cost import StrategyGraph, price
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.intra_op import SolveOptions, solve

# hidden 1024 as in the paper's smallest models; the vocabulary of GPT-2, rounded up to divide.
SIZE: dict[str, Any] = {"hidden": 1024, "heads": 16, "vocabulary": 50304, "length": 1024}


def abstract_case(layers: int, batch: int) -> tuple[Any, Any]:
    """A GPT train step and its arguments' shapes; nothing of its size is allocated.

    Returns:
        the step, and its arguments as a pytree of ``jax.ShapeDtypeStruct``.
    """
    found: list[TrainCase] = []

    def build() -> Any:
        case = gpt.make(layers=layers, batch=batch, **SIZE)
        found.append(case)
        return case.args

    args = jax.eval_shape(build)
    return found[0].step, args


def plan_time_s(layers: int, batch: int, mesh_shape: tuple[int, ...]) -> float:
    """Seconds of one cold ``.plan``, lowering included."""
    step, args = abstract_case(layers, batch)
    method = stablehlo_alpa.ShardParallel(mesh_shape=mesh_shape)
    devices = jax.devices()[: math.prod(mesh_shape)]
    parallel = stablehlo_alpa.parallelize(step, method=method, devices=devices)
    start = time.perf_counter()
    parallel.plan(*args)
    return time.perf_counter() - start


def phase_times_s(layers: int, batch: int, mesh_shape: tuple[int, ...]) -> tuple[float, float]:
    """Seconds from the function to its strategy graph, and of pricing and solving that."""
    step, args = abstract_case(layers, batch)
    device = preset_for("v100")
    cluster = ClusterSpec(device, mesh_shape[0], math.prod(mesh_shape[1:]))
    mesh = cluster.logical_mesh(mesh_shape)
    start = time.perf_counter()
    program = trace(step, args, {})
    pipeline = f"alpa-prepare-pipeline{{aliases={program.alias_option}}}"
    merged, _ = _core.run_pipeline(program.text, f"builtin.module({pipeline})")
    graph = StrategyGraph.from_arrays(_core.strategy_graph(merged, mesh.axes))
    has_graph = time.perf_counter()
    solve(price(graph, mesh, device), SolveOptions())
    return has_graph - start, time.perf_counter() - has_graph


def measure(quick: bool) -> list[report.Row]:
    """Planning times of a 4-layer GPT on 2x4 and, unless quick, of 24 layers on 8x8."""
    total_s = plan_time_s(4, 16, (2, 4))
    rows = [report.limited("4 layers on 2x4, in all", total_s, "s", bar=5.0)]
    if not quick:
        graph_s, solve_s = phase_times_s(24, 64, (8, 8))
        rows += [
            report.limited("24 layers on 8x8, trace to strategy graph", graph_s, "s", bar=3.0),
            report.limited("24 layers on 8x8, ILP", solve_s, "s", bar=60.0),
        ]
    return rows


if __name__ == "__main__":
    report.main("Planning time of a GPT train step", measure)
