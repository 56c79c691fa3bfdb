"""Long runs on a cluster: what leaks in many steps, and what many random kills do to the losses."""

import report

report.prepare_devices(8)

import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from models import mlp
from report import Row

import stablehlo_alpa

CASE = mlp.make(layers=2)


def small_step(cluster: Any) -> Any:
    """A pipeline of two stages."""
    method = stablehlo_alpa.PipeshardParallel(
        num_micro_batches=2,
        layers=stablehlo_alpa.AutoLayers(num_layers=2),
        stages=stablehlo_alpa.UniformStages(2),
        schedule="1f1b",
    )
    return stablehlo_alpa.parallelize(CASE.step, method=method, cluster=cluster, donate_argnums=0)


def first_state(step: Any) -> Any:
    """The state before the first step."""
    return step.create_state(lambda: CASE.state, batch=(CASE.batch, CASE.rng))


def advanced(step: Any, state: Any, number: int) -> tuple[Any, Any]:
    """State and loss after a step."""
    state, metrics = step(state, CASE.batch, jax.random.fold_in(CASE.rng, number))
    return state, metrics["loss"]


def used(process: int) -> tuple[int, int]:
    """Resident bytes and open files of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{process}/fd"))


def leak_rows(steps: int) -> list[Row]:
    """Growth of driver and actors between a tenth of the steps and the last."""
    step = small_step(stablehlo_alpa.RayCluster())
    state = first_state(step)
    before: dict[str, tuple[int, int]] = {}
    processes: dict[str, int] = {}
    for number in range(steps):
        state, loss = advanced(step, state, number)
        if number % 100 == 0:
            float(loss)
        if number == steps // 10:
            found = step.compile(*CASE.args).executable.processes
            processes = {f"mesh {mesh}": pid for (mesh, _), (_, pid) in found.items()}
            processes["driver"] = os.getpid()
            before = {name: used(pid) for name, pid in processes.items()}
    float(loss)
    rows = []
    for name, pid in processes.items():
        memory, files = (b - a for a, b in zip(before[name], used(pid), strict=True))
        rows.append(
            report.limited(f"{name}: growth in {steps} steps", memory / 2**20, "MiB", bar=32)
        )
        rows.append(report.limited(f"{name}: files opened", files, "", bar=4))
    step.compile(*CASE.args).close()
    return rows


def kill_rows(seconds: float) -> list[Row]:
    """Random kills until the time is over, then the losses against an undisturbed run."""
    generator = random.Random(0)
    losses: list[Any] = []
    kills, longest = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        cluster = stablehlo_alpa.RayCluster(
            deadline_s=10.0,
            on_failure="restart",
            snapshot_folder=folder,
            snapshot_steps=10,
            max_restarts=100,
        )
        step = small_step(cluster)
        state = first_state(step)
        executable = step.compile(*CASE.args).executable
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if losses and generator.random() < 0.1:
                pid = generator.choice([pid for _, pid in executable.processes.values()])
                os.kill(pid, generator.choice([signal.SIGKILL, signal.SIGSTOP]))
                kills += 1
            start = time.monotonic()
            state, loss = advanced(step, state, len(losses))
            losses.append(np.asarray(loss))
            longest = max(longest, time.monotonic() - start)
        step.compile(*CASE.args).close()
    undisturbed, expected = small_step(None), CASE.state
    different = 0
    for number, loss in enumerate(losses):
        expected, wanted = advanced(undisturbed, expected, number)
        different += int(not np.array_equal(loss, np.asarray(wanted)))
    return [
        report.measured("random kills and stops", kills, ""),
        report.measured("steps", len(losses), ""),
        report.equal("losses that differ", different, "", against="undisturbed", reference=0),
        report.limited("longest step", longest, "s", bar=60.0),
    ]


def measure(quick: bool) -> list[Row]:
    """10,000 steps and 30 minutes of kills; a twentieth of both when quick."""
    rows = leak_rows(500 if quick else 10_000)
    rows += kill_rows(90 if quick else 1800)
    stablehlo_alpa.shutdown()
    return rows


if __name__ == "__main__":
    report.main("Long runs on a cluster", measure)
