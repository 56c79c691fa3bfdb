"""FLOPs of a step as the paper's code counts them: the forward phase computed again included."""

from __future__ import annotations

from stablehlo_alpa.zoo.models.gpt import GPTSizes
from stablehlo_alpa.zoo.models.moe import MoESizes


def gpt_flops(batch: float, sizes: GPTSizes) -> float:
    """FLOPs of a GPT: 24 forward, 48 backward, 24 computed again, per B S H^2 L.

    Args:
        batch: sequences.
        sizes: of the model.
    """
    length, hidden = sizes.sequence, sizes.hidden
    tokens = batch * length
    return (
        96 * tokens * hidden**2 * sizes.layers * (1 + length / (6 * hidden))
        + 6 * tokens * hidden * sizes.vocabulary
    )


def mixture_flops(batch: float, sizes: MoESizes) -> float:
    """FLOPs of GShard's mixture, whose every second layer has experts.

    Args:
        batch: sequences.
        sizes: of the model.
    """
    tokens, hidden = batch * sizes.sequence, sizes.hidden
    attention = 8 * tokens * hidden**2 + 4 * tokens * sizes.sequence * hidden
    dense = attention + 32 * tokens * hidden**2
    # Two experts of a token, then gates, and the products that send tokens there and back.
    experts = attention + 64 * tokens * hidden**2 + 2 * tokens * hidden * sizes.experts
    experts += 4 * tokens * sizes.group + 8 * tokens * hidden * sizes.group
    layers = 4 * (dense + experts) * sizes.layers / 2
    return layers + 6 * tokens * hidden * sizes.vocabulary
