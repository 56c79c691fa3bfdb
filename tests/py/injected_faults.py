"""Faults of a cluster, injected into a small training run: what the driver learns, and when."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

from models import mlp
from models.case import TrainCase

import stablehlo_alpa
from stablehlo_alpa import (
    AutoLayers,
    ClusterError,
    PipeshardParallel,
    RayCluster,
    UniformStages,
    save_checkpoint,
)

# Of a step; faults that nobody reports are found when it is over. All others are known long before
# the deadline that a cluster has by default. Seconds.
DEADLINE_S = 6.0


@dataclass(frozen=True)
class Outcome:
    """What a fault led to.

    Attributes:
        what: the fault.
        where: what it hit.
        known_s: seconds from the fault to the exception in the driver.
        error: the exception; None where the driver itself was hit.
        lost: what has to be done again.
        processes: those that must be gone by now.
    """

    what: str
    where: str
    known_s: float
    error: BaseException | None
    lost: str
    processes: list[int]


@dataclass
class Run:
    """A training run on two meshes.

    Attributes:
        step: the parallelised step.
        case: its model.
        state: after the last step.
    """

    step: Any
    case: TrainCase
    state: Any

    def advance(self, count: int = 1) -> float:
        """Runs steps; the last loss."""
        for _ in range(count):
            self.state, metrics = self.step(self.state, self.case.batch, self.case.rng)
        return float(metrics["loss"])

    @property
    def processes(self) -> dict[tuple[int, int], int]:
        """Numbers of the operating system's processes."""
        executable = self.step.compile(*self.case.args).executable
        return {place: pid for place, (_, pid) in executable.processes.items()}


def begin(cluster: RayCluster) -> Run:
    """A run that has done two steps."""
    case = mlp.make(layers=4)
    method = PipeshardParallel(
        num_micro_batches=4,
        layers=AutoLayers(num_layers=4),
        stages=UniformStages(2),
        schedule="1f1b",
    )
    step = stablehlo_alpa.parallelize(case.step, method=method, cluster=cluster, donate_argnums=0)
    state = step.create_state(lambda: case.state, batch=(case.batch, case.rng))
    run = Run(step, case, state)
    run.advance(2)
    return run


@contextlib.contextmanager
def running(cluster: RayCluster) -> Iterator[Run]:
    """The same, closed at the end."""
    run = begin(cluster)
    try:
        yield run
    finally:
        run.step.compile(*run.case.args).close()


@contextlib.contextmanager
def no_unhandled_errors() -> Iterator[None]:
    """Fails when Ray reports errors that nobody has looked at.

    What steps miss is no news when they were asked for before an earlier one failed.
    """
    logger, handler = logging.getLogger("ray._private.worker"), BufferingHandler(capacity=1000)
    logger.addHandler(handler)
    try:
        yield
        gc.collect()
    finally:
        logger.removeHandler(handler)
    assert [r for r in handler.buffer if "Unhandled error" in r.getMessage()] == []


def _caught(action: Callable[[], Any]) -> tuple[float, BaseException]:
    """Seconds until an action raises, and what."""
    start = time.monotonic()
    try:
        action()
    except (ClusterError, OSError) as error:
        return time.monotonic() - start, error
    raise AssertionError("nothing was noticed")


def killed_between_meshes() -> Outcome:
    """A process of one mesh dies while the other waits for it."""
    with running(RayCluster()) as run:
        processes = run.processes
        os.kill(processes[1, 0], signal.SIGKILL)
        seconds, error = _caught(lambda: run.advance(5))
    pids = list(processes.values())
    return Outcome("kill -9", "actor, between meshes", seconds, error, "since checkpoint", pids)


def killed_in_a_collective() -> Outcome:
    """One of two processes of a mesh dies; the other is in a collective with it."""
    cluster = RayCluster(num_hosts=4, devices_per_host=2)
    with running(cluster) as run:
        processes = run.processes
        os.kill(processes[0, 1], signal.SIGKILL)
        seconds, error = _caught(lambda: run.advance(5))
    pids = list(processes.values())
    return Outcome("kill -9", "actor, in a collective", seconds, error, "since checkpoint", pids)


