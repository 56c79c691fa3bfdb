"""Two processes, each a mesh, without a cluster around them."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from typing import Any

from alpa_runtime.plan import Plan

NUM_DEVICES = 4


def serve(pipe: Connection, plan: Plan, mesh: int, transport: str, secret: bytes) -> None:
    """Answers calls of methods of a `MeshProcess`, its store and its plan until told to end."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    # Behind the suite's own flags, of which the last of a name counts.
    os.environ["XLA_FLAGS"] += f" --xla_force_host_platform_device_count={NUM_DEVICES}"
    os.environ["PJRT_NPROC"] = str(4 * NUM_DEVICES)
    from alpa_runtime.mesh_process import MeshProcess
    from alpa_runtime.plan_part import Assignment
    from alpa_runtime.transport import LINKS, DirectLink
    from host_wire import HostLibrary

    LINKS["host"] = lambda devices, bind: DirectLink(devices, bind, HostLibrary())
    process = MeshProcess((mesh, 0), NUM_DEVICES, transport=transport)
    pipe.send(process.describe()[0])
    process.connect(pipe.recv(), secret)
    process.add(0, Assignment(plan, (0, 1), (1, 1)))
    pipe.send(None)
    while (call := pipe.recv()) is not None:
        name, args = call
        try:
            owners = (process, process.store, process.parts[0])
            owner = next(own for own in owners if hasattr(own, name))
            pipe.send((True, getattr(owner, name)(*args)))
        except Exception as error:
            pipe.send((False, f"{type(error).__name__}: {error}"))


class MeshProcesses:
    """Both processes of a plan of two meshes.

    Attributes:
        processes: one per mesh.
        addresses: of their transports.
    """

    def __init__(self, plan: Plan, transport: str) -> None:
        """Starts them."""
        context = multiprocessing.get_context("spawn")
        pipes = [context.Pipe() for _ in range(2)]
        self._pipes = [ours for ours, _ in pipes]
        secret = bytes(range(32))
        self.processes = [
            context.Process(target=serve, args=(theirs, plan, mesh, transport, secret))
            for mesh, (_, theirs) in enumerate(pipes)
        ]
        for process in self.processes:
            process.start()
        self.addresses = [pipe.recv() for pipe in self._pipes]
        for pipe in self._pipes:
            pipe.send({(mesh, 0): address for mesh, address in enumerate(self.addresses)})
        for pipe in self._pipes:
            pipe.recv()

    def ask(self, mesh: int, name: str, *args: Any) -> None:
        """Calls a method; `answer` has its result."""
        self._pipes[mesh].send((name, args))

    def answer(self, mesh: int, timeout_s: float = 300.0) -> Any:
        """The result of the oldest call; an error raises."""
        if not self._pipes[mesh].poll(timeout_s):
            raise TimeoutError(f"mesh {mesh} does not answer")
        is_good, result = self._pipes[mesh].recv()
        if not is_good:
            raise RuntimeError(result)
        return result

    def close(self) -> None:
        """Ends both."""
        for process in self.processes:
            process.kill()
            process.join()
