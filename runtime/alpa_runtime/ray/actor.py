"""The actor of one process of a mesh."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Mapping
from typing import Any

import ray

from alpa_runtime.meeting_point import MeetingPoint
from alpa_runtime.mesh_process import MeshProcess, StepOrder, StepReport
from alpa_runtime.plan_part import Assignment
from alpa_runtime.ray.cluster import DEVICE_COUNT_FLAG, Hosts


class MeshActor:
    """A `MeshProcess` in a process that Ray has started.

    Calls of the driver run in the order in which it makes them; ``ping``, ``abort`` and
    ``finish_saving`` run beside them.
    """

    def __init__(self) -> None:
        """Only says that the process is there; `start` makes the devices."""
        self._process: MeshProcess | None = None
        self._meeting: MeetingPoint | None = None

    def meeting_point(self, bind: str) -> str:
        """An address of this host for the processes of a mesh to meet, held until `start`."""
        self._meeting = MeetingPoint(resolve(bind))
        return self._meeting.address

    def start(
        self,
        place: tuple[int, int],
        num_devices: int,
        num_hosts: int,
        bind: str,
        transport: str,
        coordinator: str | None,
    ) -> tuple[str, tuple[str, str]]:
        """Makes the mesh; see `MeshProcess`."""
        with contextlib.closing(self._meeting) if self._meeting else contextlib.nullcontext():
            self._process = MeshProcess(
                place,
                num_devices,
                num_hosts,
                bind=resolve(bind),
                transport=transport,
                coordinator=coordinator,
            )
        return self._process.describe()

    def connect(self, addresses: Mapping[tuple[int, int], str], secret: bytes) -> None:
        """See `MeshProcess.connect`."""
        self._running.connect(addresses, secret)

    @ray.method(concurrency_group="beside")
    def abort(self) -> None:
        """See `MeshProcess.abort`."""
        self._running.abort()

    def reset(self) -> str:
        """See `MeshProcess.reset`."""
        return self._running.reset()

    def step(self, order: StepOrder, *arrays: Any) -> StepReport:
        """See `MeshProcess.step`.

        Args:
            order: with numbers of ``arrays`` in place of what is sent along.
            *arrays: arguments of their own, so that Ray hands them over without a copy.
        """
        feeds = {
            index: arrays[feed] if isinstance(feed, int) else feed
            for index, feed in order.feeds.items()
        }
        return self._running.step(dataclasses.replace(order, feeds=feeds))

    def add(self, number: int, assignment: Assignment) -> None:
        """See `MeshProcess.add`."""
        self._running.add(number, assignment)

    def remove(self, number: int) -> None:
        """See `MeshProcess.remove`."""
        self._running.remove(number)

    def part(self, number: int, method: str, *arguments: Any) -> Any:
        """Calls a method of `PlanPart` for a plan: create, restore or report."""
        return getattr(self._running.parts[number], method)(*arguments)

    def store(self, method: str, *arguments: Any) -> Any:
        """Calls a method of `ArrayStore`."""
        return getattr(self._running.store, method)(*arguments)

    @ray.method(concurrency_group="saving")
    def finish_saving(self) -> None:
        """See `ArrayStore.finish_saving`."""
        self._running.store.finish_saving()

    def whereabouts(self) -> tuple[str, int]:
        """Ray's name of the host, and the number of the operating system's process."""
        return ray.get_runtime_context().get_node_id(), os.getpid()

    @ray.method(concurrency_group="beside")
    def ping(self) -> None:
        """Shows that the process is alive."""

    @property
    def _running(self) -> MeshProcess:
        if self._process is None:
            raise RuntimeError("the actor was not started")
        return self._process


def resolve(bind: str) -> str:
    """The address of this host's network interface that is meant."""
    return str(ray.util.get_node_ip_address()) if bind == "node" else bind


def environment(hosts: Hosts, num_devices: int, given: Mapping[str, str]) -> dict[str, str]:
    """Environment variables of a process, set before it imports jax.

    Args:
        hosts: what the cluster has.
        num_devices: of the process.
        given: by the user; ``XLA_FLAGS`` are those of this process where they say nothing of them.
    """
    folders = [path for path in sys.path if os.path.isdir(os.path.join(path, "alpa_runtime"))]
    folders = [given.get("PYTHONPATH", ""), *folders, os.environ.get("PYTHONPATH", "")]
    flags = given.get("XLA_FLAGS", os.environ.get("XLA_FLAGS", "")).split()
    flags = [flag for flag in flags if not flag.startswith(DEVICE_COUNT_FLAG)]
    variables = {**given, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    if hosts.platform == "cpu":
        flags.append(f"{DEVICE_COUNT_FLAG}={num_devices}")
        variables |= {
            "JAX_PLATFORMS": "cpu",
            # The size of the pool decides how XLA cuts convolutions, and so their last bits: that
            # of the driver, where it has one.
            "PJRT_NPROC": str(max(4 * num_devices, int(os.environ.get("PJRT_NPROC", 0)))),
        }
    return variables | {"XLA_FLAGS": " ".join(flags)}
