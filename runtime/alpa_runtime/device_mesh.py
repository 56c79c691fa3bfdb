"""Devices as a mesh of jax."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import AbstractMesh, Mesh

Axes = tuple[tuple[str, int], ...]
"""Names and sizes, the outermost first."""


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


def whole_mesh(meshes: Sequence[Mesh]) -> Mesh:
    """One mesh of all devices.

    Args:
        meshes: at least one. One alone is returned as it is. Of several the first axis, ``"mesh"``,
            counts them where all have the same axes; else there is one axis, ``"device"``.
    """
    if len(meshes) == 1:
        return meshes[0]
    axes = joined_axes([tuple(mesh.shape.items()) for mesh in meshes])
    return make_mesh(axes, [device for mesh in meshes for device in mesh.devices.flat])


def joined_axes(meshes: Sequence[Axes]) -> Axes:
    """The axes of `whole_mesh`, of those of its meshes."""
    if len(set(meshes)) == 1 and "mesh" not in dict(meshes[0]):
        return (("mesh", len(meshes)), *meshes[0])
    return (("device", sum(math.prod(size for _, size in axes) for axes in meshes)),)


def abstract_mesh(axes: Axes) -> AbstractMesh:
    """A mesh whose devices are elsewhere."""
    return AbstractMesh(tuple(size for _, size in axes), tuple(name for name, _ in axes))
