"""Modules that stay parsed while passes run on them and reports are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from stablehlo_alpa import _core
from stablehlo_alpa.errors import CompileError


class Module:
    """A module in a context of its own; what is done to it, and said of it, takes turns.

    Attributes:
        name: of the program, for errors.
    """

    def __init__(self, text: str, name: str) -> None:
        """Parses a module.

        Raises:
            CompileError: it is none.
        """
        self.name = name
        try:
            self._core = _core.Module(text)
        except _core.CompilerError as error:
            raise CompileError(f"{name}: {error}") from error

    def run(self, pipeline: str) -> list[str]:
        """Runs passes on it.

        Args:
            pipeline: passes as ``mlir-opt`` takes them.

        Returns:
            the remarks.

        Raises:
            CompileError: with the diagnostics; the module is lost.
        """
        try:
            return self._core.run(f"builtin.module({pipeline})")
        except _core.CompilerError as error:
            raise CompileError(f"{self.name}: {error}") from error

    def text(self, *, locations: bool = True) -> str:
        """As the compiler prints it.

        Args:
            locations: whether it says where operators come from.
        """
        return self._core.text(True, locations)

    def clone(self) -> Module:
        """A copy."""
        return self._with(self._core.clone(), self.name)

    def submodules(self) -> Mapping[str, Module]:
        """Copies of the modules within it, by name, in order."""
        nested = self._core.submodules().items()
        return {name: self._with(core, f"{self.name} {name}") for name, core in nested}

    @classmethod
    def _with(cls, core: _core.Module, name: str) -> Module:
        module = cls.__new__(cls)
        module.name, module._core = name, core
        return module

    @property
    def core(self) -> _core.Module:
        """As the compiler takes it."""
        return self._core


def without_locations(text: str) -> str:
    """A module that says nothing of where its operations come from."""
    return _core.run_pipeline(text, "builtin.module()", True, False)[0]


Source: TypeAlias = str | Module
"""A module, as text or parsed."""


def core_of(source: Source) -> str | _core.Module:
    """As the compiler takes it."""
    return source.core if isinstance(source, Module) else source
