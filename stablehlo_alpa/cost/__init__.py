"""Volumes in, seconds out: the strategy graph and the cost model that prices it."""

from stablehlo_alpa.cost.collective import CollectiveKind, collective_seconds
from stablehlo_alpa.cost.pricing import PricedGraph, Volume, price, volumes
from stablehlo_alpa.cost.strategy_graph import StrategyGraph

__all__ = [
    "CollectiveKind",
    "PricedGraph",
    "StrategyGraph",
    "Volume",
    "collective_seconds",
    "price",
    "volumes",
]