def killed_in_a_checkpoint(folder: Path) -> Outcome:
    """A process dies with its part of a checkpoint unwritten."""
    with running(RayCluster()) as run:
        processes = run.processes
        save_checkpoint(folder / "good", run.state)
        os.kill(processes[1, 0], signal.SIGSTOP)
        saving = _saved_behind(folder / "bad", run.state)
        time.sleep(0.5)
        os.kill(processes[1, 0], signal.SIGKILL)
        seconds, error = _caught(saving)
    pids = list(processes.values())
    return Outcome("kill -9", "actor, in a checkpoint", seconds, error, "this checkpoint", pids)


def _saved_behind(path: Path, state: Any) -> Callable[[], None]:
    """Saves in a thread; the result waits for it."""
    import threading

    errors: list[BaseException] = []

    def save() -> None:
        try:
            save_checkpoint(path, state)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=save)
    thread.start()

    def wait() -> None:
        thread.join()
        for error in errors:
            raise error

    return wait


def stopped() -> Outcome:
    """A process stands still, and its connections with it."""
    with running(RayCluster(deadline_s=DEADLINE_S)) as run:
        processes = run.processes
        os.kill(processes[0, 0], signal.SIGSTOP)
        seconds, error = _caught(lambda: run.advance(5))
    pids = list(processes.values())
    return Outcome("SIGSTOP", "actor", seconds, error, "since checkpoint", pids)


def disk_full(folder: Path) -> Outcome:
    """A checkpoint does not fit; training goes on, and the one before it is whole."""
    size = 256 * 1024
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        with running(RayCluster()) as run:
            (folder / "ballast").write_bytes(bytes(size - 48 * 1024))
            seconds, error = _caught(lambda: save_checkpoint(folder / "bad", run.state))
            run.advance(2)
            assert not (folder / "bad").exists()
            (folder / "ballast").unlink()
            processes = list(run.processes.values())
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
    return Outcome("disk full", "checkpoint", seconds, error, "this checkpoint", processes)


_DRIVER = """
import sys
sys.path[:0] = {path!r}
import injected_faults as faults, stablehlo_alpa
with faults.running(stablehlo_alpa.RayCluster()) as run:
    print(*run.processes.values(), flush=True)
    while True:
        run.advance()
"""


def driver_killed() -> Outcome:
    """The driver dies; its actors have to end by themselves."""
    code = _DRIVER.format(path=[path for path in sys.path if path])
    driver = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert driver.stdout is not None
    pids = [int(pid) for pid in driver.stdout.readline().split()]
    time.sleep(1)
    driver.kill()
    driver.wait()
    start = time.monotonic()
    wait_until_gone(pids)
    seconds = time.monotonic() - start
    return Outcome("kill -9", "driver", seconds, None, "since checkpoint", pids)


# What a driver may end with.
ENDS = {
    "a return": "",
    "ray.shutdown": "import ray; ray.shutdown()",
    "an exception": "raise SystemExit(3)",
    "os._exit": "os._exit(0)",
    "a killed actor": "os.kill(run.processes[1, 0], signal.SIGKILL)",
    "killed actors, os._exit": """
for process in run.processes.values():
    os.kill(process, signal.SIGKILL)
os._exit(0)
""",
    "kill -9": "os.kill(os.getpid(), signal.SIGKILL)",
}

_ENDING_DRIVER = """
import os, signal, sys
sys.path[:0] = {path!r}
import injected_faults as faults, stablehlo_alpa
run = faults.begin(stablehlo_alpa.RayCluster())
print(*run.processes.values(), flush=True)
{end}
"""


def ended(end: str, folder: Path) -> list[int]:
    """Lets a driver end without closing anything.

    Args:
        end: the driver's last statements.
        folder: for its temporary files and those of its processes.

    Returns:
        the processes that it had.
    """
    code = _ENDING_DRIVER.format(path=[path for path in sys.path if path], end=end)
    driver = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Ray keeps the folders of its sessions, and notes the last.
        env={**os.environ, "TMPDIR": str(folder), "RAY_TMPDIR": tempfile.gettempdir()},
    )
    # Behind the first line comes what Ray says of those that die.
    return [int(pid) for pid in driver.stdout.splitlines()[0].split()]


_NAMESPACES = (f"alpa_{os.getpid()}_1", f"alpa_{os.getpid()}_2")
_ADDRESSES = ("10.98.0.1", "10.98.0.2")
_PORT = 6399

