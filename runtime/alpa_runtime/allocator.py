"""What XLA's allocator may take of a device, beside what a plan needs there."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import jax


def memory_limit(device: jax.Device) -> int | None:
    """Bytes that the allocator may take of a device of this process; None if it does not say."""
    if device.process_index != jax.process_index():
        return None
    try:
        stats = device.memory_stats()
    except jax.errors.JaxRuntimeError:
        # A device that is only compiled for.
        return None
    return stats.get("bytes_limit") if stats else None


def warn_of_limits(name: str, needed: Sequence[int], limits: Sequence[int | None]) -> None:
    """Says which mesh is likely to run out of memory, before it does.

    Args:
        name: of the plan.
        needed: per mesh bytes per device at the peak, as the backend counts them.
        limits: per mesh what a device has; None where that is not known.
    """
    for mesh, (peak, limit) in enumerate(zip(needed, limits, strict=True)):
        if limit is not None and peak > limit:
            warnings.warn(
                f"{name} needs {peak / 2**30:.3g} GiB per device of mesh {mesh} at the peak, XLA "
                f"may take {limit / 2**30:.3g} GiB there: of a GPU it takes as much as "
                "XLA_CLIENT_MEM_FRACTION says (0.75 where it says nothing), and a plan with that "
                "much as memory_budget= takes less",
                RuntimeWarning,
                stacklevel=3,
            )
