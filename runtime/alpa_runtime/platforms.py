"""What jax lowers a function for: the platform that will run it, wherever it is traced."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jax

# Whether XLA:CPU begins what does not depend on each other at the same time.
_AT_ONCE = "xla_cpu_enable_concurrency_optimized_scheduler"


def platform_of(device: jax.Device) -> str:
    """``"cuda"``, ``"rocm"``, ``"tpu"`` or ``"cpu"``: what jax lowers for that is to run there."""
    if device.platform != "gpu":
        return str(device.platform)
    return "rocm" if "rocm" in str(device.client.platform_version).lower() else "cuda"


def share_a_cpu(devices: Sequence[jax.Device]) -> bool:
    """Whether these are several devices of a CPU, which share its threads."""
    return len(devices) > 1 and all(device.platform == "cpu" for device in devices)


def compiler_options(devices: Sequence[jax.Device]) -> dict[str, Any] | None:
    """Options that a program of some devices is compiled with, beside those of the process.

    Where they share a CPU, collectives that do not depend on each other, begun in another order on
    each device, may wait for one another for ever: they are kept in order, unless ``XLA_FLAGS``
    says what to do.
    """
    is_said = _AT_ONCE in os.environ.get("XLA_FLAGS", "")
    return {_AT_ONCE: False} if share_a_cpu(devices) and not is_said else None


def lower(traced: Any, platform: str) -> Any:
    """Lowers what ``jax.jit(f).trace`` returned.

    Args:
        traced: a ``jax.stages.Traced``.
        platform: as of `platform_of`; ``"gpu"`` for GPUs that this process does not see; empty for
            the default device of this process.

    Raises:
        NotImplementedError: jax has no lowering of a primitive for that platform.
    """
    platform, own = lowered_platform(platform), platform_of(jax.devices()[0])
    return traced.lower() if platform == own else traced.lower(lowering_platforms=(platform,))


def lowered_platform(platform: str) -> str:
    """The platform that jax lowers for, of one that `lower` takes."""
    own = platform_of(jax.devices()[0])
    if platform == "gpu":
        return own if own in ("cuda", "rocm") else "cuda"
    return platform or own
