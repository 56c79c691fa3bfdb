"""What is known of cells of figure 7 that are far from the paper's."""

from __future__ import annotations

from collections.abc import Mapping

_EMBEDDING = (
    "The first stage keeps a copy of the embedding table in f16 for every micro-batch in flight, "
    "where one would do for all"
)

REMARKS: Mapping[tuple[str, str, int], str] = {
    ("GPT", "inter", 8): f"{_EMBEDDING}: 1.71 GiB for the seven others, more than what lacks.",
    ("GPT", "inter", 16): f"{_EMBEDDING}: 5.86 GiB for the fifteen others, half of what lacks.",
}
"""Family, system and devices -> a sentence; what has none is said to be not explained."""
