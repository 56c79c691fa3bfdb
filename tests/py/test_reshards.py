"""Every reshard of a tensor leaves its value as it was, on meshes of one to three axes."""

import functools
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


GATHER = (
    '%0 = "stablehlo.gather"(%a, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],'
    " collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,"
    " slice_sizes = array<i64: 1, 16>}> {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>],"
    " alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<b=[0]>}"
    " : (tensor<8x16xf32>, tensor<2x1xi32>) -> tensor<2x16xf32>"
)
SLICE = (
    '%0 = "stablehlo.slice"(%a) <{start_indices = array<i64: 3, 0>, limit_indices = array<i64: 5,'
    " 16>, strides = array<i64: 1, 1>}> {alpa.operands = [#alpa.sharding<S0R>],"
    " alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<a=[0]>}"
    " : (tensor<8x16xf32>) -> tensor<2x16xf32>"
)
RESHARD = "%0 = alpa.reshard %a from <{}> to <RRP0> : tensor<8x16xf32>"
SHARES: dict[str, tuple[str, str, slice | list[int]]] = {
    "whole": ("RR", RESHARD.format("RR"), slice(None)),
    "blocks": ("S0R", RESHARD.format("S0R"), slice(None)),
    "slice": ("S0R", SLICE, slice(3, 5)),
    "gather": ("S0R", GATHER, [6, 1]),
}


@pytest.mark.parametrize("name", SHARES)
def test_shares_of_what_is_moved_add_up_to_the_bit(name: str) -> None:
    """Added up by numpy: XLA:CPU begins sums over devices with 0.0, which makes that of -0.0."""
    source, operator, rows = SHARES[name]
    value = np.where(np.arange(128).reshape(8, 16) % 3, -0.0, 0.0).astype(np.float32)
    value[:, 5] = np.nan, np.inf, -np.inf, 1e-45, -1e-45, 3e38, -3e38, 1
    expected = value[rows]
    part = f"tensor<{len(expected)}x16xf32>"
    text = f"""module attributes {{alpa.mesh = #alpa.mesh<["x"=8]>}} {{
func.func public @main(%a: tensor<8x16xf32> {{alpa.sharding = #alpa.sharding<{source}>}},
  %rows: tensor<2x1xi32> {{alpa.sharding = #alpa.sharding<RR>}})
  -> ({part} {{alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<RRP0>}}) {{
{operator}
return {{alpa.operands = [#alpa.sharding<RRP0>], alpa.results = []}} %0 : {part}
}}}}"""
    local, _ = _core.run_pipeline(text, "builtin.module(alpa-lower-to-spmd,alpa-verify-spmd)")
    program = SpmdProgram(
        text=local,
        mesh=(("x", 8),),
        inputs=(
            ValueSpec((8, 16), "float32", parse_sharding(source, ["x"])),
            ValueSpec((2, 1), "int32", ((), ())),
        ),
        outputs=(ValueSpec(expected.shape, "float32", ((), ()), partial=("x",)),),
        name="shares",
    )
    (shares,) = compile_spmd(program, jax.devices())(value, np.array([[6], [1]], np.int32))
    found = functools.reduce(np.add, np.asarray(shares))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    np.testing.assert_array_equal(found, expected)
