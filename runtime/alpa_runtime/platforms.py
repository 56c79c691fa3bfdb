"""What jax lowers a function for: the platform that will run it, wherever it is traced."""

from __future__ import annotations

from typing import Any

import jax


def platform_of(device: jax.Device) -> str:
    """``"cuda"``, ``"rocm"``, ``"tpu"`` or ``"cpu"``: what jax lowers for that is to run there."""
    if device.platform != "gpu":
        return str(device.platform)
    return "rocm" if "rocm" in str(device.client.platform_version).lower() else "cuda"


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
