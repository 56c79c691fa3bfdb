"""Options that say which devices are planned for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from stablehlo_alpa.cli.usage import UsageError, at_least_one
from stablehlo_alpa.cluster import (
    PRESETS,
    Cluster,
    ClusterSpec,
    as_cluster,
    cluster_text,
    preset_for,
)
from stablehlo_alpa.errors import MeshError

DEFAULT_DEVICE = "h100-80gb"

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
DeviceOption = Annotated[
    str | None,
    typer.Option(help=f"device preset, {DEFAULT_DEVICE} by default: {', '.join(PRESETS)}"),
]
HostsOption = Annotated[
    int | None,
    typer.Option(
        callback=at_least_one, help="hosts that the devices are spread over, 1 by default"
    ),
]
BudgetOption = Annotated[
    str | None, typer.Option(help="memory per device, e.g. 16GiB; by default that of the device")
]


def find_cluster(
    cluster: str | None, mesh: str | None, device: str | None, hosts: int | None
) -> Cluster:
    """The cluster that options name, or hosts of as many devices as the mesh has.

    Raises:
        UsageError: a cluster is named, and devices or hosts are as well.
        MeshError: there is no such cluster, or the hosts do not divide the mesh.
        OSError: there is no such file.
    """
    if cluster is not None:
        given = {"--device": device, "--hosts": hosts}
        beside = [option for option, value in given.items() if value is not None]
        if beside:
            raise UsageError(
                f"--cluster {cluster} says devices and hosts: leave {', '.join(beside)} out"
            )
        return named_cluster("--cluster", cluster)
    count, over = math.prod(mesh_sizes("8" if mesh is None else mesh)), hosts or 1
    if count % over:
        raise MeshError(f"{count} devices cannot be spread evenly over {over} hosts")
    preset = preset_for(DEFAULT_DEVICE if device is None else device)
    return ClusterSpec(preset, over, count // over)


def named_cluster(option: str, name: str) -> Cluster:
    """The cluster of a preset or of a file.

    Args:
        option: that names it.
        name: of the preset, or of a TOML file.

    Raises:
        MeshError: there is no such preset, or the file describes no cluster.
        OSError: there is no such file.
    """
    if name.endswith(".toml") and not Path(name).is_file():
        raise FileNotFoundError(
            f"{option} {name}: there is no such file, `stablehlo-alpa calibrate -o {name}` writes "
            "one"
        )
    return as_cluster(name)


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
            f"--mesh {mesh} has {math.prod(shape)} devices, the cluster has {cluster.num_devices}: "
            f"{cluster_text(cluster)}"
        )
    return None if len(shape) == 1 else shape


def mesh_sizes(mesh: str) -> tuple[int, ...]:
    """Sizes joined by x.

    Raises:
        MeshError: they are none.
    """
    sizes = mesh.split("x")
    if not all(size.isdecimal() and int(size) for size in sizes):
        raise MeshError(f"--mesh is {mesh!r}, must be sizes of at least 1 joined by x, such as 2x4")
    return tuple(map(int, sizes))
