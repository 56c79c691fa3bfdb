"""Programs that run before the first micro-batch: zeros to add to, and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from alpa_runtime import SpmdProgram, ValueSpec
from alpa_runtime.program import numpy_dtype

from stablehlo_alpa.compiler import tensor_type

_Mesh = tuple[tuple[str, int], ...]


def zeros_program(values: tuple[ValueSpec, ...], mesh: _Mesh, name: str) -> SpmdProgram:
    """Zeros of the given types, as a program for one device."""
    sizes = dict(mesh)
    constants = [
        (_zero(value.dtype), tensor_type(value.local_shape(sizes), value.dtype)) for value in values
    ]
    return SpmdProgram(_constants(constants), mesh, (), values, (), name)


def numbers_program(count: int, mesh: _Mesh) -> SpmdProgram:
    """The numbers of the micro-batches, scalars of ``uint32``."""
    constants = [(str(number), tensor_type((), "uint32")) for number in range(count)]
    values = tuple(ValueSpec((), "uint32", ()) for _ in range(count))
    return SpmdProgram(_constants(constants), mesh, (), values, (), "micro_batches")


def _zero(dtype: str) -> str:
    if dtype.startswith("complex"):
        return "(0.0, 0.0)"
    if dtype == "bool":
        return "false"
    return "0" if numpy_dtype(dtype).kind in "iu" or "int" in dtype else "0.0"


def _constants(constants: Sequence[tuple[str, str]]) -> str:
    """A module whose function returns constants."""
    types = [type_ for _, type_ in constants]
    lines = [
        f"  %{index} = stablehlo.constant dense<{value}> : {type_}"
        for index, (value, type_) in enumerate(constants)
    ]
    results = ", ".join(f"%{index}" for index in range(len(types)))
    text = "\n".join(
        [
            f"func.func public @main() -> ({', '.join(types)}) {{",
            *lines,
            f"  return {results} : {', '.join(types)}",
            "}",
        ]
    )
    return f"module {{\n{text}\n}}"
