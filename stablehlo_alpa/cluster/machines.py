"""Clusters by the name of their machines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from stablehlo_alpa.cluster.device import DeviceSpec, Link
from stablehlo_alpa.cluster.presets import PRESETS
from stablehlo_alpa.cluster.spec import ClusterSpec, Torus
from stablehlo_alpa.cluster.unlike import Cluster, UnlikeCluster
from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.nearest import nearest

_GBIT = 1e9 / 8


@dataclass(frozen=True)
class Machine:
    """A host that can be had by name.

    Attributes:
        device: preset of its devices.
        devices: how many it has.
        network: bits per second of all its cards together, in units of 1e9.
        hosts_per_rack: hosts whose devices are linked directly; such machines are counted in racks.
    """

    device: str
    devices: int
    network: float
    hosts_per_rack: int = 1


# EC2: instance pages of AWS. Google's (a2, a3, a4, g2) and Azure's (nd): their pages of machine
# types, the cards for GPUs alone. DGX: NVIDIA's user guides (DGX A100: eight HDR cards of 200
# Gbit/s for computing; DGX H100, H200 and B200: eight of 400). GB200 and GB300 NVL72: 18 trays of
# four devices in a rack, one card a device of 400 (GB300: 800) Gbit/s.
MACHINES: Mapping[str, Machine] = MappingProxyType(
    {
        "p3.16xlarge": Machine("v100-16gb", 8, 25),
        "p3dn.24xlarge": Machine("v100-32gb", 8, 100),
        "p4d.24xlarge": Machine("a100-40gb", 8, 400),
        "p4de.24xlarge": Machine("a100-80gb", 8, 400),
        "p5.48xlarge": Machine("h100-80gb", 8, 3200),
        "p5e.48xlarge": Machine("h200-141gb", 8, 3200),
        "p5en.48xlarge": Machine("h200-141gb", 8, 3200),
        "p6-b200.48xlarge": Machine("b200-180gb", 8, 3200),
        "g4dn.metal": Machine("t4-16gb", 8, 100),
        "g5.48xlarge": Machine("a10g-24gb", 8, 100),
        "g6.48xlarge": Machine("l4-24gb", 8, 100),
        "g6e.48xlarge": Machine("l40s-48gb", 8, 400),
        "a2-highgpu-8g": Machine("a100-40gb", 8, 100),
        "a2-ultragpu-8g": Machine("a100-80gb", 8, 100),
        "a3-highgpu-8g": Machine("h100-80gb", 8, 800),
        "a3-megagpu-8g": Machine("h100-80gb", 8, 1600),
        "a3-ultragpu-8g": Machine("h200-141gb", 8, 3200),
        "a4-highgpu-8g": Machine("b200-180gb", 8, 3200),
        "g2-standard-96": Machine("l4-24gb", 8, 100),
        "nd96asr-v4": Machine("a100-40gb", 8, 1600),
        "nd96amsr-a100-v4": Machine("a100-80gb", 8, 1600),
        "nd96isr-h100-v5": Machine("h100-80gb", 8, 3200),
        "nd96isr-h200-v5": Machine("h200-141gb", 8, 3200),
        "nd96isr-mi300x-v5": Machine("mi300x-192gb", 8, 3200),
        "dgx-a100": Machine("a100-80gb", 8, 1600),
        "dgx-h100": Machine("h100-80gb", 8, 3200),
        "dgx-h200": Machine("h200-141gb", 8, 3200),
        "dgx-b200": Machine("b200-180gb", 8, 3200),
        "gb200-nvl72": Machine("gb200-186gb", 4, 1600, hosts_per_rack=18),
        "gb300-nvl72": Machine("gb300-288gb", 4, 3200, hosts_per_rack=18),
        # What `PRESETS` calls its links.
        "cpu": Machine("cpu", 8, 8),
    }
)

# Axes of a slice, whether an axis of a size is closed, and devices of a host (scaling-book): v4 and
# v5p close axes that are a multiple of a cube's 4, v5e and v6e those of a whole pod.
_TORI: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {"tpu-v4": (3, 4, 4), "tpu-v5p": (3, 4, 4), "tpu-v5e": (2, 16, 8), "tpu-v6e": (2, 16, 8)}
)


def cluster_names() -> tuple[str, ...]:
    """Names that `cluster_named` knows."""
    return (*MACHINES, *_TORI)


def cluster_named(name: str) -> ClusterSpec:
    """A cluster of machines by name.

    Args:
        name: a machine and how many (hosts, ``"p4d.24xlarge:4"``; racks, ``"gb200-nvl72:1"``), one
            when left out; hosts and devices of each, ``"cpu:1x8"``; a device likewise, whose
            machine has no name, ``"rtx-4090-24gb:1x8"``; or a TPU and the shape of the slice,
            ``"tpu-v5p:4x4x4"``.

    Raises:
        MeshError: there is no such machine, or the numbers do not fit it.
    """
    if "+" in name:
        raise MeshError(
            f"cluster {name!r} has parts of unlike machines: UnlikeCluster.preset, or the name "
            "itself as cluster="
        )
    machine, _, counts = name.strip().lower().partition(":")
    known = {**MACHINES, **_TORI}
    if machine not in {**known, **PRESETS}:
        raise MeshError(
            f"no cluster preset {machine!r}{nearest(machine, {**known, **PRESETS})}, presets are "
            f"{sorted(known)}, and devices with hosts and devices of each, such as "
            f"rtx-4090-24gb:1x8: {sorted(set(PRESETS) - set(known))}"
        )
    try:
        sizes = tuple(int(size) for size in counts.split("x")) if counts else (1,)
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise MeshError(f"cluster {name!r} must be a name and sizes, such as {machine}:4")
    if machine in _TORI:
        return _slice(machine, sizes)
    if machine in MACHINES:
        return _hosts(name, MACHINES[machine], sizes)
    if len(sizes) != 2:
        raise MeshError(
            f"cluster {name!r} names a device: say how many hosts and devices of each, as in "
            f"{machine}:1x8"
        )
    return ClusterSpec(PRESETS[machine], *sizes)


def _hosts(name: str, machine: Machine, sizes: tuple[int, ...]) -> ClusterSpec:
    if len(sizes) > 2:
        raise MeshError(f"cluster {name!r} has hosts and devices of each, got {len(sizes)} sizes")
    count = sizes[0] * (machine.hosts_per_rack if len(sizes) == 1 else 1)
    devices = sizes[1] if len(sizes) == 2 else machine.devices
    if devices > machine.devices and machine.device != "cpu":
        raise MeshError(
            f"cluster {name!r}: its hosts have {machine.devices} devices, not {devices}"
        )
    device = PRESETS[machine.device]
    network = Link(device.inter_host.alpha_s, machine.network * _GBIT)
    return ClusterSpec(
        device, count, devices, network=network, hosts_per_rack=machine.hosts_per_rack
    )


def torus_of(device: str, shape: tuple[int, ...]) -> Torus:
    """The torus of a slice of TPUs; of a device that is not known no axis is closed."""
    known = _TORI.get(device)
    return Torus(shape, tuple(known is not None and length % known[1] == 0 for length in shape))


def _slice(machine: str, shape: tuple[int, ...]) -> ClusterSpec:
    axes, _, per_host = _TORI[machine]
    if len(shape) > axes:
        raise MeshError(f"{machine} has {axes} axes, got {'x'.join(map(str, shape))}")
    size = math.prod(shape)
    devices = math.gcd(size, per_host)
    return ClusterSpec(PRESETS[machine], size // devices, devices, torus=torus_of(machine, shape))


def as_cluster(given: Cluster | str) -> Cluster:
    """A cluster as it may be given: described, by name, or by a TOML file.

    Raises:
        MeshError: it is none of them.
    """
    if isinstance(given, ClusterSpec | UnlikeCluster):
        return given
    if not isinstance(given, str):
        raise MeshError(
            f"cluster is {given!r}, must be a ClusterSpec, an UnlikeCluster, a preset such as "
            "'p4d.24xlarge:4' or a TOML file; or, where a function is run, a RayCluster"
        )
    if given.endswith(".toml"):
        from stablehlo_alpa.cluster.file import parse_cluster

        return parse_cluster(Path(given).read_text(encoding="utf-8"), given)
    return UnlikeCluster.preset(given) if "+" in given else cluster_named(given)


def cluster_of_devices(device: DeviceSpec, size: int) -> ClusterSpec:
    """Devices in the hosts that they are usually in, or in one where those do not divide."""
    usual = [machine.devices for machine in MACHINES.values() if machine.device == device.name]
    per_host = usual[0] if usual and device.name != "cpu" and size % usual[0] == 0 else size
    return ClusterSpec(device, size // per_host, per_host)
