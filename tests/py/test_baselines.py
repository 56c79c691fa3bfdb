"""A plan beside what methods with a name make of the step, by the same prices."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from models import mlp, moe
from models.case import TrainCase

import stablehlo_alpa as sa
from stablehlo_alpa.api.rivals import rivals
from stablehlo_alpa.cluster import ClusterSpec, preset_for
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.planning import Baselines, Plan, PlanOptions, plan_program

SEARCH = sa.ShardParallel()
ONE_MESH = ("ShardParallel()", "DataParallel()", "Zero2Parallel()", "Zero3Parallel()")


def plan_of(case: TrainCase, method: sa.Method = SEARCH) -> Plan:
    step = sa.parallelize(case.step, method=method, donate_argnums=0)
    return step.plan(*case.args)


@pytest.fixture(scope="module")
def mixture() -> TrainCase:
    # It is planned fifteen times, and momentum is a state to be split as Adam's moments are.
    return moe.make(optimizer="sgd")


@pytest.fixture(scope="module")
def of_mixture(mixture: TrainCase) -> Baselines:
    return plan_of(mixture).baselines()


@pytest.mark.slow
def test_the_search_is_never_slower_than_a_method_with_a_name(of_mixture: Baselines) -> None:
    times = {row.method: row.plan.step_time_s for row in of_mixture.rows if row.plan}
    assert {*ONE_MESH, "ExpertParallel()", "MegatronParallel(tensor=2)"} <= set(times)
    assert {"DataParallel() in 2 stages", "MegatronParallel(tensor=2, pipeline=2)"} <= {
        row.method for row in of_mixture.rows
    }
    assert of_mixture.plan.step_time_s <= min(times.values()) * (1 + 1e-6)
    assert times["ShardParallel()"] == pytest.approx(of_mixture.plan.step_time_s)
    best: Any = of_mixture.best
    assert best.plan.step_time_s == min(times.values())


@pytest.mark.slow
def test_each_row_is_the_plan_of_its_method(of_mixture: Baselines, mixture: TrainCase) -> None:
    rows: dict[str, Any] = {row.method: row.plan for row in of_mixture.rows}
    for method in (sa.DataParallel(), sa.Zero3Parallel(), sa.ExpertParallel()):
        own, row = plan_of(mixture, method), rows[method.brief()]
        assert row.step_time_s == own.step_time_s
        assert row.peak_bytes == own.peak_bytes
    pipeline = sa.PipeshardParallel(stages=sa.UniformStages(2, methods=sa.DataParallel()))
    assert rows["DataParallel() in 2 stages"].step_time_s == plan_of(mixture, pipeline).step_time_s


def test_they_are_shown_fastest_first(of_mixture: Baselines) -> None:
    times = [math.inf if row.plan is None else row.plan.step_time_s for row in of_mixture.rows]
    assert times == sorted(times)
    text = str(of_mixture).splitlines()
    assert text[3].split()[:2] == ["this", "plan"]
    assert of_mixture.rows[0].method in text[4]
    assert of_mixture._repr_html_().count("<tr>") > len(of_mixture.rows)


def test_methods_of_ones_own_and_what_is_refused() -> None:
    plan = plan_of(mlp.make())
    found = plan.baselines([sa.MegatronParallel(tensor=3), sa.DataParallel()])
    assert [row.method for row in found.rows] == ["DataParallel()", "MegatronParallel(tensor=3)"]
    refused = found.rows[1]
    assert (refused.plan, refused.is_too_large) == (None, False)
    assert "tensor=3" in refused.reason
    assert "refused: tensor=3" in " ".join(str(found).split())


def test_what_does_not_fit_says_so() -> None:
    case = mlp.make()
    budget = 0.9 * plan_of(case, sa.MegatronParallel(tensor=8)).peak_bytes
    plan = plan_of(case, sa.Zero3Parallel(memory_budget=budget))
    methods = [sa.MegatronParallel(tensor=8, num_micro_batches=1, memory_budget=budget)]
    (row,) = plan.baselines(methods).rows
    assert row.plan is None
    assert row.is_too_large
    assert "does not fit: " in str(plan.baselines(methods))
    # The budget is that of the plan.
    for name, one in rivals(plan, sa.Zero3Parallel(memory_budget=budget)).items():
        assert one.memory_budget == budget, name


def test_a_plan_of_a_module_has_no_function_to_trace() -> None:
    program = sa.parallelize(lambda x: x * 2).plan(np.ones((8, 8), "f")).program
    options = PlanOptions(ClusterSpec(preset_for("cpu"), 1, 8), ((8,),), solve=SolveOptions())
    with pytest.raises(TraceError, match="is of a module"):
        plan_program(program, options).baselines()


def test_another_context_of_jax_is_refused() -> None:
    plan: Any = sa.parallelize(lambda x: x * 2).plan(np.ones((8, 8), "f"))
    with jax.enable_x64(True), pytest.raises(TraceError, match="another context of jax"):
        plan.baselines()
