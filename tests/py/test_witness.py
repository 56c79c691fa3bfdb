"""XLA's compilers as witness: targets, what is kept, and plans beside what is compiled."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import pytest
from alpa_runtime import LocalExecutable, MemoryStats
from alpa_runtime.analysis import ProgramReport
from jax.sharding import PartitionSpec as P
from models import mlp

import stablehlo_alpa
from stablehlo_alpa import MeshError, Plan, WitnessError
from stablehlo_alpa.compiler import without_locations
from stablehlo_alpa.planning.checking import check_plan
from stablehlo_alpa.witness import TARGETS, Examination, Kind, runs_of, sent_bytes
from stablehlo_alpa.witness.report_cache import ReportCache

H100, V5P = TARGETS["h100"], TARGETS["tpu-v5p"]
PIPELINE = stablehlo_alpa.PipeshardParallel(
    num_micro_batches=2, stages=stablehlo_alpa.UniformStages(2)
)


def is_installed(name: str) -> bool:
    try:
        return bool(TARGETS[name].versions)
    except WitnessError:
        return False


def mlp_plan(method: stablehlo_alpa.Method) -> Plan:
    case = mlp.make()
    step = stablehlo_alpa.parallelize(case.step, method=method, donate_argnums=0)
    return step.plan(*case.args)


def examined_on_cpu(plan: Plan) -> Examination:
    """What XLA for the CPU makes of a plan, as if it were an accelerator's compiler."""
    executable = LocalExecutable(plan.runtime, jax.devices())
    executable.compile()
    reports = {program: report for (_, program), report in executable._reports().items()}
    return Examination(plan.runtime, H100, reports)


@pytest.mark.parametrize(("count", "topology"), [(1, "1x1x1"), (4, "1x1x4"), (16, "1x2x8")])
def test_gpus_fill_hosts(count: int, topology: str) -> None:
    assert H100.topology(count)["topology"] == topology


@pytest.mark.parametrize(
    ("count", "name"),
    [(1, "v5:1x1x1"), (2, "v5:1x2x1"), (4, "v5:2x2x1"), (8, "v5:2x2x2"), (64, "v5:4x4x4")],
)
def test_chips_are_a_torus(count: int, name: str) -> None:
    assert V5P.topology(count)["topology_name"] == name


@pytest.mark.parametrize(("target", "count"), [(H100, 12), (V5P, 3), (V5P, 6)])
def test_devices_that_cannot_be_connected_are_refused(target: Any, count: int) -> None:
    with pytest.raises(MeshError, match=str(count)):
        target.topology(count)


def test_a_compiler_that_is_missing_is_named_with_its_extra() -> None:
    target = dataclasses.replace(H100, packages=(("no-such-compiler",),))
    with pytest.raises(WitnessError, match=r"no-such-compiler.*\[cuda-check\]"):
        print(target.versions)


def test_unknown_targets_are_refused() -> None:
    plan = mlp_plan(stablehlo_alpa.ShardParallel(mesh_shape=(2, 4)))
    with pytest.raises(WitnessError, match=r"'abacus'.*h100, tpu-v5p"):
        plan.check("abacus")


def test_reports_are_kept_by_content(tmp_path: Path) -> None:
    target = dataclasses.replace(H100, packages=((),))
    program = mlp_plan(stablehlo_alpa.ShardParallel(mesh_shape=(2, 4))).runtime.programs[0]
    options = {"xla_gpu_enable_triton_gemm": False}
    report = ProgramReport("HloModule", MemoryStats(1, 2, 3, 4, 5, 6), {"flops": 7.0}, options)
    tried: list[dict[str, Any]] = [{}, options]
    cache = ReportCache(tmp_path / "reports")
    cache.put(program, target, tried, report)
    assert cache.get(program, target, tried) == report
    moved = dataclasses.replace(program, text=without_locations(program.text))
    assert cache.get(moved, target, tried) == report
    other = dataclasses.replace(program, donated=())
    assert cache.get(other, target, tried) is None
    assert cache.get(program, dataclasses.replace(V5P, packages=((),)), tried) is None
    assert cache.get(program, target, [options]) is None


def test_what_programs_were_compiled_with_is_said() -> None:
    """Of programs that are compared it is the same: their memory is that of other kernels else."""
    plan = mlp_plan(PIPELINE).runtime
    memory = MemoryStats(1, 2, 3, 4, 5, 6)
    known = [ProgramReport("", memory, {}), ProgramReport("", memory, {}, {"a": 1})]
    assert Examination(plan, H100, {0: known[0]}).options == {}
    assert Examination(plan, H100, {0: known[0], 1: known[1]}).options == {"a": 1}


