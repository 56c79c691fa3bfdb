"""How often loops run of which the program does not say it."""

from __future__ import annotations

import operator

# Costs are weighed by 64-bit integers of the compiler.
_LIMIT = 1 << 63


def check_trip_count_hint(hint: int | None) -> None:
    """Raises ``ValueError`` unless a hint is None or an integer of at least 1."""
    if hint is None:
        return
    try:
        count = 0 if isinstance(hint, bool) else operator.index(hint)
    except TypeError:
        count = 0
    if not 1 <= count < _LIMIT:
        raise ValueError(f"trip_count_hint must be None or an integer >= 1, got {hint!r}")
