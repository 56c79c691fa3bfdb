"""Bytes and seconds as people read and write them."""

from __future__ import annotations

import math
import re

_PARSED = {
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
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_SECONDS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("ps", 1e-12))


def parse_bytes(size: float | int | str) -> float:
    """Bytes of ``10e9``, ``"10GiB"`` or ``"16 GB"``.

    Raises:
        ValueError: not a size, or not positive.
    """
    if isinstance(size, str):
        match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", size.lower())
        if match is None or match[2] not in _PARSED:
            raise ValueError(f"memory size {size!r} is not a number of B, KiB, MiB, GiB, GB, ...")
        size = float(match[1]) * _PARSED[match[2]]
    if not size > 0:
        raise ValueError(f"memory size must be > 0 bytes, got {size}")
    return float(size)


def format_bytes(size: float) -> str:
    """``1.24 MiB``: bytes with three digits.

    Args:
        size: bytes, of either sign.
    """
    if size < 0:
        return f"-{format_bytes(-size)}"
    power = 0
    # What rounds to 1024 of a unit is one of the next.
    while size >= 1023.5 and power < len(_BINARY) - 1:
        size, power = size / 1024, power + 1
    return f"{_digits(size)} {_BINARY[power]}"


def format_seconds(time_s: float) -> str:
    """``1.69 ms``: seconds with three digits.

    Args:
        time_s: seconds, of either sign.
    """
    if time_s < 0:
        return f"-{format_seconds(-time_s)}"
    if time_s == 0:
        return "0 s"
    # What rounds to 1000 of a unit is one of the next.
    fitting = (pair for pair in _SECONDS if time_s >= 0.99949 * pair[1])
    unit, factor = next(fitting, _SECONDS[-1])
    return f"{_digits(time_s / factor)} {unit}"


def micro_batches(count: int) -> str:
    """``1 micro-batch``, ``8 micro-batches``."""
    return f"{count} micro-batch{'es' if count != 1 else ''}"


def _digits(number: float) -> str:
    """Three digits, never with an exponent."""
    if not math.isfinite(number):
        return str(number)
    if number >= 99.95:
        return f"{number:.0f}"
    decimals = 2 if number < 9.995 else 1
    text = f"{number:.{decimals}f}"
    return text.rstrip("0").rstrip(".")
