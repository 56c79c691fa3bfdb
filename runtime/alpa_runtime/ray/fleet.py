"""The actors of a plan: started together, asked together, ended together."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Mapping
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.plan import PipelinePlan
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

    def __init__(self, plan: PipelinePlan, cluster: RayCluster, hosts: Hosts) -> None:
        """Starts the processes, which compile all programs.

        Raises:
            RuntimeMeshError: Ray has no room for them.
            ClusterError: one did not start.
        """
        self._plan, self._cluster, self._hosts = plan, cluster, hosts
        self._groups: list[Any] = []
        self._actors: dict[Place, Any] = {}
        self.processes: dict[Place, tuple[str, int]] = {}
        self._watch = Watch(plan, self._actors, cluster)
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        self.places = tuple(self._actors)

    def _start(self) -> None:
        plan, bind = self._plan, self._cluster.bind
        counts = tuple(-(-len(m.devices) // self._hosts.devices_per_host) for m in plan.meshes)
        for mesh, count in enumerate(counts):
            size = len(plan.meshes[mesh].devices) // count
            self._groups.append(self._reserve(mesh, count, size))
            for host in range(count):
                self._actors[mesh, host] = self._make_actor(self._groups[-1], host, size)
        self.processes = self.call("whereabouts", dict.fromkeys(self._actors, ()))
        several = [(mesh, 0) for mesh, count in enumerate(counts) if count > 1]
        meeting = self.call("meeting_point", dict.fromkeys(several, (bind,)))
        shared = ray.put(plan)
        described = self.call(
            "start",
            {
                (mesh, host): (
                    shared,
                    (mesh, host),
                    counts,
                    bind,
                    self._cluster.transport,
                    meeting.get((mesh, 0)),
                )
                for mesh, host in self._actors
            },
        )
        self._watch.progress = {place: path for place, (_, path) in described.items()}
        addresses = {place: address for place, (address, _) in described.items()}
        secret = secrets.token_bytes(32)
        self.call("connect", dict.fromkeys(self._actors, (addresses, secret)))

    def _reserve(self, mesh: int, count: int, size: int) -> Any:
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

    def _make_actor(self, group: Any, host: int, size: int) -> Any:
        options: dict[str, Any] = {
            "num_cpus": 1,
            "num_gpus": size if self._hosts.platform == "gpu" else 0,
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                group, placement_group_bundle_index=host
            ),
            "runtime_env": {"env_vars": environment(self._hosts, size)},
            "max_restarts": 0,
        }
        make: Any = ray.remote
        actor = make(concurrency_groups={"beside": 1, "saving": 1})(MeshActor)
        return actor.options(**options).remote()

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

    def call(self, method: str, arguments: Mapping[Place, tuple[Any, ...]]) -> dict[Any, Any]:
        """Asks, and waits for the answers."""
        return self.collect(self.submit(method, arguments))

    def close(self) -> None:
        """Ends all processes, also those that do not listen any more."""
        for place, actor in self._actors.items():
            with contextlib.suppress(Exception):
                ray.kill(actor)
            node, pid = self.processes.get(place, ("", 0))
            if pid and node == ray.get_runtime_context().get_node_id():
                # Ray asks the process to end, which one that was stopped does not hear.
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        for group in self._groups:
            with contextlib.suppress(Exception):
                remove_placement_group(group)
        self._watch.forget()
        self._actors.clear()
        self._groups.clear()
        self.processes.clear()
