"""Processes of a cluster that hold many plans, over one store of arrays.

Executables of equal clusters share a session: a train step, an evaluation step and a last batch of
another size run on processes that are started once, and take each other's handles. Processes belong
to *devices*: two plans share those of every mesh that has the same devices in both, whatever axes
each gives it, and an array stays where it is when the other plan wants it in the same sharding. A
plan with other meshes gets processes of its own beside them, where Ray has room for these. The
session ends when the last of its executables is closed, or by ``shutdown``.

Orders come from one thread (`Issuer`), in one order for all processes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from alpa_runtime.array_store import Parts
from alpa_runtime.context import outside_mesh
from alpa_runtime.plan import Plan
from alpa_runtime.plan_part import Assignment
from alpa_runtime.ray.arrays import DistributedArray
from alpa_runtime.ray.cluster import Hosts, RayCluster
from alpa_runtime.ray.handles import Handles
from alpa_runtime.ray.issuer import Issuer
from alpa_runtime.ray.step_queue import StepQueue
from alpa_runtime.transport import Place

Result = TypeVar("Result")


class Session:
    """The processes; what runs a plan on them is a `RayExecutable`.

    Attributes:
        handles: of the arrays on the processes.
        steps: what they are asked for; in the thread that gives orders alone.
    """

    def __init__(self, cluster: RayCluster, hosts: Hosts) -> None:
        """Starts no process yet: plans do.

        Args:
            cluster: where.
            hosts: what the cluster has.
        """
        self.handles = Handles()
        self.steps = StepQueue(cluster, hosts, self.handles)
        self._supervisor = self.steps.supervisor
        self._issuer = Issuer("stablehlo_alpa driver")
        self._users: set[int] = set()
        self._next_plan = 0

    @property
    def processes(self) -> dict[Place, tuple[str, int]]:
        """Per process Ray's name of its host, and its number there."""
        return self._supervisor.fleet.processes

    @property
    def is_over(self) -> bool:
        """Whether the processes were ended."""
        return self._supervisor.has_failed

    def run(self, function: Callable[..., Result], *args: Any) -> Result:
        """Runs a function in the thread that gives orders."""
        return self._issuer.run(function, *args)

    def add(self, plan: Plan, *, traces: bool) -> tuple[int, Assignment]:
        """Gives the processes a plan, and starts those that it needs; its number.

        In the thread that gives orders.
        """
        number = self._next_plan
        self._next_plan += 1
        assignment = self._supervisor.add(number, plan, traces=traces)
        self._users.add(number)
        return number, assignment

    def release(self, number: int) -> None:
        """Says that a plan is run no more; whoever is the last ends the processes."""
        if number not in self._users:
            return
        self._users.discard(number)
        if not self._users:
            self.close()
        elif not self.is_over:
            self.run(self._supervisor.remove, number)

    def check_alive(self) -> None:
        """Refuses to go on behind a failure, as a `ClusterError`."""
        self._supervisor.check_alive()

    @outside_mesh
    def fetch(self, array: DistributedArray) -> Any:
        """The whole array in this process; may be called in any thread."""
        scalar, parts = self.run(self._look_up, array)
        return array.assemble(parts) if scalar is None else scalar

    def _look_up(self, array: DistributedArray) -> tuple[Any, Parts]:
        """What came with a step, or else what the processes have."""
        array.check_alive()
        self.steps.synchronize()
        if array.number in self.handles.scalars:
            return self.handles.scalars[array.number], []
        found = self.steps.ask("store", self._calls(array.sharding.mesh, "fetch", array.number))
        return None, [part for own in found.values() for part in own]

    def _calls(self, mesh: int, *arguments: Any) -> dict[Place, tuple[Any, ...]]:
        """The same for all processes of a mesh."""
        places = [place for place in self._supervisor.fleet.places if place[0] == mesh]
        return dict.fromkeys(places, arguments)

    def save(
        self, folder: Path, arrays: Mapping[str, tuple[str, DistributedArray]]
    ) -> Callable[[], None]:
        """Begins to write arrays to a checkpoint, see ``save_checkpoint``; in any thread.

        Args:
            folder: of the checkpoint, which all hosts see.
            arrays: by name, the part and the array.

        Returns:
            what waits until they are written.
        """
        return self.run(self._save, folder, arrays)

    def _save(
        self, folder: Path, arrays: Mapping[str, tuple[str, DistributedArray]]
    ) -> Callable[[], None]:
        parts: dict[tuple[int, str], dict[str, int]] = {}
        for name, (part, array) in arrays.items():
            array.check_alive()
            parts.setdefault((array.sharding.mesh, part), {})[name] = array.number
        calls: dict[Place, tuple[Any, ...]] = {}
        for (mesh, part), numbers in parts.items():
            calls |= self._calls(mesh, "save", str(folder / part), numbers)
        self.steps.ask("store", calls)
        fleet = self._supervisor.fleet
        refs = fleet.submit("finish_saving", dict.fromkeys(calls, ()))

        def finish() -> None:
            # In no turn: steps go on. A failure ends the processes when a step notices it.
            fleet.collect(refs)

        return finish

    def close(self) -> None:
        """Ends all processes, also while another thread waits for them. Their arrays are lost."""
        self._supervisor.close()
