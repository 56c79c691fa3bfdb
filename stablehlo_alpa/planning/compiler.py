"""The compiler as functions of text, its diagnostics as exceptions."""

from __future__ import annotations

import stablehlo_alpa._core as _core
from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.cost import StrategyGraph
from stablehlo_alpa.errors import CompileError


def run_passes(text: str, pipeline: str, name: str) -> tuple[str, list[str]]:
    """Runs passes on a module.

    Args:
        text: the module.
        pipeline: passes as ``mlir-opt`` takes them.
        name: of the program, for the error.

    Returns:
        the module and the remarks.

    Raises:
        CompileError: with the diagnostics.
    """
    try:
        result, remarks = _core.run_pipeline(text, pipeline)
    except _core.CompilerError as error:
        raise CompileError(f"{name}: {error}") from error
    return result, list(remarks)


def enumerate_strategies(text: str, mesh: LogicalMesh, name: str) -> StrategyGraph:
    """The strategy graph of a module with roles on a mesh.

    Raises:
        CompileError: with the diagnostics.
    """
    try:
        return StrategyGraph.from_arrays(_core.strategy_graph(text, mesh.axes))
    except _core.CompilerError as error:
        raise CompileError(f"{name}: strategies: {error}") from error
