"""Plans for a Ray cluster, and where they run there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import alpa_runtime
import jax
from alpa_runtime import RuntimeOptions

from stablehlo_alpa.cluster import ClusterSpec, DeviceSpec, known_device

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
        device: what each device can do; by default what its kind is known for, with the memory
            that XLA has there.
    """
    from alpa_runtime.ray.cluster import device_kind

    if device is None:
        kind, limit = device_kind(hosts)
        device = known_device(kind, [limit])
    return ClusterSpec(device, hosts.num_hosts, hosts.devices_per_host)


@dataclasses.dataclass(frozen=True)
class OnCluster:
    """Processes of a Ray cluster.

    Attributes:
        cluster: which.
        options: how plans are run.
    """

    cluster: RayCluster
    options: RuntimeOptions

    def executable(self, plan: alpa_runtime.Plan) -> alpa_runtime.Executable:
        """See `Target`; starts the processes, which compile their programs.

        Raises:
            RuntimeMeshError: the cluster has other devices than the plan is for.
            ClusterError: a process did not start.
        """
        from alpa_runtime.ray import RayExecutable

        return RayExecutable(plan, self.cluster, find_hosts(self.cluster), self.options)
