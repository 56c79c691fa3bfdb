"""Time from a GPT train step to its plan: tracing, strategies, the integer linear programme."""

import report

report.prepare_devices(64)

import time
from typing import Any

import jax
from models import gpt
from models.case import TrainCase

import stablehlo_alpa

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


def plan_time_s(layers: int, batch: int, mesh_shape: tuple[int, int]) -> tuple[float, Any]:
    """Seconds of one cold ``.plan``, and the plan."""
    step, args = abstract_case(layers, batch)
    method = stablehlo_alpa.ShardParallel(mesh_shape=mesh_shape)
    devices = jax.devices()[: mesh_shape[0] * mesh_shape[1]]
    parallel = stablehlo_alpa.parallelize(step, method=method, devices=devices)
    start = time.perf_counter()
    plan = parallel.plan(*args)
    return time.perf_counter() - start, plan


def measure(quick: bool) -> list[report.Row]:
    """Planning times of a 4-layer GPT on 2x4 and, unless quick, of 24 layers on 8x8."""
    rows = []
    total, plan = plan_time_s(4, 16, (2, 4))
    rows.append(report.limited("4 layers on 2x4, in all", total, "s", bar=5.0))
    if not quick:
        total, plan = plan_time_s(24, 64, (8, 8))
        timings = plan.timings
        graph_s = timings.trace_s + timings.strategies_s
        rows += [
            report.limited("24 layers on 8x8, trace to strategy graph", graph_s, "s", bar=3.0),
            report.limited("24 layers on 8x8, ILP", timings.solve_s, "s", bar=60.0),
            report.measured("24 layers on 8x8, in all", total, "s"),
        ]
    return rows


if __name__ == "__main__":
    report.main("Planning time of a GPT train step", measure)
