"""The thread pool of the CPU client.

Every virtual CPU device lets 32 computations be in flight and waits for a free place *inside* a
thread of the pool. With the default pool (as many threads as devices) waiting launches can occupy
every thread, so that the last participant of a collective never runs and XLA aborts the process.
Two threads per device suffice for one issuing thread; four leave room for several meshes
(measured with 8 devices: 40 launches ahead pass and 400 abort by default, none abort with 16 or 32
threads).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, MutableMapping

from alpa_runtime.errors import RuntimeMeshError

THREADS_PER_DEVICE = 4

_POOL_VARIABLE = "PJRT_NPROC"


def ensure_cpu_pool(
    num_devices: int,
    *,
    client_exists: bool,
    environment: MutableMapping[str, str] | None = None,
) -> bool:
    """Makes the pool of the CPU client large enough for ``num_devices`` devices.

    Args:
        num_devices: devices that the client will have or has.
        client_exists: whether the CPU client was already made; the pool is fixed then.
        environment: where the size of the pool is written; ``os.environ`` when not given.

    Returns:
        whether the pool is known to be large enough.
    """
    environment = os.environ if environment is None else environment
    if _is_large(num_devices, environment):
        return True
    if not client_exists:
        environment[_POOL_VARIABLE] = str(THREADS_PER_DEVICE * num_devices)
        return True
    if num_devices > (os.cpu_count() or 1):
        warnings.warn(
            f"{_complaint(num_devices)}: many launches in flight may stall; {_remedy(num_devices)}",
            RuntimeWarning,
            stacklevel=2,
        )
    return False


def require_cpu_pool(num_devices: int, *, environment: Mapping[str, str] | None = None) -> None:
    """Refuses a CPU client on which programs of several meshes can deadlock.

    Args:
        num_devices: devices of the client.
        environment: ``os.environ`` when not given.

    Raises:
        RuntimeMeshError: the devices share fewer cores, and the pool was made too small for them.
    """
    environment = os.environ if environment is None else environment
    if not _is_large(num_devices, environment) and num_devices > (os.cpu_count() or 1):
        raise RuntimeMeshError(
            f"{_complaint(num_devices)}: programs of several meshes can deadlock; "
            f"{_remedy(num_devices)}"
        )


def _is_large(num_devices: int, environment: Mapping[str, str]) -> bool:
    current = environment.get(_POOL_VARIABLE, "")
    if current.isdecimal() and int(current) >= 2 * num_devices:
        return True
    return num_devices <= (os.cpu_count() or 1) // 2


def _complaint(num_devices: int) -> str:
    return (
        f"{num_devices} CPU devices share {os.cpu_count() or 1} cores and the CPU client was made "
        f"without {_POOL_VARIABLE}"
    )


def _remedy(num_devices: int) -> str:
    wanted = THREADS_PER_DEVICE * num_devices
    return f"set {_POOL_VARIABLE}={wanted} before jax makes its first array"
