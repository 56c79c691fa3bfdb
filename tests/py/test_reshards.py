"""Every reshard of a tensor leaves its value as it was, on meshes of one to three axes."""

import itertools

import jax
import numpy as np
import pytest
from alpa_runtime import SpmdProgram, ValueSpec, compile_spmd

from stablehlo_alpa import _core
from stablehlo_alpa.compiler.notation import parse_sharding

MESHES = {"8": (8,), "2x4": (2, 4), "2x2x2": (2, 2, 2)}
SHAPE = (8, 16)


def notations(num_axes: int) -> list[str]:
    """All shardings of a matrix."""
    found = []
    for places in itertools.product((-1, 0, 1), repeat=num_axes):
        axes = ["".join(str(a) for a in range(num_axes) if places[a] == d) for d in (0, 1)]
        found.append("".join("S" + text if text else "R" for text in axes))
    return found


def planned_module(source: str, targets: list[str], mesh: tuple[tuple[str, int], ...]) -> str:
    """A function that returns its argument in every target sharding."""
    tensor = "tensor<8x16xf32>"
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh)
    results = ", ".join(f"{tensor} {{alpa.sharding = #alpa.sharding<{t}>}}" for t in targets)
    needed = ", ".join(f"#alpa.sharding<{t}>" for t in targets)
    lines = [
        f"module attributes {{alpa.mesh = #alpa.mesh<[{axes}]>}} {{",
        f"func.func public @main(%a: {tensor} {{alpa.sharding = #alpa.sharding<{source}>}})"
        f" -> ({results}) {{",
        f"return {{alpa.operands = [{needed}]}} {', '.join(['%a'] * len(targets))}"
        f" : {', '.join([tensor] * len(targets))}",
        "}}",
    ]
    return "\n".join(lines)


@pytest.mark.parametrize("platform", ["cpu", pytest.param("tpu", marks=pytest.mark.matrix)])
@pytest.mark.parametrize("sizes", MESHES.values(), ids=MESHES)
def test_every_reshard_keeps_the_value(sizes: tuple[int, ...], platform: str) -> None:
    mesh = tuple(zip("xyz", sizes, strict=False))
    names = [name for name, _ in mesh]
    targets = notations(len(sizes))
    value = np.arange(np.prod(SHAPE), dtype=np.float32).reshape(SHAPE)

    def spec(sharding: str) -> ValueSpec:
        return ValueSpec(shape=SHAPE, dtype="float32", axes=parse_sharding(sharding, names))

    for source in targets:
        text = planned_module(source, targets, mesh)
        local, _ = _core.run_pipeline(
            text, f"builtin.module(alpa-insert-reshards,alpa-spmd-pipeline{{platform={platform}}})"
        )
        program = SpmdProgram(
            text=local,
            mesh=mesh,
            inputs=(spec(source),),
            outputs=tuple(map(spec, targets)),
            name="reshard",
        )
        results = compile_spmd(program, jax.devices())(value)
        for target, result in zip(targets, results, strict=True):
            np.testing.assert_array_equal(result, value, err_msg=f"{source} -> {target}")
