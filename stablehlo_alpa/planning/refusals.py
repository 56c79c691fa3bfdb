"""What is said where several ways of planning a step were refused for their memory."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_alpa.errors import InfeasibleError


def lack(error: InfeasibleError) -> float:
    """Bytes per device that a refused plan lacks."""
    return (error.needed_bytes or 0.0) - (error.budget_bytes or 0.0)


def leanest(refused: Sequence[InfeasibleError]) -> InfeasibleError:
    """The refusal of what lacks least, which is as much as is known to lack of all.

    Args:
        refused: one or more, of other meshes or other forms of one step.
    """
    short = [error for error in refused if error.needed_bytes is not None]
    if not short:
        return refused[0]
    found = min(short, key=lack)
    # Another one may do with less.
    found.least_bytes = min(error.least_bytes or 0.0 for error in short)
    return found
