"""Which strategies split the work of an operator."""

from __future__ import annotations

from stablehlo_alpa.cost.strategy_graph import Bool, Float

# The shortest axis halves the work. What follows an operator (the sum that makes the gradient of
# a bias) may be whole under a strategy that splits the operator itself: less than half, more than
# nothing. Heuristic.
_SLACK = 1.5


def splits_most(flops: Float) -> Bool:
    """bool[S]: strategies that split an operator's work the most, up to what follows it.

    Args:
        flops: float64[S] FLOPs per device under each strategy, S > 0.
    """
    mask: Bool = flops <= _SLACK * flops.min()
    return mask
