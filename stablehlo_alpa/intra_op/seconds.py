"""Seconds of what computes and communicates."""

from __future__ import annotations


class Seconds:
    """Seconds per step of an operator, or of several: the dataclasses that have them say of what.

    Attributes:
        compute_s: of computing.
        communication_s: of collectives.
        reshard_s: of resharding.
    """

    compute_s: float
    communication_s: float
    reshard_s: float

    @property
    def total_s(self) -> float:
        """Seconds per step in all."""
        return self.compute_s + self.communication_s + self.reshard_s
