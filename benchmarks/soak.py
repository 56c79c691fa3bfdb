"""Long runs on a cluster: what leaks in many steps, and what many random kills do to the losses."""

import report

report.prepare_devices(8)

import contextlib
import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from models import mlp
from report import Row

import stablehlo_alpa

CASE = mlp.make(layers=2)

# Of a step, after which a process that was stopped counts as silent. Seconds.
_DEADLINE_S = 5.0


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


class Killer(threading.Thread):
    """Kills processes of a run, whatever they are doing, until told to end.

    Attributes:
        kills: how many processes were hit.
    """

    def __init__(self, processes: Callable[[], Iterable[int]], gap_s: float) -> None:
        """Begins to kill.

        Args:
            processes: those that there are now.
            gap_s: mean seconds between two kills, which come independently of one another.
        """
        super().__init__(daemon=True)
        self.kills = 0
        self._processes, self._gap_s = processes, gap_s
        self._random = random.Random(0)
        self._end = threading.Event()
        self.start()

    def run(self) -> None:
        """Kills; one in twenty is stopped instead, and only found out by the deadline."""
        while not self._end.wait(self._random.expovariate(1 / self._gap_s)):
            victims = list(self._processes())
            if victims:
                how = signal.SIGSTOP if self._random.random() < 0.05 else signal.SIGKILL
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._random.choice(victims), how)
                    self.kills += 1

    def end(self) -> None:
        """Kills nothing more."""
        self._end.set()
        self.join()


def kill_rows(kills: int, seconds: float) -> list[Row]:
    """Random kills until the time is over, then the losses against an undisturbed run."""
    losses: list[Any] = []
    longest = 0.0
    started: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        cluster = stablehlo_alpa.RayCluster(
            deadline_s=_DEADLINE_S,
            on_failure="restart",
            snapshot_folder=folder,
            snapshot_steps=10,
            max_restarts=10 * kills,
        )
        step = small_step(cluster)
        state = first_state(step)
        executable = step.compile(*CASE.args).executable

        def processes() -> list[int]:
            found = [pid for _, pid in list(executable.processes.values())]
            for pid in found:
                started.setdefault(pid, born(pid))
            return found

        # Not every try finds a process: some are just being replaced.
        killer = Killer(processes, 0.65 * seconds / kills)
        begun = last = time.monotonic()
        while time.monotonic() - begun < seconds:
            state, loss = advanced(step, state, len(losses))
            losses.append(np.asarray(loss))
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        killer.end()
        advanced(step, state, len(losses))[1].block_until_ready()
        step.compile(*CASE.args).close()
    undisturbed, expected = small_step(None), CASE.state
    different = 0
    for number, loss in enumerate(losses):
        expected, wanted = advanced(undisturbed, expected, number)
        different += int(not np.array_equal(loss, np.asarray(wanted)))
    return [
        report.measured("random kills and stops", killer.kills, ""),
        report.measured("steps", len(losses), ""),
        report.equal("losses that differ", different, "", against="undisturbed", reference=0),
        report.measured("longest time without a step", longest, "s"),
        report.equal("processes left", len(alive(started)), "", against="none", reference=0),
    ]


def born(process: int) -> str:
    """When a process began, in ticks of the clock; nothing for one that is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def alive(processes: Mapping[int, str]) -> list[int]:
    """Those, with when they began, that have not ended ten seconds later."""
    until = time.monotonic() + 10
    while True:
        found = [pid for pid, begun in processes.items() if begun and born(pid) == begun]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def measure(quick: bool) -> list[Row]:
    """10,000 steps, and 1,000 kills in 30 minutes; a twentieth of both when quick."""
    rows = leak_rows(500 if quick else 10_000)
    rows += kill_rows(50, 90.0) if quick else kill_rows(1000, 1800.0)
    stablehlo_alpa.shutdown()
    return rows


if __name__ == "__main__":
    report.main("Long runs on a cluster", measure)
