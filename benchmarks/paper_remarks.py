"""What is known of cells of figure 7 that are far from the paper's."""

from __future__ import annotations

from collections.abc import Mapping

_ONE_NUMBER = "Numbers of micro-batches other than that of the cell were not tried."

REMARKS: Mapping[tuple[str, str, int], str] = {
    ("GPT", "inter", 16): (
        "A micro-batch is 16 sequences there; in four of it, 256 micro-batches, the step fits and "
        "takes 51.5 s, 1.12 PFLOP/s."
    ),
    ("GPT", "inter", 32): _ONE_NUMBER,
    ("GPT", "inter", 64): _ONE_NUMBER,
}
"""Family, system and devices -> a sentence; what has none is said to be not explained."""
