"""Volumes in, seconds out: the strategy graph and the cost model that prices it."""

from stablehlo_alpa.cost.collective import added_seconds, collective_seconds, group_seconds
from stablehlo_alpa.cost.kinds import CollectiveKind
from stablehlo_alpa.cost.operators import Products, operator_seconds
from stablehlo_alpa.cost.pricing import PricedGraph, Volume, may_be_once, price, price_once, volumes
from stablehlo_alpa.cost.product import product_seconds, shaped_product_seconds
from stablehlo_alpa.cost.product_rings import RingSeconds, RingVolumes, ring_seconds
from stablehlo_alpa.cost.strategy_graph import HANDED_ON, NO_CLASS, UNSPLIT, StrategyGraph
from stablehlo_alpa.cost.transfer import (
    between_seconds,
    link_seconds,
    network_transfer_seconds,
    transfer_seconds,
)

__all__ = [
    "HANDED_ON",
    "NO_CLASS",
    "UNSPLIT",
    "CollectiveKind",
    "PricedGraph",
    "Products",
    "RingSeconds",
    "RingVolumes",
    "StrategyGraph",
    "Volume",
    "added_seconds",
    "between_seconds",
    "collective_seconds",
    "group_seconds",
    "link_seconds",
    "may_be_once",
    "network_transfer_seconds",
    "operator_seconds",
    "price",
    "price_once",
    "product_seconds",
    "ring_seconds",
    "shaped_product_seconds",
    "transfer_seconds",
    "volumes",
]
