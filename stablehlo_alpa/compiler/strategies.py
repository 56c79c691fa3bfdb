"""Strategies and sharding rules of modules, as arrays."""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass

from stablehlo_alpa import _core
from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.compiler.module import Module, Source, core_of
from stablehlo_alpa.cost import StrategyGraph
from stablehlo_alpa.errors import CompileError
from stablehlo_alpa.store import OFF, Record, Store

Classes = tuple[tuple[int, ...], ...]
"""Per tensor and dimension the number of its class, negative for none."""


def enumerate_strategies(
    module: Source,
    mesh: LogicalMesh,
    name: str,
    store: Store = OFF,
    parsed: Module | None = None,
) -> StrategyGraph:
    """The strategy graph of a module with roles on a mesh.

    Args:
        module: the module.
        mesh: the mesh.
        name: of the program, for errors.
        store: keeps graphs of texts; modules that are parsed are not looked for.
        parsed: the same module, where several meshes are asked for its text.

    Raises:
        CompileError: with the diagnostics.
    """
    platform = mesh.cluster.device.platform

    def made() -> Record:
        try:
            return _core.strategy_graph(core_of(parsed or module), mesh.axes, platform)
        except _core.CompilerError as error:
            raise CompileError(f"{name}: strategies: {error}") from error

    if not isinstance(module, str):
        return StrategyGraph.from_arrays(made())
    return StrategyGraph.from_arrays(
        store.remember("strategies", (module, mesh.axes, platform), made)
    )


class DimensionUse(enum.IntEnum):
    """How the first product that reads an argument uses one of its dimensions."""

    NONE = 0
    BATCH = 1  # all operands and the result have it, or rows come in groups of it: experts
    CONTRACTED = 2  # it is summed over: the input features of a matrix
    FREE = 3  # the argument alone brings it into the result: the output features
    LOOKED_UP = 4  # data say which of its rows are read: the vocabulary of an embedding


@dataclass(frozen=True)
class BoundaryClasses:
    """Which dimensions of a module's arguments and results are split together.

    Attributes:
        inputs, outputs: classes of their dimensions.
        sizes: per class the size that may be split, the major part of each of its dimensions.
        uses: of the dimensions of the arguments.
    """

    inputs: Classes
    outputs: Classes
    sizes: tuple[int, ...]
    uses: tuple[tuple[DimensionUse, ...], ...]

    @classmethod
    def of(cls, merged: Source) -> BoundaryClasses:
        """Those of a module whose functions are inlined."""
        arrays = _core.boundary_rule(core_of(merged))

        def tensors(side: str, entries: list[int]) -> Classes:
            offsets = arrays[f"{side}_offset"].tolist()
            return tuple(tuple(entries[a:b]) for a, b in itertools.pairwise(offsets))

        uses = tensors("input", arrays["input_use"].tolist())
        return cls(
            tensors("input", arrays["input_class"].tolist()),
            tensors("output", arrays["output_class"].tolist()),
            tuple(arrays["class_size"].tolist()),
            tuple(tuple(map(DimensionUse, tensor)) for tensor in uses),
        )
