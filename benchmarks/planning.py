"""Time from a GPT train step to its plan: tracing, strategies, the integer linear programme."""

import report

report.prepare_devices(64)

import math
import time

import jax
import numpy as np
from model_graphs import (
    abstract_case,
    enumerate_strategies,
    gpt_of,
    mesh_of,
    prepare,
    trace_case,
)

import stablehlo_alpa
from stablehlo_alpa.frontend import trace
from stablehlo_alpa.intra_op import solve


def plan_time_s(layers: int, batch: int, mesh_shape: tuple[int, ...]) -> float:
    """Seconds of one cold ``.plan``, lowering included."""
    step, args = abstract_case(gpt_of(layers, batch))
    method = stablehlo_alpa.ShardParallel(mesh_shape=mesh_shape)
    devices = jax.devices()[: math.prod(mesh_shape)]
    parallel = stablehlo_alpa.parallelize(step, method=method, devices=devices)
    start = time.perf_counter()
    parallel.plan(*args)
    return time.perf_counter() - start


def phase_times_s(
    layers: int, batch: int, mesh_shape: tuple[int, ...], *, is_jitted: bool = False
) -> tuple[float, float]:
    """Seconds from the function to its strategy graph, and of pricing and solving that."""
    step, args = abstract_case(gpt_of(layers, batch, is_jitted=is_jitted))
    start = time.perf_counter()
    priced = enumerate_strategies(prepare(trace(step, args, {})), mesh_of(mesh_shape))
    has_graph = time.perf_counter()
    solve(priced)
    return has_graph - start, time.perf_counter() - has_graph


def jax_time_s(layers: int, batch: int) -> float:
    """Seconds that JAX alone takes to trace and to lower the step: what no planner can save."""
    step, args = abstract_case(gpt_of(layers, batch))
    start = time.perf_counter()
    jax.jit(step).lower(*args)
    return time.perf_counter() - start


def prepare_time_s(layers: int) -> float:
    """Seconds from the traced module of a GPT to operators with roles; the better of two runs."""
    program = trace_case(gpt_of(layers))
    times = []
    for _ in range(2):
        start = time.perf_counter()
        prepare(program)
        times.append(time.perf_counter() - start)
    return min(times)


def prepare_rows(depths: tuple[int, ...]) -> list[report.Row]:
    """Times of preparing models of growing depth, and how they grow.

    The exponent is the slope of log time over log layers by least squares: 1 is linear.
    """
    times_s = [prepare_time_s(layers) for layers in depths]
    rows = [
        report.limited(f"prepare {layers} layers", time_s, "s", bar=3.0)
        if layers == 96
        else report.measured(f"prepare {layers} layers", time_s, "s")
        for layers, time_s in zip(depths, times_s, strict=True)
    ]
    exponent = float(np.polyfit(np.log(depths), np.log(times_s), 1)[0])
    return [*rows, report.limited("prepare, power of the number of layers", exponent, "", bar=1.15)]


def measure(quick: bool) -> list[report.Row]:
    """Planning times of a 4-layer GPT on 2x4, and how preparing grows with depth.

    Unless quick, deeper models, and 24 layers on 8x8.
    """
    total_s = plan_time_s(4, 16, (2, 4))
    rows = [report.limited("4 layers on 2x4, in all", total_s, "s", bar=5.0)]
    rows += prepare_rows((12, 24, 48) if quick else (12, 24, 48, 96, 192))
    if not quick:
        graph_s, solve_s = phase_times_s(24, 64, (8, 8))
        called_s, _ = phase_times_s(24, 64, (8, 8), is_jitted=True)
        rows += [
            report.measured("24 layers, traced and lowered by JAX alone", jax_time_s(24, 64), "s"),
            report.limited("24 layers on 8x8, trace to strategy graph", graph_s, "s", bar=1.5),
            report.measured("24 jitted layers on 8x8, trace to strategy graph", called_s, "s"),
            report.limited("24 layers on 8x8, exact solver", solve_s, "s", bar=60.0),
        ]
    return rows


if __name__ == "__main__":
    report.main("Planning time of a GPT train step", measure)
