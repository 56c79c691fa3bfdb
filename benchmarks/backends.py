"""One plan, two ways to the devices: our own lowering, and XLA's partitioner under constraints."""

import report

report.prepare_devices(8)

import statistics
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
from models import gpt, lstm, moe, wide_resnet
from models.case import TrainCase

import stablehlo_alpa
from stablehlo_alpa.witness import collectives

MESH_SHAPE = (2, 4)


@dataclass(frozen=True)
class Outcome:
    """What became of a plan.

    Attributes:
        count: collectives of a step, in optimised HLO.
        sent_bytes: that a device sends per step.
        compile_s: of XLA.
        step_s: median of a step.
    """

    count: float
    sent_bytes: float
    compile_s: float
    step_s: float


def outcome(case: TrainCase, backend: str, rounds: int) -> Outcome:
    """Lowers, compiles and runs a step."""
    method = stablehlo_alpa.ShardParallel(mesh_shape=MESH_SHAPE, backend=backend)
    step = stablehlo_alpa.parallelize(case.step, method=method)
    lowered = step.lower(*case.args)
    start = time.perf_counter()
    compiled = lowered.compile()
    compile_s = time.perf_counter() - start
    found = collectives(compiled.as_text(), 8)
    args: Any = jax.tree.map(jax.numpy.asarray, case.args)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        times.append(time.perf_counter() - start)
    return Outcome(
        sum(one.count for one in found),
        sum(one.sent_bytes for one in found),
        compile_s,
        statistics.median(times[1:]),
    )


def model_rows(model: ModuleType, rounds: int, sizes: dict[str, Any]) -> list[report.Row]:
    """Our lowering beside Shardy's."""
    case = model.make(**sizes)
    ours, shardy = (outcome(case, backend, rounds) for backend in ("alpa", "shardy"))
    name = model.__name__.removeprefix("models.")
    rows = []
    for quantity, unit, scale in (
        ("count", "collectives", 1.0),
        ("sent_bytes", "B/device", 1.0),
        ("compile_s", "s", 1.0),
        ("step_s", "ms", 1e3),
    ):
        row = report.measured(
            f"{name}, {quantity.removesuffix('_s')}", scale * getattr(ours, quantity), unit
        )
        rows.append(
            report.beside(row, against="Shardy", reference=scale * getattr(shardy, quantity))
        )
    return rows


def measure(quick: bool) -> list[report.Row]:
    """Four kinds of models."""
    rounds = 5 if quick else 20
    rows: list[report.Row] = []
    for model, sizes in (
        (gpt, {"layers": 2, "hidden": 128}),
        (moe, {}),
        (wide_resnet, {}),
        (lstm, {}),
    ):
        rows += model_rows(model, rounds, {} if quick else sizes)
    return rows


if __name__ == "__main__":
    report.main("Our lowering against XLA's partitioner, one plan", measure)
