"""Strategies and sharding rules of modules, as arrays."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from stablehlo_alpa import _core
from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.cost import StrategyGraph
from stablehlo_alpa.errors import CompileError

Classes = tuple[tuple[int, ...], ...]
"""Per tensor and dimension the number of its class, negative for none."""


def enumerate_strategies(text: str, mesh: LogicalMesh, name: str) -> StrategyGraph:
    """The strategy graph of a module with roles on a mesh.

    Raises:
        CompileError: with the diagnostics.
    """
    try:
        return StrategyGraph.from_arrays(_core.strategy_graph(text, mesh.axes))
    except _core.CompilerError as error:
        raise CompileError(f"{name}: strategies: {error}") from error


@dataclass(frozen=True)
class BoundaryClasses:
    """Which dimensions of a module's arguments and results are split together.

    Attributes:
        inputs, outputs: classes of their dimensions.
        sizes: per class the size that may be split, the major part of each of its dimensions.
    """

    inputs: Classes
    outputs: Classes
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, merged: str) -> BoundaryClasses:
        """Those of a module whose functions are inlined."""
        arrays = _core.boundary_rule(merged)

        def tensors(side: str) -> Classes:
            classes, offsets = arrays[f"{side}_class"].tolist(), arrays[f"{side}_offset"].tolist()
            return tuple(tuple(classes[a:b]) for a, b in itertools.pairwise(offsets))

        return cls(tensors("input"), tensors("output"), tuple(arrays["class_size"].tolist()))
