"""Per-device programs on meshes of virtual CPU devices, from hand-written local modules."""

import re
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alpa_runtime import (
    InputError,
    LocalExecutable,
    ProgramError,
    RuntimeMeshError,
    SpmdProgram,
    ValueSpec,
    compile_spmd,
    ensure_cpu_pool,
)
from alpa_runtime.cpu_pool import require_cpu_pool
from jax.sharding import Mesh, NamedSharding, PartitionSpec

MESH = (("x", 2), ("y", 4))

ALL_REDUCE = """
  %sum = "stablehlo.all_reduce"(%a) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids,
      replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
"""


def value(dtype: str, *dims: tuple[int, str], **more: Any) -> ValueSpec:
    """A value whose dimensions are pairs of size and axes, e.g. (8, "xy")."""
    return ValueSpec(
        tuple(size for size, _ in dims), dtype, tuple(tuple(axes) for _, axes in dims), **more
    )


def spec_of(array: jax.Array) -> PartitionSpec:
    assert isinstance(array.sharding, NamedSharding)
    return array.sharding.spec


def module(arguments: str, results: str, body: str, extra: str = "") -> str:
    return (
        f"module {{\nfunc.func public @main({arguments}) -> ({results}) {{\n{body}\n}}\n{extra}}}"
    )


def reduce_program(**more: Any) -> SpmdProgram:
    text = module(
        "%a: tensor<4x8xf32>",
        "tensor<4x8xf32>, tensor<1xui32>",
        ALL_REDUCE
        + """
        %id = stablehlo.partition_id : tensor<ui32>
        %ids = stablehlo.reshape %id : (tensor<ui32>) -> tensor<1xui32>
        return %sum, %ids : tensor<4x8xf32>, tensor<1xui32>""",
    )
    a = value("float32", (32, "xy"), (8, ""))
    return SpmdProgram(text, MESH, (a,), (a, value("uint32", (8, "xy"))), name="reduce", **more)


def elementwise(dtype: str, mlir: str, op: str, **more: Any) -> LocalExecutable:
    """One binary operation on a vector split over every device."""
    text = module(
        f"%a: tensor<2x{mlir}>, %b: tensor<2x{mlir}>",
        f"tensor<2x{mlir}>",
        f"%0 = stablehlo.{op} %a, %b : tensor<2x{mlir}>\nreturn %0 : tensor<2x{mlir}>",
    )
    v = value(dtype, (16, "xy"))
    return compile_spmd(SpmdProgram(text, MESH, (v, v), (v,), **more), jax.devices())


def test_what_xla_refuses_of_a_whole_program_says_what_does_not_need_it() -> None:
    text = module(
        "%a: tensor<16xf32>",
        "tensor<16xf32>",
        "%0 = stablehlo.custom_call @nobody_has_this(%a) : (tensor<16xf32>) -> tensor<16xf32>\n"
        "return %0 : tensor<16xf32>",
    )
    a = value("float32", (16, "xy"))
    program = SpmdProgram(text, MESH, (a,), (a,), name="step", is_global=True)
    said = r'step: XLA cannot .* backend="alpa" .*nobody_has_this'
    with pytest.raises(jax.errors.JaxRuntimeError, match=re.compile(said, re.DOTALL)):
        compile_spmd(program, jax.devices())(np.zeros(16, np.float32))


def test_collective_over_one_axis_sums_its_groups():
    a = np.arange(256, dtype=np.float32).reshape(32, 8)
    result, ids = compile_spmd(reduce_program(), jax.devices())(a)
    expected = np.repeat(a.reshape(2, 4, 4, 8).sum(1, keepdims=True), 4, 1).reshape(32, 8)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(ids, np.arange(8))


def test_optimised_program_holds_exactly_the_collectives_of_the_text():
    text = compile_spmd(reduce_program(), jax.devices()).as_text()
    collectives = re.findall(
        r"(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)\(", text
    )
    assert collectives == ["all-reduce"]
    assert "replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true" in text
    assert "partition-id" in text


def test_outputs_are_sharded_as_the_program_says():
    result, ids = compile_spmd(reduce_program(), jax.devices())(np.zeros((32, 8), np.float32))
    assert spec_of(result) == PartitionSpec(("x", "y"))
    assert spec_of(ids) == PartitionSpec(("x", "y"))
    assert result.addressable_shards[0].data.shape == (4, 8)


