"""Processes instead of one: bytes per second between them, and what the driver costs per step."""

import report

report.prepare_devices(8)

import socket
import statistics
import threading
import time
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from alpa_runtime.array_store import Held
from alpa_runtime.local_call import LocalModule
from alpa_runtime.mesh_process import StepOrder
from mesh_processes import MeshProcesses
from models import gpt, mlp
from models.case import TrainCase
from report import Row
from sending import sending_plan

import stablehlo_alpa

# Elements of float32: 64 MiB.
_ELEMENTS = 1 << 24


def plain_tcp_s(rounds: int) -> list[float]:
    """Seconds in which 64 MiB cross the loopback interface, into a buffer that is there."""
    size = 4 * _ELEMENTS
    data, buffer = memoryview(bytearray(size)), memoryview(bytearray(size))
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            for _ in range(rounds):
                connection.recv(1)
                connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    times = []
    with socket.create_connection(listener.getsockname()) as connection:
        for _ in range(rounds):
            start = time.perf_counter()
            connection.sendall(b"x")
            view = buffer
            while view:
                view = view[connection.recv_into(view) :]
            times.append(time.perf_counter() - start)
    listener.close()
    return times


def transport_s(name: str, rounds: int) -> list[float]:
    """Seconds in which the value crosses between two processes."""
    # As it lies.
    plan = sending_plan([((_ELEMENTS,), "float32", "xy", "xy")])
    processes = MeshProcesses(plan, name)
    try:
        text = jax.jit(lambda: jnp.ones(_ELEMENTS)).lower().as_text()
        module = LocalModule("ones", text, (), (((_ELEMENTS,), "float32"),))
        processes.ask(0, "create", module, (), {0: 0})
        processes.answer(0)
        times = []
        for step in range(rounds):
            start = time.perf_counter()
            processes.ask(1, "step", StepOrder(0, step, step, {}, {0: 0}))
            processes.ask(0, "step", StepOrder(0, step, step, {0: Held(0)}, {}))
            processes.answer(1)
            times.append(time.perf_counter() - start)
            processes.answer(0)
    finally:
        processes.close()
    return times


def transport_row(name: str, rounds: int) -> Row:
    """One transport against plain TCP."""
    # The first transfers make connections and touch memory.
    ours = min(transport_s(name, rounds)[2:])
    plain = min(plain_tcp_s(rounds)[2:])
    title = f"64 MiB between processes, transport {name}"
    against, reference = "plain TCP on loopback", 1e3 * plain
    if name != "tcp":
        # Not what CPU devices use by default.
        row = report.measured(title, 1e3 * ours, "ms")
        return report.beside(row, against=against, reference=reference)
    return report.compared(
        title, 1e3 * ours, "ms", against=against, reference=reference, bar=1 / 0.6
    )


@dataclass(frozen=True)
class StepTimes:
    """Median seconds of a step.

    Attributes:
        step_s: until its loss is there.
        driver_s: of it, what the driver spends to ask for the step and to hear that it is done.
    """

    step_s: float
    driver_s: float


def step_times(case: TrainCase, cluster: Any, rounds: int) -> StepTimes:
    """Steps of two stages and four micro-batches, each waited for."""
    method = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=4,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
        schedule="1f1b",
    )
    step = stablehlo_alpa.parallelize(case.step, method=method, cluster=cluster, donate_argnums=0)
    state = step.create_state(lambda: case.state, batch=(case.batch, case.rng))
    batch = jax.tree.map(np.asarray, case.batch)
    steps, calls = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        state, metrics = step(state, batch, case.rng)
        calls.append(time.perf_counter() - start)
        float(metrics["loss"])
        steps.append(time.perf_counter() - start)
    compiled = step.compile(state, case.batch, case.rng)
    answers = [0.0]
    if cluster is not None:
        executable: Any = compiled.executable
        session, count = executable.session, dict.fromkeys(executable.processes, ("__len__",))
        for _ in range(rounds):
            start = time.perf_counter()
            session.run(session.steps.ask, "store", count)
            answers.append(time.perf_counter() - start)
    compiled.close()
    driver = statistics.median(calls[2:]) + statistics.median(answers)
    return StepTimes(statistics.median(steps[2:]), driver)


def step_rows(rounds: int) -> list[Row]:
    """What a cluster of two actors costs."""
    small = mlp.make(layers=2)
    large = gpt.make(batch=32, layers=4, hidden=128, length=64)
    cluster = stablehlo_alpa.RayCluster()
    little, little_here = step_times(small, cluster, rounds), step_times(small, None, rounds)
    actors, here = step_times(large, cluster, rounds), step_times(large, None, rounds)
    stablehlo_alpa.shutdown()
    milliseconds = report.measured("small step on two actors", 1e3 * little.step_s, "ms")
    return [
        report.limited("driver, per step of two actors", 1e3 * little.driver_s, "ms", bar=7.0),
        report.beside(milliseconds, against="in one process", reference=1e3 * little_here.step_s),
        report.compared(
            "step of a GPT on two actors",
            1e3 * actors.step_s,
            "ms",
            against="in one process",
            reference=1e3 * here.step_s,
            bar=1.1,
        ),
    ]


def measure(quick: bool) -> list[Row]:
    """Both transports between processes, and the steps."""
    rounds = 10 if quick else 30
    return [*(transport_row(name, rounds) for name in ("jax", "tcp")), *step_rows(rounds)]


if __name__ == "__main__":
    report.main("Processes instead of one", measure)