@pytest.mark.parametrize("method", [stablehlo_alpa.ShardParallel(mesh_shape=(2, 4)), PIPELINE])
def test_what_is_planned_is_what_is_sent(method: stablehlo_alpa.Method) -> None:
    """XLA for the CPU changes few collectives: what it sends is what every program plans."""
    plan = mlp_plan(method)
    check = check_plan(plan, examined_on_cpu(plan))
    assert len(check.meshes) == len(plan.runtime.meshes)
    for mesh in check.meshes:
        assert mesh.planned.sent_bytes > 0
        assert mesh.compiled.sent_bytes <= mesh.planned.sent_bytes * (1 + 1e-9)
        assert mesh.compiled.peak_bytes > 0
    assert "memory at the peak" in str(check)


@pytest.mark.slow
def test_collectives_of_a_step_are_those_of_all_its_runs() -> None:
    plan = mlp_plan(PIPELINE)
    found = examined_on_cpu(plan)
    for mesh in range(2):
        expected = sum(
            one.sent_bytes * runs
            for program, runs in runs_of(plan.runtime, mesh).items()
            for one in found.program_collectives[program]
        )
        assert sum(one.sent_bytes for one in found.collectives(mesh)) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        pytest.param(name, marks=pytest.mark.skipif(not is_installed(name), reason="no compiler"))
        for name in TARGETS
    ],
)
def test_accelerators_send_what_is_planned(target: str, tmp_path: Path) -> None:
    """Compiled for devices that are not at hand, beside those that are."""
    plan = mlp_plan(stablehlo_alpa.ShardParallel(mesh_shape=(2, 4)))
    check = plan.check(target, cache=tmp_path)
    (mesh,) = check.meshes
    # XLA for TPU makes an all-reduce of a small reduce-scatter, which sends twice as much.
    most = 2.0 if target == "tpu-v5p" else 1.0
    assert 0 < mesh.compiled.sent_bytes <= most * mesh.planned.sent_bytes
    for estimate in (mesh.compiled.compute_s, mesh.compiled.optimal_s):
        assert (estimate is not None) == (target == "tpu-v5p")
    assert len(list(tmp_path.iterdir())) == 1
    assert plan.check(target, cache=tmp_path).meshes == check.meshes


@pytest.mark.slow
@pytest.mark.skipif(not is_installed("h100"), reason="no compiler")
def test_products_without_default_tiles_are_compiled_without_triton(tmp_path: Path) -> None:
    """Rows of 2 x 17 that a transpose leaves apart: ``jax.jit`` of them is refused as well."""

    def attend(scores: jax.Array, values: jax.Array, weights: jax.Array) -> jax.Array:
        mixed = jax.numpy.einsum("bhqk,bkhd->bqhd", scores, values)
        return mixed.reshape(-1, 32) @ weights

    shapes = ((4, 4, 17, 17), (4, 17, 4, 8), (32, 32))
    args = [jax.ShapeDtypeStruct(shape, jax.numpy.float32) for shape in shapes]
    method = stablehlo_alpa.DataParallel()
    plan = stablehlo_alpa.parallelize(attend, method=method, devices=jax.devices()[:2]).plan(*args)
    (mesh,) = plan.check("h100", cache=tmp_path).meshes
    assert mesh.compiled.peak_bytes > 0


@pytest.mark.slow
@pytest.mark.skipif(not is_installed("tpu-v5p"), reason="no compiler")
@pytest.mark.parametrize("rows", [4, 20, 200])
def test_vectors_that_devices_combine_are_gathered(rows: int, tmp_path: Path) -> None:
    """XLA for TPU adds up vectors that it would gather one behind another: twice the bytes."""
    scores = jax.ShapeDtypeStruct((rows, 4096), jax.numpy.float32)
    method = stablehlo_alpa.ManualSharding(in_specs={"scores": P(None, "x")}, mesh_shape=(8,))
    likeliest = stablehlo_alpa.parallelize(
        lambda scores: jax.numpy.argmax(scores, axis=1), method=method
    )
    plan = likeliest.plan(scores)
    found = plan.check("tpu-v5p", cache=tmp_path).examination.collectives()
    assert {one.kind for one in found} == {Kind.ALL_GATHER}
    assert sent_bytes(found) <= 7 * 4 * 2 * rows
