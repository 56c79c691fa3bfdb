"""Devices, clusters and the logical meshes laid over them."""

from stablehlo_alpa.cluster.device import DeviceSpec, Fit, Link
from stablehlo_alpa.cluster.discovery import cluster_of, known_device
from stablehlo_alpa.cluster.groups import Group, Ring
from stablehlo_alpa.cluster.machines import MACHINES, as_cluster, cluster_names, cluster_of_devices
from stablehlo_alpa.cluster.mesh import AXIS_NAMES, LogicalMesh, logical_mesh_shapes
from stablehlo_alpa.cluster.overlap import Overlap
from stablehlo_alpa.cluster.presets import PRESETS, preset_for
from stablehlo_alpa.cluster.spec import ClusterSpec, Torus
from stablehlo_alpa.cluster.unlike import (
    Cluster,
    UnlikeCluster,
    cluster_text,
    one_part,
    part_memories,
)

__all__ = [
    "AXIS_NAMES",
    "MACHINES",
    "PRESETS",
    "Cluster",
    "ClusterSpec",
    "DeviceSpec",
    "Fit",
    "Group",
    "Link",
    "LogicalMesh",
    "Overlap",
    "Ring",
    "Torus",
    "UnlikeCluster",
    "as_cluster",
    "cluster_names",
    "cluster_of",
    "cluster_of_devices",
    "cluster_text",
    "known_device",
    "logical_mesh_shapes",
    "one_part",
    "part_memories",
    "preset_for",
]
