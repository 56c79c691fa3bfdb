"""What a parallelised function costs over plain ``jax.jit``: on one device, and to dispatch."""

import report

report.prepare_devices(8)

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from alpa_runtime import Plan, compile_spmd
from alpa_runtime.plan import Run
from models import gpt, mlp
from models.case import TrainCase

import stablehlo_alpa


def interleaved_times_s(
    functions: dict[str, Callable[[], Any]], rounds: int, *, is_dispatch: bool = False
) -> dict[str, float]:
    """Times calls in turns, so that whatever else the machine does hits all alike.

    Args:
        functions: name to a call that returns arrays; its results are waited for.
        rounds: calls of each.
        is_dispatch: stop the clock when the call returns, before its results are there.

    Returns:
        median seconds of a call, by name.
    """
    for function in functions.values():
        jax.block_until_ready(function())
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            results = function()
            if not is_dispatch:
                jax.block_until_ready(results)
            times[name].append(time.perf_counter() - start)
            jax.block_until_ready(results)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def one_device_step(rounds: int) -> report.Row:
    """A GPT train step on one device, against ``jax.jit``."""
    case = gpt.make(layers=2, hidden=128, length=64)
    device = jax.devices()[0]
    args = jax.device_put(case.args, device)
    method = stablehlo_alpa.ShardParallel(mesh_shape=(1, 1))
    parallel = stablehlo_alpa.parallelize(case.step, method=method, devices=[device])
    plain = jax.jit(case.step)
    times = interleaved_times_s(
        {"parallel": lambda: parallel(*args), "jit": lambda: plain(*args)}, rounds
    )
    return report.compared(
        "train step on one device",
        1e3 * times["parallel"],
        "ms",
        against="jax.jit",
        reference=1e3 * times["jit"],
        bar=1.05,
    )


def eight_device_dispatch(rounds: int) -> report.Row:
    """Dispatch of a small step on eight devices, against ``jax.jit`` with the same shardings."""
    case = mlp.make(batch=64, layers=8)
    method = stablehlo_alpa.ShardParallel(mesh_shape=(2, 4))
    parallel = stablehlo_alpa.parallelize(case.step, method=method)
    results = parallel(*case.args)
    shardings, _ = parallel.compile(*case.args).input_shardings
    args = jax.device_put(case.args, shardings)
    plain = jax.jit(
        case.step,
        in_shardings=shardings,
        out_shardings=jax.tree.map(lambda leaf: leaf.sharding, results),
    )
    times = interleaved_times_s(
        {"parallel": lambda: parallel(*args), "jit": lambda: plain(*args)}, rounds, is_dispatch=True
    )
    return report.compared(
        "dispatch on 8 devices",
        1e6 * times["parallel"],
        "us",
        against="jax.jit, same shardings",
        reference=1e6 * times["jit"],
        bar=1.1,
    )


def compiled_pipeline(case: TrainCase, count: int, num_devices: int) -> tuple[Any, Any]:
    """Two stages on some devices, and the arguments where the plan wants them."""
    method = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=count,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
        schedule="1f1b",
    )
    devices = jax.devices()[:num_devices]
    step = stablehlo_alpa.parallelize(case.step, method=method, devices=devices)
    compiled = step.compile(*case.args)
    shardings, _ = compiled.input_shardings
    # Batches are split by the step itself.
    args = [jax.device_put(case.state, shardings[0]), *case.args[1:]]
    jax.block_until_ready(compiled(*args))
    return compiled, args


def runs_of(plan: Plan) -> Callable[[], float]:
    """Runs every program as often as a step does, one after the other, each waited for."""
    devices = jax.devices()
    counts: dict[tuple[int, int], int] = {}
    for mesh, own in enumerate(plan.instructions):
        for one in own:
            if isinstance(one, Run):
                counts[mesh, one.program] = counts.get((mesh, one.program), 0) + 1
    prepared = []
    for (mesh, number), count in counts.items():
        program = dataclasses.replace(plan.programs[number], donated=())
        executable = compile_spmd(program, [devices[i] for i in plan.meshes[mesh].devices])
        inputs = [
            jax.device_put(jnp.ones(value.array_shape(program.mesh_sizes), value.dtype), sharding)
            for value, sharding in zip(program.inputs, executable.in_shardings, strict=True)
        ]
        jax.block_until_ready(executable(*inputs))
        prepared.append((executable, inputs, count))

    def run() -> float:
        start = time.perf_counter()
        for executable, inputs, count in prepared:
            for _ in range(count):
                jax.block_until_ready(executable(*inputs))
        return time.perf_counter() - start

    return run


def pipeline_step(rounds: int) -> report.Row:
    """A pipeline of two stages with a device each, against its programs alone."""
    case = gpt.make(batch=8, layers=2, hidden=128, length=64, dropout=0.0, with_gradients=True)
    compiled, args = compiled_pipeline(case, 4, 2)
    alone = runs_of(compiled.plan.runtime)
    steps, sums = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        steps.append(time.perf_counter() - start)
        sums.append(alone())
    return report.compared(
        "pipeline of two stages, a device each",
        1e3 * statistics.median(steps),
        "ms",
        against="the sum of its programs",
        reference=1e3 * statistics.median(sums),
        bar=1.1,
    )


def pipeline_driver(rounds: int, num_devices: int, bar: float | None) -> report.Row:
    """Time in which the driver issues an instruction of a pipeline of small programs."""
    case = mlp.make(batch=64, layers=4, with_gradients=True)
    compiled, args = compiled_pipeline(case, 8, num_devices)
    count = sum(len(own) for own in compiled.plan.runtime.instructions)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        results = compiled(*args)
        times.append(time.perf_counter() - start)
        jax.block_until_ready(results)
    name = f"driver, per instruction, {num_devices // 2} device(s) per mesh"
    spent = 1e6 * statistics.median(times) / count
    return report.limited(name, spent, "us", bar=bar) if bar else report.measured(name, spent, "us")


def measure(quick: bool) -> list[report.Row]:
    """All comparisons; medians of interleaved calls."""
    rounds = 20 if quick else 100
    return [
        one_device_step(rounds),
        eight_device_dispatch(5 * rounds),
        pipeline_step(rounds),
        pipeline_driver(rounds, 2, 100.0),
        pipeline_driver(rounds, 8, None),
    ]


if __name__ == "__main__":
    report.main("Cost of a parallelised call", measure)
