"""Devices, clusters and the logical meshes laid over them."""

from stablehlo_alpa.cluster.device import PRESETS, DeviceSpec, Link, preset_for
from stablehlo_alpa.cluster.discovery import cluster_of
from stablehlo_alpa.cluster.mesh import (
    AXIS_NAMES,
    ClusterSpec,
    LogicalMesh,
    logical_mesh_shapes,
)

__all__ = [
    "AXIS_NAMES",
    "PRESETS",
    "ClusterSpec",
    "DeviceSpec",
    "Link",
    "LogicalMesh",
    "cluster_of",
    "logical_mesh_shapes",
    "preset_for",
]
