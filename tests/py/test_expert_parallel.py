"""Experts over an axis of the mesh: found by the program, reached by all-to-all, as jax.jit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

pytest.importorskip("stablehlo_alpa._core")

from comparing import assert_equals_jit, check, collectives, specs
from models import mlp, moe

import stablehlo_alpa as sa


@pytest.mark.slow
@pytest.mark.parametrize("expert", [None, 4])
def test_experts_are_split_and_the_rest_is_data_parallel(expert: int | None) -> None:
    case = moe.make(optimizer="sgd")
    plan = check(case.step, case.args, sa.ExpertParallel(expert=expert))
    assert dict(plan.mesh.axes) == {"data": 8 // (expert or 8), "expert": expert or 8}
    batch = P(("data", "expert")) if expert else P("expert")
    for name, spec in specs(plan).items():
        is_expert = "experts" in name and "gate" not in name
        assert spec == (batch if "batch" in name else P("expert") if is_expert else P()), name
    # Tokens go to their experts and back, forward and backward, in each of two layers.
    assert collectives(plan, "expert", 0)["all_to_all"] == 8


@pytest.mark.slow
@pytest.mark.parametrize("zero", [1, 3])
def test_what_is_no_expert_is_split_over_all_devices(zero: int) -> None:
    case = moe.make(layers=1, optimizer="adam")
    plan = check(case.step, case.args, sa.ExpertParallel(expert=4, zero=zero))
    found = specs(plan)
    state, params = "state.opt_state[1][0].mu['params']", "state.params['params']"
    assert found[f"{state}['embed']['embedding']"] == P(("data", "expert"))
    assert found[f"{state}['experts_0']['up']"] == P("expert", "data")
    is_whole = zero == 1
    assert found[f"{params}['embed']['embedding']"] == (P() if is_whole else P(("data", "expert")))
    assert found[f"{params}['experts_0']['up']"] == P("expert", *([] if is_whole else ["data"]))
    assert collectives(plan, "expert", 0)["all_to_all"] == 4


def test_patterns_name_experts() -> None:
    case = moe.make(layers=1, optimizer="sgd")
    method = sa.ExpertParallel(expert=2, patterns=(r"experts_0/up",))
    plan = sa.parallelize(case.step, method=method).plan(*case.args)
    # What goes together with it is split with it.
    assert specs(plan)["state.params['params']['experts_0']['down']"] == P("expert")


def test_experts_that_do_not_divide_are_whole_with_a_remark() -> None:
    def mixture(params: Any, x: Any) -> Any:
        gates = jax.nn.softmax(x @ params["gate"])
        inner = jax.nn.relu(jnp.einsum("td,edf->etf", x, params["up"]))
        return jnp.einsum("etf,efd,te->td", inner, params["down"], gates)

    rng = np.random.default_rng(0)
    shapes = {"gate": (6, 3), "up": (3, 6, 10), "down": (3, 10, 6)}
    params = {name: rng.normal(size=shape).astype("f") for name, shape in shapes.items()}

    def step(params: Any, x: Any) -> Any:
        loss, grads = jax.value_and_grad(lambda p: (mixture(p, x) ** 2).mean())(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    method = sa.ExpertParallel(expert=2, patterns=("up", "down"))
    plan = check(step, (params, rng.normal(size=(7, 6)).astype("f")), method)
    remarks = "\n".join(plan.remarks)
    assert "dimension 0 of size 3 does not divide by 2; 4 would" in remarks


@pytest.mark.slow
def test_experts_in_a_stage_of_a_pipeline() -> None:
    case = moe.make(optimizer="sgd")
    method = sa.PipeshardParallel(
        layers=sa.AutoLayers(num_layers=2),
        stages=sa.UniformStages(2, methods=sa.ExpertParallel(expert=4)),
        num_micro_batches=2,
    )
    step = sa.parallelize(case.step, method=method)
    plan = step.plan(*case.args)
    for stage in (0, 1):
        experts = [s for name, s in specs(plan, stage).items() if name.endswith("['up']")]
        assert experts
        assert all(spec == P("expert") for spec in experts)
    ours, theirs = step(*case.args), jax.jit(case.step)(*case.args)
    assert_equals_jit(ours, theirs)


def test_what_has_no_experts_is_refused() -> None:
    case = mlp.make()
    with pytest.raises(sa.ShardingError, match=r"no product of step has a dimension that a par"):
        sa.parallelize(case.step, method=sa.ExpertParallel()).plan(*case.args)
    with pytest.raises(sa.MeshError, match=r"expert=3 does not divide 8 devices"):
        sa.parallelize(moe.make().step, method=sa.ExpertParallel(expert=3)).plan(*moe.make().args)
    method = sa.ExpertParallel(patterns=("gates",))
    with pytest.raises(sa.ShardingError, match=r"'gates', which is found in the path of no input"):
        sa.parallelize(moe.make().step, method=method).plan(*moe.make().args)
    with pytest.raises(ValueError, match=r"expert must be >= 1, got 0"):
        sa.ExpertParallel(expert=0)
    with pytest.raises(ValueError, match=r"zero must be 0, 1 or 3, got 2"):
        sa.ExpertParallel(zero=2)
    with pytest.raises(sa.MeshError, match=r"mesh_shape=\(2, 4\) follows from expert"):
        sa.ExpertParallel(mesh_shape=(2, 4))


def test_a_number_in_the_place_of_a_mesh_is_refused() -> None:
    with pytest.raises(
        sa.MeshError, match=r"one size per axis, got 2: write mesh_shape=\(2,\), and"
    ):
        sa.ExpertParallel(2)  # type: ignore[arg-type]
