"""Options that say which devices are planned for."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from stablehlo_alpa.cluster import (
    PRESETS,
    Cluster,
    ClusterSpec,
    as_cluster,
    cluster_text,
    preset_for,
)
from stablehlo_alpa.errors import MeshError

MeshOption = Annotated[
    str | None, typer.Option(help="mesh shape, e.g. 2x4; or devices, e.g. 8: search")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        help="cluster preset, e.g. p5.48xlarge:16, TOML file, or presets of unlike machines joined "
        "by +; instead of device, hosts"
    ),
]
DeviceOption = Annotated[str, typer.Option(help=f"device preset: {', '.join(PRESETS)}")]
HostsOption = Annotated[int, typer.Option(help="hosts that the devices are spread over")]
BudgetOption = Annotated[
    str | None, typer.Option(help="memory per device, e.g. 16GiB; by default that of the device")
]


def find_cluster(cluster: str | None, mesh: str | None, device: str, hosts: int) -> Cluster:
    """The cluster that options name, or hosts of as many devices as the mesh has.

    Raises:
        MeshError: there is no such cluster, or the hosts do not divide the mesh.
    """
    if cluster is not None:
        return as_cluster(cluster)
    count = math.prod(mesh_sizes(mesh or "8"))
    if count % hosts:
        raise MeshError(f"{count} devices cannot be spread evenly over {hosts} hosts")
    return ClusterSpec(preset_for(device), hosts, count // hosts)


def mesh_shape(mesh: str | None, cluster: Cluster) -> tuple[int, ...] | None:
    """The mesh that is asked for; None where it is searched.

    Raises:
        MeshError: it has other devices than the cluster.
    """
    if mesh is None:
        return None
    shape = mesh_sizes(mesh)
    if math.prod(shape) != cluster.num_devices:
        raise MeshError(
            f"mesh {mesh} has {math.prod(shape)} devices, the cluster has {cluster.num_devices}: "
            f"{cluster_text(cluster)}"
        )
    return None if len(shape) == 1 else shape


def mesh_sizes(mesh: str) -> tuple[int, ...]:
    """Sizes joined by x.

    Raises:
        MeshError: they are none.
    """
    try:
        return tuple(int(size) for size in mesh.split("x"))
    except ValueError:
        raise MeshError(f"mesh is '{mesh}', must be sizes joined by x, such as 2x4") from None
