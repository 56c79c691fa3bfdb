"""Automatic parallelisation of JAX functions and StableHLO programs.

>>> import stablehlo_alpa
>>> @stablehlo_alpa.parallelize
... def train_step(state, batch): ...

Names are imported when they are first used: the solver takes longer to import than jax. They are
listed in ``__init__.pyi``, which type checkers read and this module too.
"""

from __future__ import annotations

import ast
import importlib
from importlib import resources
from typing import Any

__version__ = "0.1.0"


def _public_names() -> dict[str, str]:
    """The module of every public name."""
    stub = resources.files(__name__).joinpath("__init__.pyi").read_text(encoding="utf-8")
    return {
        alias.name: node.module
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


_MODULES = _public_names()

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _MODULES[name]
    if module == __name__:
        return importlib.import_module(f"{module}.{name}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *globals()])