@pytest.mark.parametrize(
    "place",
    [
        lambda a: a,
        lambda a: a.tolist(),
        jnp.asarray,
        lambda a: jax.device_put(a, jax.devices()[3]),
        lambda a: jax.device_put(
            a, NamedSharding(Mesh(np.array(jax.devices()), "d"), PartitionSpec())
        ),
        lambda a: jax.device_put(
            a, NamedSharding(Mesh(np.array(jax.devices()[::-1]), "d"), PartitionSpec("d"))
        ),
    ],
    ids=["numpy", "list", "uncommitted", "one device", "replicated", "other device order"],
)
def test_inputs_may_be_placed_anywhere(place):
    run = elementwise("float32", "f32", "add")
    a = np.arange(16, dtype=np.float32)
    placed = place(a)
    if isinstance(placed, list):
        with pytest.raises((InputError, TypeError)):
            run(placed, a)
        return
    for _ in range(3):
        np.testing.assert_array_equal(run(placed, a)[0], a + a)


def test_every_placement_shares_one_compilation(caplog):
    run = elementwise("float32", "f32", "add", name="sum_of_both")
    a = np.arange(16, dtype=np.float32)
    with jax.log_compiles():
        (sharded,) = run(a, a)
        assert sum("compilation of jit(sum_of_both)" in m for m in caplog.messages) == 1
        run(sharded, sharded)
        run(jnp.asarray(a), sharded)
        run(jax.device_put(a, jax.devices()[1]), a)
    assert sum("compilation of jit(sum_of_both)" in m for m in caplog.messages) == 1


@pytest.mark.parametrize(
    ("dtype", "mlir", "op"),
    [
        ("bfloat16", "bf16", "multiply"),
        ("float16", "f16", "add"),
        ("int8", "i8", "add"),
        ("int32", "i32", "multiply"),
        ("uint32", "ui32", "xor"),
        ("bool", "i1", "and"),
        ("complex64", "complex<f32>", "multiply"),
    ],
)
def test_element_types(dtype, mlir, op):
    a = np.arange(16).astype(np.dtype(dtype))
    (result,) = elementwise(dtype, mlir, op)(a, a)
    expected = {"multiply": a * a, "add": a + a, "xor": a ^ a if op == "xor" else 0, "and": a}[op]
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(np.asarray(result), expected)


def test_scalars_and_weak_types_pass():
    text = module(
        "%a: tensor<i32>, %b: tensor<f32>",
        "tensor<i32>, tensor<f32>",
        "return %a, %b : tensor<i32>, tensor<f32>",
    )
    count, rate = value("int32", is_weak=True), value("float32")
    run = compile_spmd(SpmdProgram(text, MESH, (count, rate), (count, rate)), jax.devices())
    for args in ((3, 0.5), (np.int32(3), np.float32(0.5)), (jnp.int32(3), jnp.float32(0.5))):
        three, half = run(*args)
        assert (int(three), float(half)) == (3, 0.5)
        assert jax.typeof(three).weak_type
        assert not jax.typeof(half).weak_type


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_typed_keys_go_in_and_out(impl):
    words = jax.random.key_data(jax.random.key(0, impl=impl)).shape[0]
    text = module(
        f"%k: tensor<2x{words}xui32>",
        f"tensor<2x{words}xui32>",
        f"return %k : tensor<2x{words}xui32>",
    )
    keys = value("uint32", (4, "x"), (words, ""), key_impl=impl)
    run = compile_spmd(SpmdProgram(text, MESH, (keys,), (keys,)), jax.devices())
    given = jax.random.split(jax.random.key(1, impl=impl), 4)
    for _ in range(2):
        (taken,) = run(given)
        assert taken.dtype == given.dtype
        assert spec_of(taken) == PartitionSpec("x")
        np.testing.assert_array_equal(jax.random.key_data(taken), jax.random.key_data(given))
        given = taken
    with pytest.raises(InputError, match="key"):
        run(np.zeros((4, words), np.uint32))


def test_donated_inputs_are_overwritten_in_place():
    run = compile_spmd(reduce_program(donated=(0,)), jax.devices())
    sharding = run.in_shardings[0]
    a = jax.jit(lambda: jnp.ones((32, 8)), out_shardings=sharding)()
    before = [shard.data.unsafe_buffer_pointer() for shard in a.addressable_shards]
    result, _ = run(a)
    after = [shard.data.unsafe_buffer_pointer() for shard in result.addressable_shards]
    assert a.is_deleted()
    assert before == after
    with pytest.raises(InputError, match="input 0 of reduce was deleted"):
        run(a)


def test_unused_arguments_and_functions_without_results():
    v = value("float32", (16, "xy"))
    text = module(
        "%a: tensor<2xf32>, %b: tensor<2xf32>", "tensor<2xf32>", "return %b : tensor<2xf32>"
    )
    run = compile_spmd(SpmdProgram(text, MESH, (v, v), (v,)), jax.devices())
    a = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(run(a, 2 * a)[0], 2 * a)
    nothing = module("%a: tensor<2xf32>", "", "return")
    assert compile_spmd(SpmdProgram(nothing, MESH, (v,), ()), jax.devices())(a) == ()


