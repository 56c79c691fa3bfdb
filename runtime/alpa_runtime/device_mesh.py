"""Devices as a mesh of jax."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import Mesh


def make_mesh(axes: Sequence[tuple[str, int]], devices: Sequence[jax.Device]) -> Mesh:
    """A mesh of devices.

    Args:
        axes: names and sizes; none for a single device.
        devices: as many as the mesh has, in the order of the flattened mesh.
    """
    # np.array would try to iterate over the devices.
    flat = np.empty(len(devices), dtype=object)
    flat[:] = devices
    return Mesh(flat.reshape([size for _, size in axes]), [name for name, _ in axes])
