"""Sizes of a model by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from stablehlo_alpa.errors import ModelError
from stablehlo_alpa.nearest import nearest

T = TypeVar("T")


def size_named(family: str, sizes: Mapping[str, T], name: str) -> T:
    """The sizes of that name, in whatever case.

    Raises:
        ModelError: there are none.
    """
    found = {key.lower(): value for key, value in sizes.items()}
    if name.lower() not in found:
        raise ModelError(
            f"{family} has no size {name!r}{nearest(name.lower(), found)}, sizes are {list(sizes)}"
        )
    return found[name.lower()]


def check_batch(batch: int, **sizes: int) -> None:
    """Raises ``ModelError`` unless all are 1 or more."""
    for name, value in {"batch": batch, **sizes}.items():
        if value < 1:
            raise ModelError(f"{name} must be >= 1, got {value}")
