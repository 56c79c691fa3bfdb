"""Runs plans on a Ray cluster: an actor for each process of each mesh."""

try:
    import ray as _ray  # noqa: F401
except ImportError as error:
    raise ImportError("a cluster needs Ray: pip install 'stablehlo-alpa[ray]'") from error

from alpa_runtime.errors import ClusterError
from alpa_runtime.ray.arrays import DistributedArray, MeshSharding
from alpa_runtime.ray.cluster import RayCluster, init, shutdown
from alpa_runtime.ray.executable import RayExecutable
from alpa_runtime.ray.session import Session

__all__ = [
    "ClusterError",
    "DistributedArray",
    "MeshSharding",
    "RayCluster",
    "RayExecutable",
    "Session",
    "init",
    "shutdown",
]
