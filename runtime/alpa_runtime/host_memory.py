"""Values that lie in the memory of the host, beside the device that computes with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

HOST = "pinned_host"
"""What jax calls that memory."""

ON_HOST = NamedSharding(AbstractMesh((), ()), PartitionSpec(), memory_kind=HOST)
"""The sharding of a ``ShapeDtypeStruct`` whose value lies there, on no device."""


def is_on_host(value: Any) -> bool:
    """Whether a value of this type, a jax type or a ``ShapeDtypeStruct``, lies there."""
    if isinstance(value, jax.ShapeDtypeStruct):
        return is_away(value.sharding)
    return getattr(value, "memory_space", None) == jax.memory.Space.Host


def is_away(sharding: Any) -> bool:
    """Whether what has this sharding, or None, lies there."""
    kind = getattr(sharding, "memory_kind", None)
    return kind is not None and bool(kind.endswith("host"))


def type_of(value: Any, shape: Sequence[int] | None = None) -> jax.ShapeDtypeStruct:
    """Shape, dtype, weak type and memory of a value, on no device.

    Args:
        value: its type.
        shape: another one.
    """
    return jax.ShapeDtypeStruct(
        value.shape if shape is None else tuple(shape),
        value.dtype,
        weak_type=bool(getattr(value, "weak_type", False)),
        sharding=ON_HOST if is_on_host(value) else None,
    )
