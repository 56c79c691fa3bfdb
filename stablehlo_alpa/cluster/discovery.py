"""The cluster that devices of jax make up."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from stablehlo_alpa.cluster.device import DeviceSpec
from stablehlo_alpa.cluster.presets import preset_for
from stablehlo_alpa.cluster.spec import ClusterSpec
from stablehlo_alpa.errors import MeshError


def cluster_of(devices: Sequence[jax.Device], device: DeviceSpec | None = None) -> ClusterSpec:
    """Hosts and devices as jax sees them.

    Args:
        devices: all of one kind.
        device: what each can do; by default what its kind is known for.

    Raises:
        MeshError: hosts have different numbers of devices, or the kind is not known.
    """
    hosts = len({one.process_index for one in devices})
    spec = device or preset_for(devices[0].device_kind)
    if len(devices) % hosts:
        raise MeshError(f"{len(devices)} devices are not spread evenly over {hosts} hosts")
    return ClusterSpec(spec, hosts, len(devices) // hosts)
