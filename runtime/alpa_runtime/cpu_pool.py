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
from collections.abc import MutableMapping

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
    wanted = THREADS_PER_DEVICE * num_devices
    current = environment.get(_POOL_VARIABLE, "")
    has_enough = current.isdecimal() and int(current) >= 2 * num_devices
    if has_enough:
        return True
    if not client_exists:
        environment[_POOL_VARIABLE] = str(wanted)
        return True
    cores = os.cpu_count() or 1
    if num_devices <= cores // 2:
        return True
    if num_devices > cores:
        warnings.warn(
            f"{num_devices} CPU devices share {cores} cores and the CPU client was made without "
            f"{_POOL_VARIABLE}: many launches in flight may stall; set {_POOL_VARIABLE}={wanted} "
            "before jax makes its first array",
            RuntimeWarning,
            stacklevel=2,
        )
    return False
