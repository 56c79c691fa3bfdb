"""Between what the search for stages proved and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bracket:
    """Latency of a plan, and of the best that there can be.

    Both are by the prices of stages, and the search's own measure: the latency of
    `inter_op.stage_search`, and of the best the paper's Eq. 2, which is never above it, or what
    `inter_op.once_bounds` proves. The plan's step time is simulated, sends included. Of a plan of
    one stage that was not searched for it is the solver's measure, the seconds of its
    operators and of what is resharded between them, and the best is that of all meshes. Collectives
    are waited for in both, also where `Overlap.products` has them done beside products.

    Attributes:
        latency_s: of the pipeline found. Seconds of a step.
        bound_s: no partition into stages, with the same layers, number of micro-batches and
            schedule, takes less; where stages were given, no strategies of theirs.
        num_solved: stages that were solved exactly.
    """

    latency_s: float
    bound_s: float
    num_solved: int = 0

    @property
    def gap(self) -> float:
        """How far the best can be below what was found, as a part of it."""
        return max(0.0, 1 - self.bound_s / self.latency_s) if self.latency_s > 0 else 0.0


def of_stages(latency_s: Sequence[float], least_s: Sequence[float]) -> Bracket | None:
    """That of stages that were not searched for; None of several, of which nothing is proved.

    Args:
        latency_s: of each stage. Seconds of a step.
        least_s: seconds that each is proved to take at the least.
    """
    if len(latency_s) != 1 or len(least_s) != 1:
        return None
    return Bracket(latency_s[0], min(latency_s[0], least_s[0]))