def test_text_may_hold_chlo_and_private_functions():
    text = module(
        "%a: tensor<2xf32>",
        "tensor<2xf32>",
        "%0 = func.call @run(%a) : (tensor<2xf32>) -> tensor<2xf32>\nreturn %0 : tensor<2xf32>",
        "func.func private @run(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
        "%0 = chlo.erf_inv %x : tensor<2xf32> -> tensor<2xf32>\nreturn %0 : tensor<2xf32>\n}\n",
    )
    v = value("float32", (16, "xy"))
    run = compile_spmd(SpmdProgram(text, MESH, (v,), (v,), name="run"), jax.devices())
    a = np.linspace(-0.9, 0.9, 16, dtype=np.float32)
    np.testing.assert_allclose(run(a)[0], jax.scipy.special.erfinv(a), rtol=1e-5, atol=1e-6)


def test_one_device_mesh_and_other_devices():
    v = value("float32", (16, "x"))
    text = module("%a: tensor<16xf32>", "tensor<16xf32>", "return %a : tensor<16xf32>")
    run = compile_spmd(SpmdProgram(text, (("x", 1),), (v,), (v,)), jax.devices()[5:6])
    (result,) = run(np.ones(16, np.float32))
    assert result.devices() == {jax.devices()[5]}


def test_python_values_are_converted_like_jit_does():
    run = elementwise("float32", "f32", "add")
    a = np.arange(16, dtype=np.float64)
    np.testing.assert_array_equal(run(a, a)[0], a + a)


def test_wrong_arguments_are_named():
    run = elementwise("float32", "f32", "add", name="sum")
    a = np.zeros(16, np.float32)
    for _ in range(2):
        with pytest.raises(InputError, match=r"sum takes 2 arrays, got 1"):
            run(a)
        with pytest.raises(InputError, match=r"input 1 of sum is float32\[16\], got float32\[8\]"):
            run(a, a[:8])
        with pytest.raises(InputError, match=r"input 0 of sum is float32\[16\], got int32\[16\]"):
            run(a.astype(np.int32), a)
        run(a, a)


def test_devices_must_make_up_the_mesh():
    with pytest.raises(RuntimeMeshError, match=r"8 devices \(2x4\), got 4"):
        compile_spmd(reduce_program(), jax.devices()[:4])
    with pytest.raises(RuntimeMeshError, match="'x': 8"):
        compile_spmd(reduce_program(), Mesh(np.array(jax.devices()), "x"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: value("float32", (6, "y")), "size 6 does not divide into 4 parts"),
        (lambda: value("float32", (8, "z")), "axis 'z', the mesh has"),
        (lambda: value("float32", (8, "x"), (8, "x")), "'x' splits more than one dimension"),
    ],
)
def test_contradictory_shardings_are_refused(make, message):
    with pytest.raises(ProgramError, match=message):
        SpmdProgram("", MESH, (make(),), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {", "does not parse"),
        ("module { func.func @other() { return } }", "no function main"),
        (module("%a: tensor<4xf32>", "tensor<4xf32>", "return %a : tensor<4xf32>"), "argument 0"),
        (module("", "", "return"), "main has 0 arguments, the program declares 1"),
        (module("%a: tensor<2xf32>", "", "return"), "main has 0 results, the program declares 1"),
    ],
)
def test_text_that_contradicts_the_program_is_refused(text, message):
    v = value("float32", (16, "xy"))
    with pytest.raises(ProgramError, match=message):
        compile_spmd(SpmdProgram(text, MESH, (v,), (v,)), jax.devices()).compile()


def test_cpu_pool_is_sized_before_the_client_exists():
    environment: dict[str, str] = {}
    assert ensure_cpu_pool(8, client_exists=False, environment=environment)
    assert environment == {"PJRT_NPROC": "32"}
    assert ensure_cpu_pool(16, client_exists=True, environment=environment)
    with pytest.warns(RuntimeWarning, match="PJRT_NPROC=40000"):
        ensure_cpu_pool(10000, client_exists=True, environment={})


def test_a_cpu_pool_that_is_too_small_is_refused():
    require_cpu_pool(10000, environment={"PJRT_NPROC": "40000"})
    with pytest.raises(RuntimeMeshError, match="can deadlock; set PJRT_NPROC=40000 before jax"):
        require_cpu_pool(10000, environment={"PJRT_NPROC": "8"})


@pytest.mark.slow
def test_runtime_imports_without_the_compiler():
    code = "import sys, alpa_runtime; sys.exit('stablehlo_alpa' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=_environment()).returncode == 0


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": ":".join(p for p in sys.path if p)}
