"""The border to the C++ compiler, the only one besides the solver: text in, text and arrays out."""

from stablehlo_alpa.compiler.measures import FoundRings, Live, Traffic, Work
from stablehlo_alpa.compiler.module import Module, Source, without_locations
from stablehlo_alpa.compiler.notation import format_sharding, parse_partial_sharding, parse_sharding
from stablehlo_alpa.compiler.signature import Signature, Values
from stablehlo_alpa.compiler.strategies import BoundaryClasses, DimensionUse, enumerate_strategies
from stablehlo_alpa.compiler.tensor_types import parse_tensor_type, tensor_bytes, tensor_type

__all__ = [
    "BoundaryClasses",
    "DimensionUse",
    "FoundRings",
    "Live",
    "Module",
    "Signature",
    "Source",
    "Traffic",
    "Values",
    "Work",
    "enumerate_strategies",
    "format_sharding",
    "parse_partial_sharding",
    "parse_sharding",
    "parse_tensor_type",
    "tensor_bytes",
    "tensor_type",
    "without_locations",
]
