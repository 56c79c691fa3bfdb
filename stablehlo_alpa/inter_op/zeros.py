"""The program that makes the sums over the micro-batches before the first of them."""

from __future__ import annotations

from alpa_runtime import SpmdProgram, ValueSpec

_ELEMENTS = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
}


def zeros_program(
    values: tuple[ValueSpec, ...], mesh: tuple[tuple[str, int], ...], name: str
) -> SpmdProgram:
    """Zeros of the given types, as a program for one device."""
    sizes = dict(mesh)
    types, lines = [], []
    for index, value in enumerate(values):
        element = _ELEMENTS[value.dtype]
        shape = "".join(f"{size}x" for size in value.local_shape(sizes))
        zero = "(0.0, 0.0)" if element.startswith("complex") else "0.0"
        types.append(f"tensor<{shape}{element}>")
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
