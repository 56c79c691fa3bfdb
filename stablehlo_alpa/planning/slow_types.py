"""Says which products run slowly because of their type alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from stablehlo_alpa.cluster import DeviceSpec
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.planning.stage import PlannedStage

# Types of 16 bits: a model may have either.
_OTHER = {"bf16": "f16", "f16": "bf16"}
# Products with less of the FLOPs, and rates that differ by less, are left unsaid (heuristics).
_LEAST_SHARE, _LEAST_RATIO = 0.1, 2.0


def slow_types(stages: Sequence[PlannedStage]) -> list[str]:
    """Remarks on products in one type of 16 bits that run much faster in the other.

    Args:
        stages: of the step.
    """
    flops: dict[DeviceSpec, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for stage in stages:
        of_device = flops[stage.mesh.cluster.device]
        for dtype, amount in _product_flops(stage.priced, stage.solution.choice).items():
            of_device[dtype] += amount
    return [
        f"{_share(amount, by_dtype)} of the FLOPs are products in {dtype}, which {device.name} "
        f"does at {device.rate(dtype) / 1e12:.4g} TFLOP/s; in {other} it does "
        f"{device.rate(other) / 1e12:.4g}"
        for device, by_dtype in flops.items()
        for dtype, amount in by_dtype.items()
        if (other := _OTHER.get(dtype)) is not None
        and device.rate(other) >= _LEAST_RATIO * device.rate(dtype)
        and amount >= _LEAST_SHARE * sum(by_dtype.values())
    ]


def _share(amount: float, by_dtype: dict[str, float]) -> str:
    return f"{amount / sum(by_dtype.values()):.0%}"


def _product_flops(priced: PricedGraph, choice: np.ndarray) -> dict[str, float]:
    """FLOPs per device of products by their type."""
    graph = priced.graph
    found: dict[str, float] = defaultdict(float)
    rows = graph.node_offset[:-1] + np.asarray(choice, np.int64)
    for node in np.flatnonzero(graph.node_is_product):
        found[graph.node_dtype[node]] += float(graph.strategy_flops[rows[node]])
    return found
