"""Colours that people with any colour vision tell apart.

Source: Okabe and Ito, "Color Universal Design", 2008, https://jfly.uni-koeln.de/color/.
"""

from __future__ import annotations

from collections.abc import Sequence

BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SKY, RED, YELLOW, GREY = "#56B4E9", "#D55E00", "#F0E442", "#8A8A8A"

PALETTE = (BLUE, ORANGE, GREEN, PINK, SKY, RED, YELLOW)
# What tells apart those that have one colour, in the order in which the palette begins anew.
PATTERNS = (" ", "/", "x", ".", "-", "|", "\\")

_PHASES = {"forward": BLUE, "backward": ORANGE, "backward_weight": GREEN, "prepare": PINK}
_UPDATE = PINK
_STEP = BLUE


def colour(number: int) -> str:
    """Of the thing of a number."""
    return PALETTE[number % len(PALETTE)]


def pattern(number: int) -> str:
    """What is drawn over it, so that no two of the first 49 look alike."""
    return PATTERNS[number // len(PALETTE) % len(PATTERNS)]


def colours(count: int) -> list[str]:
    """Of as many things."""
    return [colour(number) for number in range(count)]


def phase_colour(phase: str) -> str:
    """Of a phase of a stage."""
    if phase.startswith("apply_"):
        return _UPDATE
    return _STEP if phase == "step" else _PHASES.get(phase, GREY)


def text_colour(fill: str) -> str:
    """Black or white, whichever stands out from a fill (WCAG's contrast ratio)."""
    light = _luminance(fill)
    return "#000000" if (light + 0.05) / 0.05 > 1.05 / (light + 0.05) else "#FFFFFF"


def _luminance(fill: str) -> float:
    channels: Sequence[float] = [int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