_ON_TWO_HOSTS = """
import sys
sys.path[:0] = {path!r}
import injected_faults as faults, stablehlo_alpa
cluster = stablehlo_alpa.RayCluster(
    {address!r}, num_hosts=2, devices_per_host=4, bind="node", deadline_s={deadline_s!r}
)
with faults.running(cluster) as run:
    print("ready", flush=True)
    try:
        while True:
            run.advance()
    except stablehlo_alpa.ClusterError as error:
        print(error, flush=True)
"""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def can_make_hosts() -> bool:
    """Whether this machine lets us make network namespaces."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        return False
    made = subprocess.run(["ip", "netns", "add", _NAMESPACES[0]], check=False, capture_output=True)
    subprocess.run(["ip", "netns", "del", _NAMESPACES[0]], check=False, capture_output=True)
    return made.returncode == 0


def _within(namespace: str, *words: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, *words]


@contextlib.contextmanager
def two_hosts() -> Iterator[None]:
    """Two network namespaces, joined by a virtual Ethernet, with a Ray cluster over both."""
    for namespace in _NAMESPACES:
        _ip("netns", "add", namespace)
    # In the usual folder Ray would note the cluster as that of this machine.
    folder = tempfile.mkdtemp(prefix="ray_")
    try:
        first, second = _NAMESPACES
        _ip(
            "link", "add", "alpa1", "netns", first, "type", "veth", "peer", "alpa2", "netns", second
        )
        for number, (namespace, address) in enumerate(
            zip(_NAMESPACES, _ADDRESSES, strict=True), start=1
        ):
            _ip("-n", namespace, "addr", "add", f"{address}/24", "dev", f"alpa{number}")
            _ip("-n", namespace, "link", "set", "lo", "up")
            _ip("-n", namespace, "link", "set", f"alpa{number}", "up")
        ray = str(Path(sys.executable).with_name("ray"))
        common = ["--num-cpus=8", "--disable-usage-stats"]
        environment = {**os.environ, "RAY_AUTH_MODE": "token"}
        for namespace, address, role in zip(
            _NAMESPACES,
            _ADDRESSES,
            (
                [
                    "--head",
                    f"--port={_PORT}",
                    "--include-dashboard=false",
                    f"--temp-dir={folder}",
                ],
                [f"--address={_ADDRESSES[0]}:{_PORT}"],
            ),
            strict=True,
        ):
            words = _within(namespace, ray, "start", f"--node-ip-address={address}", *role, *common)
            subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL)
        yield
    finally:
        for namespace in _NAMESPACES:
            listed = subprocess.run(
                ["ip", "netns", "pids", namespace], check=False, capture_output=True, text=True
            )
            for pid in listed.stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", namespace], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def cut_link() -> Outcome:
    """The network between two hosts, each with a mesh, is gone."""
    code = _ON_TWO_HOSTS.format(
        path=[path for path in sys.path if path],
        address=f"{_ADDRESSES[0]}:{_PORT}",
        deadline_s=DEADLINE_S,
    )
    with two_hosts():
        driver = subprocess.Popen(
            _within(_NAMESPACES[0], sys.executable, "-c", code),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "RAY_AUTH_MODE": "token"},
        )
        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "ready\n"
            time.sleep(1)
            _ip("-n", _NAMESPACES[0], "link", "set", "alpa1", "down")
            start = time.monotonic()
            message = driver.stdout.readline()
            seconds = time.monotonic() - start
        finally:
            driver.kill()
            driver.wait()
    return Outcome(
        "link cut", "between hosts", seconds, ClusterError(message), "since checkpoint", []
    )


def wait_until_gone(processes: list[int], timeout_s: float = 60.0) -> None:
    """Waits for processes to end."""
    deadline = time.monotonic() + timeout_s
    while left := [pid for pid in processes if Path(f"/proc/{pid}").exists()]:
        if time.monotonic() > deadline:
            raise AssertionError(f"processes {left} are left")
        time.sleep(0.05)


def all_faults() -> Iterator[Outcome]:
    """Every fault once."""
    yield killed_between_meshes()
    yield killed_in_a_collective()
    yield stopped()
    yield driver_killed()
    if can_make_hosts():
        yield cut_link()
    for scenario in (killed_in_a_checkpoint, disk_full):
        folder = Path(tempfile.mkdtemp())
        try:
            yield scenario(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
