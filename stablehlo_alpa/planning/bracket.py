"""Between what the search for stages proved and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


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
        latency_s: of the plan. Seconds of a step.
        bound_s: no partition into stages takes less, with the same layers and schedule; where
            stages were given, no strategies of theirs. Where several numbers of micro-batches and
            recomputations were tried, it holds for all that were, those left out that were refused
            for their memory.
        num_solved: stages that were solved exactly.
    """

    latency_s: float
    bound_s: float
    num_solved: int = 0

    def of(self, latency_s: float) -> Bracket:
        """The same of another plan of the same step, which takes so long."""
        return replace(self, latency_s=latency_s, bound_s=min(self.bound_s, latency_s))

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
