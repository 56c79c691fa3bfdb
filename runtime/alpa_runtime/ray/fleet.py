"""The processes of a session: started for the meshes of plans, asked together, ended together."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import ray
from ray.util.placement_group import remove_placement_group

from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.plan import Plan
from alpa_runtime.plan_part import Assignment
from alpa_runtime.progress import Progress
from alpa_runtime.ray.cluster import Hosts, RayCluster
from alpa_runtime.ray.launcher import Launcher
from alpa_runtime.ray.watch import Watch
from alpa_runtime.transport import Place


class Fleet:
    """A process for each host of each mesh, connected and ready to run.

    A mesh is a list of devices. Plans whose meshes have the same devices share its processes,
    whatever axes they give them.

    Attributes:
        assignments: by number, the plans that the processes hold.
        watch: collects what the processes answer.
        processes: per place Ray's name of its host, and the number of the process there.
    """

    def __init__(self, cluster: RayCluster, hosts: Hosts) -> None:
        """Starts nothing yet.

        Args:
            cluster: where.
            hosts: what the cluster has.
        """
        self._cluster, self._launcher = cluster, Launcher(cluster, hosts)
        self.assignments: dict[int, Assignment] = {}
        self.processes: dict[Place, tuple[str, int]] = {}
        # Devices of every mesh that is wanted, by its number.
        self._meshes: dict[int, tuple[int, ...]] = {}
        self._next_mesh = 0
        # Meshes whose processes have their devices.
        self._started: set[int] = set()
        self._groups: dict[int, Any] = {}
        self._actors: dict[Place, Any] = {}
        self._addresses: dict[Place, str] = {}
        self._secret = secrets.token_bytes(32)
        # Of processes on this host; unlike their numbers, they are never those of others.
        self._handles: dict[Place, int] = {}
        # Whoever closes does not wait for who is waiting for the processes.
        self._ending = threading.RLock()
        self._is_closed = False
        self.watch = Watch(self.assignments, self._actors, cluster)

    @property
    def places(self) -> tuple[Place, ...]:
        """Of all processes."""
        return tuple(place for mesh in self._meshes for place in self._places(mesh))

    def add(self, number: int, plan: Plan, *, traces: bool = False) -> Assignment:
        """Gives processes a plan, which they compile; starts those that are not there yet.

        Args:
            number: of the plan.
            plan: what is to be run.
            traces: whether steps say what ran when.

        Raises:
            RuntimeMeshError: Ray has no room for new processes. All is as before then.
            ClusterError: one did not start, or could not compile.
        """
        new: list[int] = []
        numbers = []
        for mesh in plan.meshes:
            known = [own for own, devices in self._meshes.items() if devices == mesh.devices]
            if not known:
                known = [self._next_mesh]
                self._meshes[self._next_mesh] = mesh.devices
                new.append(self._next_mesh)
                self._next_mesh += 1
            numbers.append(known[0])
        counts = tuple(self._launcher.num_hosts(mesh.devices) for mesh in plan.meshes)
        assignment = Assignment(plan, tuple(numbers), counts, traces)
        self.assignments[number] = assignment
        try:
            if new:
                self._start(new)
                self._connect()
            self._install([number], self.places)
        except BaseException:
            del self.assignments[number]
            for own in new:
                self._end(own)
                del self._meshes[own]
            old = [place for place in self._actors if place[0] in numbers]
            self.give_up(self.submit("remove", dict.fromkeys(old, (number,))).values())
            raise
        return assignment

    def remove(self, number: int) -> None:
        """Lets processes forget a plan; nobody waits for it."""
        assignment = self.assignments.pop(number)
        places = [place for own in assignment.places.values() for place in own]
        self.give_up(self.submit("remove", dict.fromkeys(places, (number,))).values())

    def renew(self, lost: Collection[int]) -> None:
        """Replaces the processes of meshes that lost one; all others forget what they keep.

        Args:
            lost: meshes that cannot go on; those with dead or silent processes are found here.

        Raises:
            RuntimeMeshError: Ray has no room for new processes.
            ClusterError: one did not start, or another was lost on the way.
        """
        begun = set(self._meshes) - self._started
        gone = sorted({*lost, *begun, *(mesh for mesh, _ in self.watch.lost())})
        for mesh in gone:
            self._end(mesh)
        kept = [place for place in self.places if place[0] not in gone]
        # What waits for the lost ones would wait forever.
        self.collect(self.submit("abort", dict.fromkeys(kept, ())), self._cluster.deadline_s)
        resets = self.submit("reset", dict.fromkeys(kept, ()))
        self._start(gone)
        self._addresses |= self.collect(resets, self._cluster.deadline_s)
        # All that was under way is over.
        self.watch.sweep()
        self._secret = secrets.token_bytes(32)
        self._connect()
        self._install(list(self.assignments), [p for p in self.places if p[0] in gone])

    def _places(self, mesh: int) -> list[Place]:
        count = self._launcher.num_hosts(self._meshes[mesh])
        return [(mesh, host) for host in range(count)]

    def _start(self, meshes: Collection[int]) -> None:
        """Starts the processes of some meshes."""
        bind = self._cluster.bind
        for mesh in meshes:
            if self._is_closed:
                raise RuntimeMeshError("the processes were ended while others were started")
            self._groups[mesh], actors = self._launcher.launch(self._meshes[mesh])
            self._actors |= dict(zip(self._places(mesh), actors, strict=True))
        new = [place for mesh in meshes for place in self._places(mesh)]
        found = self.call("whereabouts", dict.fromkeys(new, ()))
        self.processes |= found
        for place, (node, pid) in found.items():
            if node == ray.get_runtime_context().get_node_id():
                with contextlib.suppress(OSError):
                    self._handles[place] = os.pidfd_open(pid)
        counts = {mesh: len(self._places(mesh)) for mesh in meshes}
        first = [(mesh, 0) for mesh in meshes if counts[mesh] > 1]
        meeting = self.call("meeting_point", dict.fromkeys(first, (bind,)))
        described = self.call(
            "start",
            {
                place: (
                    place,
                    len(self._meshes[place[0]]),
                    counts[place[0]],
                    bind,
                    self._cluster.transport,
                    meeting.get((place[0], 0)),
                )
                for place in new
            },
        )
        self.watch.progress |= {
            place: Progress.find(progress) for place, (_, progress) in described.items()
        }
        self._addresses |= {place: address for place, (address, _) in described.items()}
        self._started |= set(meshes)

    def _connect(self) -> None:
        """Tells all processes of each other."""
        self.call("connect", dict.fromkeys(self.places, (self._addresses, self._secret)))

    def _install(self, numbers: Collection[int], places: Collection[Place]) -> None:
        """Lets processes compile their parts of plans."""
        for number in numbers:
            assignment = self.assignments[number]
            own = {place for places in assignment.places.values() for place in places}
            sent = ray.put(assignment)
            self.call("add", dict.fromkeys(own & set(places), (number, sent)))

    def submit(self, method: str, arguments: Mapping[Place, tuple[Any, ...]]) -> dict[Place, Any]:
        """Asks some processes for something; `collect` has what they answer."""
        return {
            place: getattr(self._actors[place], method).remote(*args)
            for place, args in arguments.items()
        }

    def collect(self, refs: Mapping[Place, Any], deadline_s: float | None = None) -> dict[Any, Any]:
        """Waits for answers.

        Args:
            refs: what `submit` returned.
            deadline_s: seconds; those of compilation by default.

        Raises:
            ClusterError: a process died, failed, or was not done in time.
        """
        deadline = time.monotonic() + (deadline_s or self._cluster.compile_deadline_s)
        return self.watch.collect(refs, deadline)

    def give_up(self, refs: Iterable[Any]) -> None:
        """Notes calls whose answers nobody will ask for."""
        self.watch.give_up(refs)

    def call(self, method: str, arguments: Mapping[Place, tuple[Any, ...]]) -> dict[Any, Any]:
        """Asks, and waits for the answers."""
        return self.collect(self.submit(method, arguments))

    def close(self) -> None:
        """Ends all processes, also those that do not listen any more."""
        self._is_closed = True
        for mesh in list(self._meshes):
            self._end(mesh)
        self.watch.sweep()

    def _end(self, mesh: int) -> None:
        """Ends the processes of a mesh."""
        with self._ending:
            self._started.discard(mesh)
            for place in [place for place in self._actors if place[0] == mesh]:
                with contextlib.suppress(Exception):
                    ray.kill(self._actors.pop(place))
                self.processes.pop(place, None)
                self._addresses.pop(place, None)
                if place in self._handles:
                    # Ray asks the process to end, which one that was stopped does not hear.
                    with contextlib.suppress(OSError):
                        signal.pidfd_send_signal(self._handles[place], signal.SIGKILL)
                    os.close(self._handles.pop(place))
                self.watch.forget(place)
            if mesh in self._groups:
                with contextlib.suppress(Exception):
                    remove_placement_group(self._groups.pop(mesh))
