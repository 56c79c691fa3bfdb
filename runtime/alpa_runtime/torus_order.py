"""The order in which devices of a torus are numbered."""

from __future__ import annotations

import math
from collections.abc import Iterable

import jax


def torus_shape(devices: Iterable[jax.Device]) -> tuple[int, ...] | None:
    """Devices along each axis of the box of a torus that TPUs fill, axes of one left out.

    None of other devices, and where they fill no box: a part of a slice, several slices, or chips
    whose cores are devices of their own.
    """
    devices = tuple(devices)
    if not all(one.platform == "tpu" and hasattr(one, "coords") for one in devices):
        return None
    corners = [tuple(one.coords) for one in devices]
    slices = {getattr(one, "slice_index", 0) for one in devices}
    sides = [sorted(set(along)) for along in zip(*corners, strict=True)]
    has_gaps = any(side[-1] - side[0] + 1 != len(side) for side in sides)
    is_full = len(set(corners)) == len(corners) == math.prod(map(len, sides))
    if len(slices) > 1 or has_gaps or not is_full:
        return None
    return tuple(len(side) for side in sides if len(side) > 1) or (1,)


def in_torus_order(devices: Iterable[jax.Device]) -> tuple[jax.Device, ...]:
    """Devices row-major by where they are on their torus, as plans number them.

    ``jax.devices()`` goes from host to host, so that the axes of a mesh made of it are not those
    of the torus, and XLA has one ring where it could have several. Others than TPUs that fill a box
    stay as they are.
    """
    devices = tuple(devices)
    if torus_shape(devices) is None:
        return devices
    return tuple(sorted(devices, key=lambda one: tuple(one.coords)))
