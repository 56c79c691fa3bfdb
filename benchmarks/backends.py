"""One plan, two ways to the devices: our own lowering, and XLA's partitioner under constraints."""

import os

import report

report.prepare_devices(8)
# With more devices than cores, devices that take collectives in different orders wait for each
# other; by default XLA's CPU client gives them no order.
os.environ["XLA_FLAGS"] += " --xla_cpu_enable_concurrency_optimized_scheduler=false"

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from models import encoder_decoder, gpt, llama, lstm, mixer, mlp, moe, unet, vit, wide_resnet
from models.case import TrainCase

import stablehlo_alpa
from stablehlo_alpa.witness import collectives

MESH_SHAPE = (2, 4)

# How much more than Shardy's our lowering may take. A step below the least time is mostly that of
# handing work to threads, whose share is not the lowering's.
BYTES_BAR, MEMORY_BAR, STEP_BAR = 1.0, 1.05, 1.05
LEAST_STEP_S = 20e-3

MODELS: Mapping[str, Callable[[], TrainCase]] = {
    "gpt": lambda: gpt.make(layers=2, hidden=128),
    "gpt scanned": lambda: gpt.make(layers=2, hidden=128, is_scanned=True),
    "llama": llama.make,
    "moe": moe.make,
    "encoder_decoder": encoder_decoder.make,
    "vit": vit.make,
    "mixer": mixer.make,
    "mlp": lambda: mlp.make(batch=256, inputs=256, hidden=512),
    "lstm": lstm.make,
    "unet": unet.make,
    "wide_resnet": wide_resnet.make,
    "wide_resnet, 32 channels": lambda: wide_resnet.make(channels=32),
}
QUICK_MODELS = ("mlp", "moe")


@dataclass(frozen=True)
class Lowered:
    """A plan on its devices, by one of the two.

    Attributes:
        run: a step, until all of it is there.
        count: collectives of a step, in optimised HLO.
        sent_bytes: that a device sends per step.
        memory_bytes: of a device: arguments, results and what is between them.
        compile_s: of XLA.
    """

    run: Callable[[], object]
    count: float
    sent_bytes: float
    memory_bytes: float
    compile_s: float


def lower(case: TrainCase, backend: str) -> Lowered:
    """Plans, lowers and compiles a step."""
    method = stablehlo_alpa.ShardParallel(mesh_shape=MESH_SHAPE, backend=backend)
    lowered = stablehlo_alpa.parallelize(case.step, method=method).lower(*case.args)
    start = time.perf_counter()
    compiled = lowered.compile()
    compile_s = time.perf_counter() - start
    found = collectives(compiled.as_text(), 8)
    memory: Any = compiled.memory_analysis()
    args: Any = jax.tree.map(jax.numpy.asarray, case.args)
    return Lowered(
        lambda: jax.block_until_ready(compiled(*args)),
        sum(one.count for one in found),
        sum(one.sent_bytes for one in found),
        memory.argument_size_in_bytes
        + memory.output_size_in_bytes
        + memory.temp_size_in_bytes
        - memory.alias_size_in_bytes,
        compile_s,
    )


def seconds_of(run: Callable[[], object]) -> float:
    """Of one step."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def step_row(name: str, ours: Lowered, shardy: Lowered, rounds: int) -> report.Row:
    """Steps in turns, each ratio of two that follow each other: others may use the machine too."""
    pairs = []
    for number in range(rounds + 1):
        if number % 2:
            second = seconds_of(shardy.run)
            pairs.append((seconds_of(ours.run), second))
        else:
            pairs.append((seconds_of(ours.run), seconds_of(shardy.run)))
    pairs = pairs[1:]  # the first makes threads and buffers
    median_s = statistics.median(own for own, _ in pairs)
    ratio = statistics.median(own / other for own, other in pairs)
    row = report.measured(f"{name}, step", 1e3 * median_s, "ms")
    if median_s < LEAST_STEP_S:
        return report.beside(row, against="Shardy", reference=row.value / ratio)
    return report.compared(
        row.metric, row.value, "ms", against="Shardy", reference=row.value / ratio, bar=STEP_BAR
    )


def model_rows(name: str, case: TrainCase, rounds: int) -> list[report.Row]:
    """Our lowering beside Shardy's."""
    ours, shardy = (lower(case, backend) for backend in ("alpa", "shardy"))
    rows = [
        report.beside(
            report.measured(f"{name}, {quantity}", value, unit), against="Shardy", reference=other
        )
        for quantity, unit, value, other in (
            ("collectives", "", ours.count, shardy.count),
            ("compile", "s", ours.compile_s, shardy.compile_s),
        )
    ]
    rows += [
        report.compared(
            f"{name}, {quantity}", value, "B/device", against="Shardy", reference=other, bar=bar
        )
        for quantity, value, other, bar in (
            ("sent", ours.sent_bytes, shardy.sent_bytes, BYTES_BAR),
            ("memory", ours.memory_bytes, shardy.memory_bytes, MEMORY_BAR),
        )
    ]
    return [*rows, step_row(name, ours, shardy, rounds)]


def measure(quick: bool) -> list[report.Row]:
    """The models of the test suite."""
    rows: list[report.Row] = []
    for name in QUICK_MODELS if quick else MODELS:
        rows += model_rows(name, MODELS[name](), 10 if quick else 60)
    return rows


if __name__ == "__main__":
    report.main("Our lowering against XLA's partitioner, one plan", measure)
