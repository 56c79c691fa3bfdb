"""A plan says the same things whether it runs on one mesh or on several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import alpa_runtime
import jax
import numpy as np
import pytest
from alpa_runtime import LocalExecutable
from tanh_layers import BATCH, WEIGHTS, step

import stablehlo_alpa as sa
from stablehlo_alpa.compiler.measures import Live

METHODS = {
    "one mesh": sa.ShardParallel(mesh_shape=(8,)),
    "micro-batches": sa.ShardParallel(mesh_shape=(8,), num_micro_batches=2),
    "pipeline": sa.PipeshardParallel(
        num_micro_batches=2, layers=sa.AutoLayers(num_layers=2), stages=sa.UniformStages(2)
    ),
}


@pytest.fixture(scope="module", params=list(METHODS))
def plan(request: Any) -> sa.Plan:
    return sa.parallelize(step, method=METHODS[request.param]).plan(WEIGHTS, BATCH)


@pytest.fixture(scope="module")
def pipeline() -> sa.Plan:
    return sa.parallelize(step, method=METHODS["pipeline"]).plan(WEIGHTS, BATCH)


def test_what_is_saved_runs(plan: sa.Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "step.plan")
    loaded = alpa_runtime.load(tmp_path / "step.plan")
    assert loaded == plan.runtime
    outputs = LocalExecutable(loaded, jax.devices())(*WEIGHTS, BATCH)
    for a, b in zip(outputs, jax.tree.leaves(jax.jit(step)(WEIGHTS, BATCH)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_operators_are_explained_and_compared(plan: sa.Plan) -> None:
    for stage in plan.stages:
        name = max(stage.priced.graph.node_name, key=len)
        assert plan.explain(name).name == name
    with pytest.raises(sa.ShardingError, match="no operator is named 'nothing'"):
        plan.explain("nothing")
    difference = plan.diff(plan)
    assert not difference.changes
    assert not difference.only_first
    assert len(difference.mesh_shapes[0]) == len(plan.stages)
    assert str(difference)


def test_shardings_have_the_structure_of_the_step(plan: sa.Plan) -> None:
    (weights, batch), named = plan.input_shardings
    assert len(weights) == len(WEIGHTS)
    assert isinstance(batch, jax.sharding.PartitionSpec)
    assert not named
    results, value = plan.output_shardings
    assert len(results) == len(WEIGHTS)
    assert value == jax.sharding.PartitionSpec()


def test_costs_are_of_what_runs(plan: sa.Plan) -> None:
    assert [cost.program for cost in plan.costs] == list(plan.runtime.programs)
    assert plan.step_time_s == plan.simulation.step_s > 0
    assert plan.peak_bytes == max(plan.simulation.peak_bytes) > 0
    assert plan.memory_price_s_per_gib == 0
    assert len(plan.timeline()) >= len(plan.stages)
    assert list(plan.table("communication").records) == plan.communication()


def test_what_a_program_writes_over_is_not_counted_twice(plan: sa.Plan) -> None:
    """Beside inputs that stay and results is what is left of the peak of what runs."""
    assert any(program.donated for program in plan.runtime.programs) == (len(plan.costs) > 1)
    for cost in plan.costs:
        program, sizes = cost.program, cost.program.mesh_sizes
        kept = [v for i, v in enumerate(program.inputs) if i not in program.donated]
        boundary = sum(value.local_bytes(sizes) for value in (*kept, *program.outputs))
        peak = Live.of(program.text, program.donated).peak_bytes
        assert cost.inside_bytes == max(0.0, peak - boundary)


def test_every_step_of_compilation_has_a_text(plan: sa.Plan) -> None:
    for number, stage in enumerate(plan.stages):
        assert plan.module_text(stage=number) == stage.phases[0].program.text
        for name in ("traced", "merged", "planned"):
            assert "func.func" in plan.module_text(name, number)
    with pytest.raises(sa.ShardingError, match="stages are numbers below"):
        plan.module_text(stage=7)


def test_a_plan_of_one_mesh_is_one_program() -> None:
    plan = sa.parallelize(step, method=METHODS["one mesh"]).plan(WEIGHTS, BATCH)
    (stage,) = plan.stages
    (phase,) = stage.phases
    assert plan.runtime.sole_program is phase.program
    assert plan.step_time_s == stage.solution.objective_s
    assert plan.mesh_shape == (8,)
    assert "sdy" in plan.export("shardy")


def test_what_only_one_mesh_has_is_refused_by_name(pipeline: sa.Plan) -> None:
    with pytest.raises(sa.MeshError, match=r"plan of step has 2 meshes.*plan\.stages"):
        _ = pipeline.mesh
    with pytest.raises(sa.ShardingError, match=r"plan of step has \d+ programs, XLA partitions"):
        pipeline.export()


def test_remarks_of_stages_are_those_of_the_plan(pipeline: sa.Plan) -> None:
    found = {remark for stage in pipeline.stages for remark in stage.remarks}
    assert found <= set(pipeline.remarks)
