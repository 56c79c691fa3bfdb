"""The cluster that devices of jax make up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import jax
from alpa_runtime.allocator import memory_limit
from alpa_runtime.torus_order import in_torus_order, torus_shape

from stablehlo_alpa.cluster.device import DeviceSpec
from stablehlo_alpa.cluster.machines import torus_of
from stablehlo_alpa.cluster.presets import preset_for
from stablehlo_alpa.cluster.spec import ClusterSpec
from stablehlo_alpa.errors import MeshError

# Memory is told in steps, so that processes whose allocators differ by little plan alike. Bytes.
_STEP = 256 * 2**20


def cluster_of(devices: Sequence[jax.Device], device: DeviceSpec | None = None) -> ClusterSpec:
    """Hosts and devices as jax sees them; of TPUs in the order of their torus the torus as well.

    Args:
        devices: all of one kind.
        device: what each can do; by default what its kind is known for, with the memory that XLA
            has there.

    Raises:
        MeshError: hosts have different numbers of devices, or the kind is not known.
    """
    hosts = len(set(map(_host_of, devices)))
    spec = device or known_device(devices[0].device_kind, map(memory_limit, devices))
    if len(devices) % hosts:
        raise MeshError(f"{len(devices)} devices are not spread evenly over {hosts} hosts")
    shape = torus_shape(devices)
    is_ordered = shape is not None and tuple(devices) == in_torus_order(devices)
    torus = torus_of(spec.name, shape) if shape is not None and is_ordered else None
    return ClusterSpec(spec, hosts, len(devices) // hosts, torus=torus)


def _host_of(device: jax.Device) -> int:
    """Number of the host, or of what is linked as the devices of one.

    A process is a host, unless it has one of the GPUs of a host only, as launchers such as SLURM
    have it: XLA numbers what NVLink joins as slices.
    """
    number: int = device.process_index
    return getattr(device, "slice_index", number) if device.platform == "gpu" else number


def known_device(kind: str, limits: Iterable[int | None]) -> DeviceSpec:
    """What a kind is known for, with the memory that XLA has there.

    Args:
        kind: as JAX spells it.
        limits: bytes that XLA may take of devices of the kind; None of those that do not say.

    Raises:
        MeshError: the kind is not known.
    """
    spec, said = preset_for(kind), [limit for limit in limits if limit is not None]
    if not said or min(said) < _STEP:
        return spec
    return replace(spec, memory_bytes=float(min(said) // _STEP * _STEP))
