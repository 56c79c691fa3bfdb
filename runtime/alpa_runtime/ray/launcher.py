"""Starts the processes of a mesh on Ray."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.ray.actor import MeshActor, environment
from alpa_runtime.ray.cluster import Hosts, RayCluster, able_nodes, addresses_of, alive_nodes

# Seconds in which Ray has to find room for the processes of a mesh.
_RESERVE_S = 60.0

# Seconds after which nodes are looked at again meanwhile.
_LOOK_S = 2.0


class Launcher:
    """Reserves devices of a cluster, and makes actors on them."""

    def __init__(self, cluster: RayCluster, hosts: Hosts) -> None:
        """Takes the cluster and what it has."""
        self._cluster, self._hosts = cluster, hosts
        # Per host; another node takes the place of one that is lost.
        self._nodes = list(hosts.nodes)

    def num_hosts(self, devices: Sequence[int]) -> int:
        """Processes of a mesh of these devices."""
        return -(-len(devices) // self._hosts.devices_per_host)

    def launch(self, devices: Sequence[int]) -> tuple[Any, list[Any]]:
        """Makes an actor for each process of a mesh.

        Args:
            devices: of the mesh, by their positions in the cluster.

        Returns:
            what reserves the devices (``remove_placement_group`` gives them back), and the actors.

        Raises:
            RuntimeMeshError: Ray has no room for them.
        """
        count = self.num_hosts(devices)
        size = len(devices) // count
        gpus = size if self._hosts.platform == "gpu" else 0
        group = self._reserve(devices[0] // self._hosts.devices_per_host, count, gpus)
        given = dict(self._cluster.runtime_env)
        variables = environment(self._hosts, size, given.get("env_vars", {}))
        make: Any = ray.remote
        kind = make(concurrency_groups={"beside": 1, "saving": 1})(MeshActor)
        actors = [
            kind.options(
                num_cpus=1,
                num_gpus=gpus,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    group, placement_group_bundle_index=host
                ),
                runtime_env=given | {"env_vars": variables},
                max_restarts=0,
            ).remote()
            for host in range(count)
        ]
        return group, actors

    def _reserve(self, first: int, count: int, gpus: int) -> Any:
        """Room for a process on each of some hosts."""
        wanted = {"CPU": 1.0, **({"GPU": float(gpus)} if gpus else {})}
        deadline = time.monotonic() + _RESERVE_S
        while True:
            self._replace_lost()
            nodes = self._nodes[first : first + count]
            # Every node has a resource of its own, by which it can be asked for.
            pins = [{f"node:{node}": 0.001} for node in nodes] or [{}] * count
            group = placement_group([wanted | pin for pin in pins], strategy="PACK")
            while (left := deadline - time.monotonic()) > 0:
                if group.wait(timeout_seconds=min(left, _LOOK_S)):
                    return group
                if self._replace_lost():
                    break
            remove_placement_group(group)
            if left <= 0:
                where = f" ({', '.join(nodes)})" if nodes else ""
                raise RuntimeMeshError(
                    f"Ray has no room for a mesh on hosts {first} to {first + count - 1}{where}: "
                    f"{count} processes with a CPU and {gpus} GPUs each are wanted, "
                    f"{_what_is_free()}"
                )

    def _replace_lost(self) -> bool:
        """Gives hosts whose nodes Ray has lost those that it has besides; whether any was given."""
        found, hosts = alive_nodes(), self._hosts
        able = able_nodes(found, hosts.platform, hosts.devices_per_host)
        spare = iter([node for node in able if node not in self._nodes])
        alive = {*addresses_of(found)}
        nodes = [node if node in alive else next(spare, node) for node in self._nodes]
        is_other, self._nodes = nodes != self._nodes, nodes
        return is_other


def _what_is_free() -> str:
    """What Ray could give to processes yet, and the nodes that it has."""
    free = ray.available_resources()
    return (
        f"{free.get('CPU', 0):g} CPUs and {free.get('GPU', 0):g} GPUs are free on all nodes "
        f"({', '.join(addresses_of(alive_nodes()))})"
    )
