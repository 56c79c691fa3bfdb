"""What is said where several ways of planning a step were refused for their memory."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_alpa.errors import InfeasibleError


def lack(error: InfeasibleError) -> float:
    """Bytes per device that a refused plan lacks, or that any does where none is known."""
    return (error.needed_bytes or error.least_bytes or 0.0) - (error.budget_bytes or 0.0)


def lacking(refused: Sequence[InfeasibleError]) -> list[InfeasibleError]:
    """Those of which it is known what they lack; if there are none, what they lack at least."""
    named = [error for error in refused if error.needed_bytes is not None]
    return named or [error for error in refused if error.least_bytes is not None]


def leanest(refused: Sequence[InfeasibleError]) -> InfeasibleError:
    """The refusal of what lacks least, which is as much as is known to lack of all.

    Args:
        refused: one or more, of other meshes or other forms of one step.
    """
    short = lacking(refused)
    if not short:
        return refused[0]
    best = min(short, key=lack)
    found = best.reworded(str(best))
    # Another one may do with less.
    found.least_bytes = min(
        error.least_bytes or 0.0
        for error in refused
        if error.needed_bytes is not None or error.least_bytes is not None
    )
    found.least_by_mesh = {
        mesh: min(error.least_by_mesh[mesh] for error in refused)
        for mesh in best.least_by_mesh
        if all(mesh in error.least_by_mesh for error in refused)
    }
    return found
