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
        self._text: str | None = text
        self._parsed: _core.Module | None = None
        self._parse()

    @classmethod
    def kept(cls, text: str, name: str) -> Module:
        """One that the compiler has printed before, which is parsed when it is first needed."""
        module = cls.__new__(cls)
        module.name, module._text, module._parsed = name, text, None
        return module

    def _parse(self) -> _core.Module:
        if self._parsed is None:
            assert self._text is not None
            try:
                self._parsed = _core.Module(self._text)
            except _core.CompilerError as error:
                raise CompileError(f"{self.name}: {error}") from error
        # Whoever has it may change it.
        self._text = None
        return self._parsed

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
            return self._parse().run(f"builtin.module({pipeline})")
        except _core.CompilerError as error:
            raise CompileError(f"{self.name}: {error}") from error

    def text(self, *, locations: bool = True) -> str:
        """As the compiler prints it.

        Args:
            locations: whether it says where operators come from.
        """
        if self._text is not None and locations:
            return self._text
        return self._parse().text(True, locations)

    def clone(self) -> Module:
        """A copy."""
        if self._text is not None:
            return self.kept(self._text, self.name)
        return self._with(self._parse().clone(), self.name)

    def become(self, other: Module) -> None:
        """Takes what another one has, which is not to be changed any more."""
        self._text, self._parsed = other._text, other._parsed

    def submodules(self) -> Mapping[str, Module]:
        """Copies of the modules within it, by name, in order."""
        nested = self._parse().submodules().items()
        return {name: self._with(core, f"{self.name} {name}") for name, core in nested}

    @classmethod
    def _with(cls, core: _core.Module, name: str) -> Module:
        module = cls.__new__(cls)
        module.name, module._text, module._parsed = name, None, core
        return module

    @property
    def core(self) -> _core.Module:
        """As the compiler takes it."""
        return self._parse()


def without_locations(text: str) -> str:
    """A module that says nothing of where its operations come from."""
    return _core.run_pipeline(text, "builtin.module()", True, False)[0]


Source: TypeAlias = str | Module
"""A module, as text or parsed."""


def core_of(source: Source) -> str | _core.Module:
    """As the compiler takes it."""
    return source.core if isinstance(source, Module) else source
