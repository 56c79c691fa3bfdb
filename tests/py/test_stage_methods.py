"""Stages of a pipeline, each split by a method of its own."""

from __future__ import annotations

from typing import Any

import pytest
from jax.sharding import PartitionSpec as P

pytest.importorskip("stablehlo_alpa._core")

from comparing import check, specs
from models import gpt, mlp

import stablehlo_alpa as sa


def pipeline(stages: Any, **options: Any) -> Any:
    usual: dict[str, Any] = {"layers": sa.FollowModuleLayers(), "num_micro_batches": 2}
    return sa.PipeshardParallel(stages=stages, **(usual | options))


@pytest.mark.slow
def test_every_stage_is_split_by_its_method() -> None:
    case = gpt.make(dropout=0.0, batch=16)
    by_hand = sa.ManualSharding(
        mesh_shape=(2, 2),
        names=("data", "model"),
        patterns=((r"up/kernel", P(None, "model")), (r"down/kernel", P("model")), (r".*", P())),
    )
    plan = check(
        case.step, case.args, pipeline(sa.UniformStages(2, methods=(sa.Zero3Parallel(), by_hand)))
    )
    first, second = specs(plan, 0), specs(plan, 1)
    assert plan.stages[0].mesh.shape == (4,)
    kernel = first["state.params['params']['layer_0']['up']['kernel']"]
    assert kernel in (P("x"), P(None, "x"))
    assert first["batch['tokens']"] == P("x")
    assert plan.stages[1].mesh.axis_names == ("data", "model")
    assert second["state.params['params']['layer_1']['up']['kernel']"] == P(None, "model")
    assert second["state.params['params']['layer_1']['down']['kernel']"] == P("model")


@pytest.mark.slow
def test_one_method_is_for_all_stages() -> None:
    case = mlp.make()
    stages = sa.ManualStages((1, 1), ((1, 4), (1, 4)), methods=sa.DataParallel())
    plan = check(case.step, case.args, pipeline(stages, layers=sa.AutoLayers(num_layers=2)))
    for stage in plan.stages:
        assert stage.mesh.shape == (4,)
        for name, spec in specs(plan, stage.layers[0]).items():
            assert spec == (P("x") if name.startswith("batch") else P()), name


def test_methods_that_do_not_fit_stages_are_refused() -> None:
    with pytest.raises(ValueError, match=r"2 stages need as many methods, got 1: pass one for"):
        sa.UniformStages(2, methods=(sa.DataParallel(),))
    with pytest.raises(TypeError, match=r"stage 0 has the method 'data', must be DataParallel"):
        pipeline(sa.UniformStages(2, methods=("data", "data")))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"stage 1 has the method FollowParallel\(\), which is no"):
        pipeline(sa.UniformStages(2, methods=(sa.DataParallel(), sa.FollowParallel())))
    with pytest.raises(ValueError, match=r"which looks at the whole function: pass ExpertParallel"):
        pipeline(sa.UniformStages(2, methods=sa.ExpertParallel()))
    with pytest.raises(ValueError, match=r"whose memory_budget is of the whole function"):
        pipeline(sa.UniformStages(2, methods=sa.DataParallel(memory_budget="1GiB")))
