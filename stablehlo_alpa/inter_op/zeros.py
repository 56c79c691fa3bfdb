"""The program that makes the sums over the micro-batches before the first of them."""

from __future__ import annotations

from alpa_runtime import SpmdProgram, ValueSpec

from stablehlo_alpa.planning.tensor_type import tensor_type


def zeros_program(
    values: tuple[ValueSpec, ...], mesh: tuple[tuple[str, int], ...], name: str
) -> SpmdProgram:
    """Zeros of the given types, as a program for one device."""
    sizes = dict(mesh)
    types, lines = [], []
    for index, value in enumerate(values):
        zero = "(0.0, 0.0)" if value.dtype.startswith("complex") else "0.0"
        types.append(tensor_type(value.local_shape(sizes), value.dtype))
        lines.append(f"  %{index} = stablehlo.constant dense<{zero}> : {types[-1]}")
    results = ", ".join(f"%{index}" for index in range(len(values)))
    text = "\n".join(
        [
            f"func.func public @main() -> ({', '.join(types)}) {{",
            *lines,
            f"  return {results} : {', '.join(types)}",
            "}",
        ]
    )
    return SpmdProgram(f"module {{\n{text}\n}}", mesh, (), values, (), name)
