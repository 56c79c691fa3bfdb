"""What is known of cells of figure 7 that are far from the paper's."""

from __future__ import annotations

from collections.abc import Mapping

REMARKS: Mapping[tuple[str, str, int], str] = {}
"""Family, system and devices -> a sentence; what has none is said to be not explained."""
