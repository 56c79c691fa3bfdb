"""Stages of a parallelised function that runs on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
from alpa_runtime import RuntimeOptions
from alpa_runtime.checkpoint import Leaf

from stablehlo_alpa.api.stages import CompiledPipeline, LoweredPipeline
from stablehlo_alpa.cluster import ClusterSpec, DeviceSpec, preset_for
from stablehlo_alpa.inter_op import PlannedPipeline

if TYPE_CHECKING:
    from alpa_runtime.ray import RayCluster
    from alpa_runtime.ray.cluster import Hosts


def find_hosts(cluster: RayCluster) -> Hosts:
    """Looks at what Ray has.

    Raises:
        RuntimeMeshError: the cluster lacks hosts or devices.
    """
    from alpa_runtime.ray import cluster as ray_cluster

    return ray_cluster.find_hosts(cluster, len(jax.devices()))


def cluster_spec(hosts: Hosts, device: DeviceSpec | None) -> ClusterSpec:
    """What is planned for.

    Args:
        hosts: of the cluster.
        device: what each device can do; by default what its kind is known for.
    """
    from alpa_runtime.ray.cluster import device_kind

    device = device or preset_for(device_kind(hosts))
    return ClusterSpec(device, hosts.num_hosts, hosts.devices_per_host)


class LoweredOnCluster(LoweredPipeline):
    """A planned pipeline for a cluster, whose processes are not started yet.

    Attributes:
        plan: the plan.
    """

    def __init__(
        self, plan: PlannedPipeline, cluster: RayCluster, hosts: Hosts, options: RuntimeOptions
    ):
        super().__init__(plan, (), options)
        self._cluster, self._hosts = cluster, hosts

    def _compile(self) -> CompiledOnCluster:
        """Starts the processes, which compile their programs.

        Raises:
            RuntimeMeshError: the cluster has other devices than the plan is for.
            ClusterError: a process did not start.
        """
        from alpa_runtime.ray import RayExecutable

        executable: Any = RayExecutable(
            self.plan.runtime, self._cluster, self._hosts, self._options
        )
        return CompiledOnCluster(self.plan, executable)


class CompiledOnCluster(CompiledPipeline):
    """A function on a cluster. Call it as the function, without its static arguments.

    Results are handles (`DistributedArray`) of arrays that stay on the cluster; a call returns
    before they are there.

    Attributes:
        plan: the plan it follows.
        executable: the processes.
    """

    def create(
        self, make: Callable[..., Any], leaves: Sequence[Any], argnum: int | str
    ) -> list[Any]:
        """Every mesh computes what it keeps; see ``Compiled.create``."""
        executable: Any = self.executable
        return list(executable.create(make, leaves, self._leaves(argnum)))

    def restore(self, folder: Path, leaves: Sequence[Leaf], argnum: int | str) -> list[Any]:
        """Every mesh reads what it keeps; see ``Compiled.restore``."""
        executable: Any = self.executable
        return list(executable.restore(folder, leaves, self._leaves(argnum)))

    def close(self) -> None:
        """Ends the processes. Arrays that were not fetched are lost."""
        executable: Any = self.executable
        executable.close()
