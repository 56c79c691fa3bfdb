"""What a parallelised function costs over plain ``jax.jit``: on one device, and to dispatch."""

import report

report.prepare_devices(8)

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
from models import gpt, mlp

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


def measure(quick: bool) -> list[report.Row]:
    """Both comparisons; medians of interleaved calls."""
    return [one_device_step(20 if quick else 100), eight_device_dispatch(100 if quick else 500)]


if __name__ == "__main__":
    report.main("Cost of a parallelised call", measure)
