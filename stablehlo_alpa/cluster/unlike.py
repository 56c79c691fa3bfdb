"""Clusters whose parts are of unlike machines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from stablehlo_alpa.cluster.device import Link
from stablehlo_alpa.cluster.spec import ClusterSpec
from stablehlo_alpa.errors import MeshError

_PLUS = re.compile(r"\s*\+\s*")


@dataclass(frozen=True)
class UnlikeCluster:
    """Clusters of unlike machines and the network between them; their devices need not exist.

    A stage of a pipeline runs on devices of one part. Devices are numbered part by part.

    Attributes:
        parts: of equal hosts each, two or more.
        between: of a whole host to the hosts of other parts, shared by its devices; one for all
            pairs of parts.

    Example:
        >>> UnlikeCluster.preset("p4d.24xlarge:2 + p3.16xlarge:4")
        >>> UnlikeCluster((fast, slow), between=Link(alpha_s=30e-6, bandwidth=3.125e9))
    """

    parts: tuple[ClusterSpec, ...]
    between: Link

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        for part in self.parts:
            if not isinstance(part, ClusterSpec):
                raise MeshError(f"a part of a cluster must be a ClusterSpec, got {part!r}")
        if len(self.parts) < 2:
            raise MeshError(
                f"an unlike cluster has two parts or more, got {len(self.parts)}: equal hosts are "
                "a ClusterSpec"
            )
        if not isinstance(self.between, Link):
            raise MeshError(
                f"the link between parts must be a Link(alpha_s, bandwidth), got {self.between!r}"
            )
        platforms = sorted({part.device.platform for part in self.parts if part.device.platform})
        if len(platforms) > 1:
            raise MeshError(
                f"parts are of platforms {', '.join(platforms)}: a step is lowered for one, plan "
                "for parts of the same"
            )

    @classmethod
    def preset(cls, names: str) -> UnlikeCluster:
        """Clusters by name, joined by ``+``: ``"p4d.24xlarge:2 + p3.16xlarge:4"``.

        Between parts a host reaches what the slowest network of all reaches, after its longest
        latency (heuristic: no two hosts exchange more than either of them has).

        Raises:
            MeshError: there is no such machine, a machine is named twice, or it is one part.
        """
        found = {}
        for name in part_names(names):
            machine = name.partition(":")[0].lower()
            if machine in found:
                raise MeshError(
                    f"cluster {names!r} names {machine} twice: one part has all hosts of a kind, "
                    f"such as {machine}:4; a link of its own between two such parts is what a "
                    "TOML file or UnlikeCluster(parts, between) says"
                )
            found[machine] = ClusterSpec.preset(name)
        networks = [part.host_network for part in found.values()]
        slowest = Link(
            max((one.alpha_s for one in networks), default=0.0),
            min((one.bandwidth for one in networks), default=1.0),
        )
        return cls(tuple(found.values()), slowest)

    @classmethod
    def read(cls, path: str | Path) -> UnlikeCluster:
        """The cluster that a TOML file with ``[[parts]]`` describes.

        Raises:
            MeshError: something is missing in the file, or makes no such cluster.
            OSError: the file cannot be read.
        """
        from stablehlo_alpa.cluster.file import parse_cluster

        found = parse_cluster(Path(path).read_text(encoding="utf-8"), str(path))
        if not isinstance(found, UnlikeCluster):
            raise MeshError(f"{path} has no [[parts]], it is a ClusterSpec: ClusterSpec.read it")
        return found

    def write(self, path: str | Path) -> None:
        """Writes a file that `read` makes the same cluster of."""
        from stablehlo_alpa.cluster.file import format_cluster

        Path(path).write_text(format_cluster(self), encoding="utf-8")

    @property
    def num_devices(self) -> int:
        """Devices of all parts."""
        return sum(part.num_devices for part in self.parts)

    @property
    def num_hosts(self) -> int:
        """Hosts of all parts."""
        return sum(part.num_hosts for part in self.parts)

    def first_device(self, part: int) -> int:
        """Position of the first device of a part."""
        return sum(one.num_devices for one in self.parts[:part])

    def part_of(self, device: int) -> int:
        """Number of the part that a device, by its position, is of."""
        for number, part in enumerate(self.parts):
            if device < part.num_devices:
                return number
            device -= part.num_devices
        raise MeshError(f"the cluster has {self.num_devices} devices, there is no more of them")

    def __str__(self) -> str:
        """``2 hosts of 8 a100-40gb + 4 hosts of 8 v100-16gb``."""
        return " + ".join(map(cluster_text, self.parts))


Cluster: TypeAlias = ClusterSpec | UnlikeCluster
"""What a pipeline may be planned for."""


def part_names(names: str) -> list[str]:
    """What ``+`` joins."""
    return _PLUS.split(names.strip())


def cluster_text(cluster: Cluster) -> str:
    """``4 hosts of 8 v100-16gb``."""
    if isinstance(cluster, UnlikeCluster):
        return str(cluster)
    hosts = "1 host" if cluster.num_hosts == 1 else f"{cluster.num_hosts} hosts"
    return f"{hosts} of {cluster.devices_per_host} {cluster.device.name}"


def part_memories(cluster: Cluster) -> tuple[float, ...]:
    """Bytes of a device of each part; none of a cluster of equal hosts."""
    if not isinstance(cluster, UnlikeCluster):
        return ()
    return tuple(float(part.device.memory_bytes) for part in cluster.parts)


def one_part(cluster: Cluster, who: str) -> ClusterSpec:
    """A cluster of equal hosts; one of unlike parts is refused.

    Args:
        cluster: the devices.
        who: splits over one mesh of them, for the message.

    Raises:
        MeshError: the cluster has parts.
    """
    if isinstance(cluster, UnlikeCluster):
        raise MeshError(
            f"{who} splits over one mesh of equal devices, the cluster has parts of unlike ones "
            f"({cluster}): name one of them as the cluster, or take PipeshardParallel(), which "
            "gives every stage devices of one part"
        )
    return cluster
