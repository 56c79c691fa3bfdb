"""One protocol behind every method: what an executable says of itself, and plans in files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import numpy as np
import pytest
from alpa_runtime import InputError, LocalExecutable, Plan, RuntimeOptions, SpmdProgram, ValueSpec
from tanh_layers import BATCH, WEIGHTS, step

import stablehlo_alpa
from stablehlo_alpa import AutoLayers, PipeshardParallel, ShardParallel, UniformStages

METHODS = {
    "one mesh": ShardParallel(mesh_shape=(2, 4)),
    "shardy": ShardParallel(mesh_shape=(2, 4), backend="shardy"),
    "pipeline": PipeshardParallel(
        num_micro_batches=4, layers=AutoLayers(num_layers=2), stages=UniformStages(2)
    ),
}


@pytest.fixture(scope="module", params=METHODS)
def compiled(request: Any) -> Any:
    method = METHODS[request.param]
    function = stablehlo_alpa.parallelize(step, method=method, donate_argnums=0)
    return function.compile(WEIGHTS, BATCH)


def test_programs_of_every_method_are_shown(compiled: Any) -> None:
    programs = compiled.plan.runtime.programs
    whole = compiled.as_text()
    assert "ENTRY" in whole
    for number, program in enumerate(programs):
        assert compiled.as_text(number) == compiled.as_text(program.name)
        assert compiled.as_text(number) in whole
    for unknown in (len(programs), "nothing"):
        with pytest.raises(InputError, match=rf"program is {unknown!r}, step has {len(programs)}"):
            compiled.as_text(unknown)


def test_memory_and_cost_of_every_method_are_told(compiled: Any) -> None:
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
    if len(compiled.meshes) == 1:
        memory, cost = (memory,), (cost,)
    assert len(memory) == len(cost) == len(compiled.meshes)
    for own_memory, own_cost in zip(memory, cost, strict=True):
        assert own_cost["flops"] > 0
        assert own_memory.argument_size_in_bytes > 0
        assert own_memory.peak_memory_in_bytes >= own_memory.argument_size_in_bytes
        assert own_memory.alias_size_in_bytes <= own_memory.output_size_in_bytes


def test_the_devices_of_every_method_are_a_mesh(compiled: Any) -> None:
    assert sorted(d.id for d in compiled.mesh.devices.flat) == list(range(8))
    assert [d for mesh in compiled.meshes for d in mesh.devices.flat] == list(
        compiled.mesh.devices.flat
    )
    everywhere = jax.sharding.NamedSharding(compiled.mesh, jax.sharding.PartitionSpec())
    found = compiled(jax.device_put(WEIGHTS, everywhere), BATCH)
    expected = jax.jit(step)(WEIGHTS, BATCH)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


_ALONE = """
import sys
sys.modules["stablehlo_alpa"] = None
import alpa_runtime, jax, numpy as np
plan = alpa_runtime.load(sys.argv[1])
run = alpa_runtime.LocalExecutable(plan, jax.devices())
given = np.load(sys.argv[2])
args = [given[f"arr_{index}"] for index in range(len(given))]
args = [*map(jax.device_put, args, run.in_shardings)]
np.savez(sys.argv[3], *run(*args))
assert [arg.is_deleted() for arg in args] == [value.is_donated for value in plan.inputs]
"""


@pytest.mark.slow
def test_a_plan_of_one_mesh_runs_by_the_runtime_alone(tmp_path: Path) -> None:
    method = METHODS["one mesh"]
    plan = stablehlo_alpa.parallelize(step, method=method, donate_argnums=0).plan(WEIGHTS, BATCH)
    names = [str(tmp_path / name) for name in ("step.plan", "given.npz", "found.npz")]
    plan.save(names[0])
    assert alpa_runtime.load(names[0]) == plan.runtime
    np.savez(names[1], *WEIGHTS, BATCH)
    path = ":".join(part for part in sys.path if part)
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", _ALONE, *names], env=environment, check=True)
    found, expected = np.load(names[2]), jax.tree.leaves(jax.jit(step)(WEIGHTS, BATCH))
    for index, leaf in enumerate(expected):
        np.testing.assert_allclose(found[f"arr_{index}"], leaf, rtol=1e-5, atol=1e-6)


def test_programs_of_whole_arrays_and_of_keys_come_back_from_a_file(tmp_path: Path) -> None:
    value = ValueSpec((8, 4), "float32", (("x",), ()), name="array")
    keys = ValueSpec((4, 2), "uint32", (("x",), ()), key_impl="threefry2x32", name="keys")
    text = (
        "module { func.func public @main(%a: tensor<8x4xf32>, %k: tensor<4x2xui32>) -> "
        "(tensor<4x2xui32>, tensor<8x4xf32>) "
        "{ %0 = stablehlo.add %a, %a : tensor<8x4xf32> "
        "return %k, %0 : tensor<4x2xui32>, tensor<8x4xf32> } }"
    )
    program = SpmdProgram(
        text, (("x", 2),), (value, keys), (keys, value), (0,), "double", is_global=True
    )
    plan = Plan.of_program(program)
    alpa_runtime.save(plan, tmp_path / "one.plan")
    loaded = alpa_runtime.load(tmp_path / "one.plan")
    assert loaded == plan
    assert loaded.sole_program == program
    array, given = np.arange(32, dtype="f").reshape(8, 4), jax.random.split(jax.random.key(3), 4)
    # By the short way, and by that of all plans.
    for options in (None, RuntimeOptions(trace=True, trace_path=str(tmp_path / "trace.json"))):
        run = LocalExecutable(loaded, jax.devices()[2:4], options)
        found, doubled = run(array, given)
        np.testing.assert_array_equal(doubled, array + array)
        np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(given))
