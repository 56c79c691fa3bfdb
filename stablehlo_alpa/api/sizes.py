"""Sizes in bytes, written by people."""

from __future__ import annotations

import re

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


def parse_bytes(size: float | int | str) -> float:
    """Bytes of ``10e9``, ``"10GiB"`` or ``"16 GB"``.

    Raises:
        ValueError: not a size, or not positive.
    """
    if isinstance(size, str):
        match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", size.lower())
        if match is None or match[2] not in _UNITS:
            raise ValueError(f"memory size {size!r} is not a number of B, KiB, MiB, GiB, GB, ...")
        size = float(match[1]) * _UNITS[match[2]]
    if not size > 0:
        raise ValueError(f"memory size must be > 0 bytes, got {size}")
    return float(size)
