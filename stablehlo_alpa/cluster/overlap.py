"""Communication beside computation: how much of it, and what it costs both."""

from __future__ import annotations

from dataclasses import dataclass

from stablehlo_alpa.errors import MeshError

# Galvatron, `galvatron/profile_hardware/hardware_configs/overlap_coefficient.json`: how many times
# as long computing takes while an all-reduce runs beside it, measured on hosts of A100.
MEASURED_SLOWDOWN = 1.126


@dataclass(frozen=True)
class Overlap:
    r"""Shares of collectives that run beside computation instead of before it.

    A collective of t seconds, of which the share s runs beside computation that it slows down by
    σ, adds ``t (1 - s) + t s (1 - 1/σ) = t (1 - s/σ)`` to a step. That is linear, so that the
    search stays exact; communication that takes longer than what it runs beside is priced too low.

    Attributes:
        gradients: of reductions that only the update of the state waits for, which run beside the
            rest of the backward phase.
        parameters: of gathers of parameters, which run beside the layers before (ZeRO-3).
        slowdown: σ.
        products: of what is sent from neighbour to neighbour where an all-gather before a product,
            or a reduce-scatter behind one, is done block by block beside it. That is done where it
            is faster by its own price (`cost.product_rings`); at 0 nowhere.
    """

    gradients: float = 0.8
    parameters: float = 0.8
    slowdown: float = MEASURED_SLOWDOWN
    products: float = 0.0

    def __post_init__(self) -> None:
        for name in ("gradients", "parameters", "products"):
            if not 0 <= getattr(self, name) <= 1:
                raise MeshError(f"overlap: {name} must be in [0, 1], got {getattr(self, name)}")
        if not self.slowdown >= 1:
            raise MeshError(f"overlap: slowdown must be >= 1, got {self.slowdown}")

    def added(self, share: float) -> float:
        """Part of its seconds that a collective adds to a step.

        Args:
            share: of it that runs beside computation.
        """
        return 1 - share / self.slowdown
