"""The compiler as functions of text, its diagnostics as exceptions."""

from __future__ import annotations

from stablehlo_alpa import _core
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


def without_locations(text: str) -> str:
    """A module that says nothing of where its operations come from."""
    return _core.run_pipeline(text, "builtin.module()", True, False)[0]
