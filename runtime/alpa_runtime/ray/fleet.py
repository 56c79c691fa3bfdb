"""The actors of a plan: started together, asked together, ended together."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.plan import Plan
from alpa_runtime.ray.actor import MeshActor, environment
from alpa_runtime.ray.cluster import Hosts, RayCluster
from alpa_runtime.ray.watch import Watch
from alpa_runtime.transport import Place

# Seconds in which Ray has to find room for the processes of a mesh.
_RESERVE_S = 60.0


class Fleet:
    """A process for each host of each mesh, connected and ready to run.

    Attributes:
        places: of all processes.
        processes: per place Ray's name of its host, and the number of the process there.
    """

    def __init__(self, plan: Plan, cluster: RayCluster, hosts: Hosts, traces: bool = False) -> None:
        """Starts the processes, which compile all programs.

        Args:
            plan: what is run.
            cluster: where.
            hosts: what the cluster has.
            traces: whether steps say what ran when.

        Raises:
            RuntimeMeshError: Ray has no room for them.
            ClusterError: one did not start.
        """
        self._plan, self._cluster, self._hosts = plan, cluster, hosts
        self._traces = traces
        self._counts = tuple(-(-len(m.devices) // hosts.devices_per_host) for m in plan.meshes)
        self.places = tuple(
            (mesh, host) for mesh, count in enumerate(self._counts) for host in range(count)
        )
        self._groups: dict[int, Any] = {}
        # Meshes whose processes have their devices.
        self._started: set[int] = set()
        self._actors: dict[Place, Any] = {}
        self._plan_ref = ray.put(plan)
        self.processes: dict[Place, tuple[str, int]] = {}
        # Of processes on this host; unlike their numbers, they are never those of others.
        self._handles: dict[Place, int] = {}
        self._watch = Watch(plan, self._actors, cluster)
        try:
            self._connect(self._start(range(len(plan.meshes))))
        except BaseException:
            self.close()
            raise

    def renew(self, lost: Collection[int]) -> None:
        """Replaces the processes of meshes that lost one; all others forget what they keep.

        Args:
            lost: meshes that cannot go on; those with dead or silent processes are found here.

        Raises:
            RuntimeMeshError: Ray has no room for new processes.
            ClusterError: one did not start, or another was lost on the way.
        """
        begun = set(range(len(self._counts))) - self._started
        gone = sorted({*lost, *begun, *(mesh for mesh, _ in self._watch.lost())})
        for mesh in gone:
            self._end(mesh)
        kept = [place for place in self.places if place[0] not in gone]
        # What waits for the lost ones would wait forever.
        self.collect(self.submit("abort", dict.fromkeys(kept, ())), self._cluster.deadline_s)
        resets = self.submit("reset", dict.fromkeys(kept, ()))
        addresses = self._start(gone)
        addresses |= self.collect(resets, self._cluster.deadline_s)
        # All that was under way is over.
        self._watch.sweep()
        self._connect(addresses)

    def _start(self, meshes: Collection[int]) -> dict[Place, str]:
        """Starts the processes of some meshes; where each is found by the others."""
        bind = self._cluster.bind
        new = [place for place in self.places if place[0] in meshes]
        for mesh in meshes:
            self._groups[mesh] = self._reserve(mesh)
        for mesh, host in new:
            self._actors[mesh, host] = self._make_actor(mesh, host)
        found = self.call("whereabouts", dict.fromkeys(new, ()))
        self.processes |= found
        for place, (node, pid) in found.items():
            if node == ray.get_runtime_context().get_node_id():
                with contextlib.suppress(OSError):
                    self._handles[place] = os.pidfd_open(pid)
        first = [(mesh, host) for mesh, host in new if host == 0 and self._counts[mesh] > 1]
        meeting = self.call("meeting_point", dict.fromkeys(first, (bind,)))
        described = self.call(
            "start",
            {
                (mesh, host): (
                    self._plan_ref,
                    (mesh, host),
                    self._counts,
                    bind,
                    self._cluster.transport,
                    meeting.get((mesh, 0)),
                    self._traces,
                )
                for mesh, host in new
            },
        )
        self._watch.progress |= {place: path for place, (_, path) in described.items()}
        self._started |= set(meshes)
        return {place: address for place, (address, _) in described.items()}

    def _connect(self, addresses: Mapping[Place, str]) -> None:
        """Tells all processes of each other; new ones compile."""
        secret = secrets.token_bytes(32)
        self.call("connect", dict.fromkeys(self.places, (addresses, secret)))

    def _size(self, mesh: int) -> int:
        """Devices of each process of a mesh."""
        return len(self._plan.meshes[mesh].devices) // self._counts[mesh]

    def _reserve(self, mesh: int) -> Any:
        count, size = self._counts[mesh], self._size(mesh)
        gpus = {"GPU": float(size)} if self._hosts.platform == "gpu" else {}
        first = self._plan.meshes[mesh].devices[0] // self._hosts.devices_per_host
        bundles = []
        for host in range(first, first + count):
            nodes = self._hosts.nodes
            # Every node has a resource of its own, by which it can be asked for.
            pinned = {f"node:{nodes[host]}": 0.001} if nodes else {}
            bundles.append({"CPU": 1.0, **gpus, **pinned})
        group = placement_group(bundles, strategy="PACK")
        if not group.wait(timeout_seconds=_RESERVE_S):
            remove_placement_group(group)
            raise RuntimeMeshError(
                f"Ray has no room for mesh {mesh} of {self._plan.name}: {count} processes with a "
                f"CPU and {int(gpus.get('GPU', 0))} GPUs each"
            )
        return group

    def _make_actor(self, mesh: int, host: int) -> Any:
        size = self._size(mesh)
        options: dict[str, Any] = {
            "num_cpus": 1,
            "num_gpus": size if self._hosts.platform == "gpu" else 0,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                self._groups[mesh], placement_group_bundle_index=host
            ),
            "runtime_env": self._runtime_env(size),
            "max_restarts": 0,
        }
        make: Any = ray.remote
        actor = make(concurrency_groups={"beside": 1, "saving": 1})(MeshActor)
        return actor.options(**options).remote()

    def _runtime_env(self, size: int) -> dict[str, Any]:
        """The user's, with what says which devices a process has."""
        given = dict(self._cluster.runtime_env)
        return given | {"env_vars": environment(self._hosts, size, given.get("env_vars", {}))}

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
        return self._watch.collect(refs, deadline)

    def give_up(self, refs: Iterable[Any]) -> None:
        """Notes calls whose answers nobody will ask for."""
        self._watch.give_up(refs)

    def call(self, method: str, arguments: Mapping[Place, tuple[Any, ...]]) -> dict[Any, Any]:
        """Asks, and waits for the answers."""
        return self.collect(self.submit(method, arguments))

    def close(self) -> None:
        """Ends all processes, also those that do not listen any more."""
        for mesh in range(len(self._counts)):
            self._end(mesh)
        self._watch.sweep()

    def _end(self, mesh: int) -> None:
        """Ends the processes of a mesh."""
        self._started.discard(mesh)
        for place in [place for place in self._actors if place[0] == mesh]:
            with contextlib.suppress(Exception):
                ray.kill(self._actors.pop(place))
            self.processes.pop(place, None)
            if place in self._handles:
                # Ray asks the process to end, which one that was stopped does not hear.
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(self._handles[place], signal.SIGKILL)
                os.close(self._handles.pop(place))
            self._watch.forget(place)
        if mesh in self._groups:
            with contextlib.suppress(Exception):
                remove_placement_group(self._groups.pop(mesh))
