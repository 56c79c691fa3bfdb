"""What a step gives away is free for its results, in the search as in the program."""

import warnings

import jax
import jax.numpy as jnp
import pytest
from models import gpt, mlp
from often import each_with_one_of

import stablehlo_alpa as sa
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.inter_op import stage_fitting


def _plan(donated, method, batch=64):
    case = mlp.make(batch=batch, inputs=256, hidden=1024, outputs=256, layers=4)
    step = sa.parallelize(case.step, method=method, donate_argnums=donated)
    return step.plan(*jax.eval_shape(lambda: case.args))


@pytest.mark.parametrize("donated", [(), 0])
def test_the_search_knows_the_memory_of_the_program(donated):
    plan = _plan(donated, sa.ShardParallel(mesh_shape=(8,)))
    # The search does not count what is gathered for several products at once.
    assert plan.stages[0].solution.memory_peak_bytes == pytest.approx(plan.peak_bytes, rel=0.03)


def test_the_search_knows_what_a_tpu_stores_in_other_bits():
    """Scores of 16 bits are stored in 32."""
    case = gpt.make(
        batch=32, heads=8, hidden=256, length=512, vocabulary=512, dropout=0, dtype=jnp.bfloat16
    )
    step = sa.parallelize(
        case.step,
        method=sa.ShardParallel(mesh_shape=(8,)),
        cluster="tpu-v5p:2x2x2",
        donate_argnums=0,
    )
    plan = step.plan(*jax.eval_shape(lambda: case.args))
    assert plan.stages[0].solution.memory_peak_bytes == pytest.approx(plan.peak_bytes, rel=0.02)


@pytest.mark.slow
def test_a_step_that_gives_its_state_away_fits_a_budget_that_it_else_exceeds():
    kept = _plan((), sa.ShardParallel(mesh_shape=(8,)))
    given = _plan(0, sa.ShardParallel(mesh_shape=(8,)))
    assert given.peak_bytes < 0.75 * kept.peak_bytes
    budget = 0.5 * (given.peak_bytes + kept.peak_bytes)
    method = sa.ShardParallel(mesh_shape=(8,), memory_budget=budget)
    found = _plan(0, method).stages[0].solution
    assert found.objective_s == pytest.approx(given.stages[0].solution.objective_s)
    with pytest.raises(InfeasibleError, match="no plan fits the memory budget"):
        _plan((), method)


@pytest.mark.slow
def test_stages_give_their_state_away_too():
    def method():
        return sa.PipeshardParallel(
            num_micro_batches=4, stages=sa.UniformStages(2), layers=sa.AutoLayers(num_layers=2)
        )

    kept, given = _plan((), method()), _plan(0, method())
    for one, other in zip(kept.stages, given.stages, strict=True):
        assert other.solution.memory_peak_bytes < one.solution.memory_peak_bytes


@pytest.mark.slow
def test_stages_that_take_more_than_was_counted_are_planned_with_less(monkeypatch):
    method = sa.PipeshardParallel(
        num_micro_batches=4,
        stages=sa.UniformStages(2),
        layers=sa.AutoLayers(num_layers=2, remat=False),
        schedule="1f1b",
    )
    peak = _plan(0, method, 4096).stages[0].solution.memory_peak_bytes
    # What is gathered is kept for less long first.
    excess = iter([{0: 0.02 * peak}, {0: 0.02 * peak}, {}])
    monkeypatch.setattr(stage_fitting, "_excess", lambda plan, budget: next(excess))
    again = _plan(0, method, 4096)
    assert again.stages[0].solution.memory_peak_bytes <= 0.98 * peak * (1 + 1e-6)
    assert next(excess, None) is None


METHODS = {
    "shard": lambda: sa.ShardParallel(),
    "zero": lambda: sa.Zero3Parallel(),
    "micro-batches": lambda: sa.ShardParallel(num_micro_batches=2),
    "stages": lambda: sa.PipeshardParallel(
        num_micro_batches=2, stages=sa.UniformStages(2), layers=sa.AutoLayers(num_layers=2)
    ),
}


@pytest.mark.parametrize(
    ("method", "place"), each_with_one_of(METHODS, ["nowhere", "a device", "split"])
)
def test_what_is_donated_is_gone_where_a_copy_was_used_too(method, place):
    # A batch that no result takes the place of stays, as ``jax.jit`` leaves it.
    case = mlp.make(batch=16, inputs=8, hidden=8, outputs=8, layers=2)
    spread = jax.NamedSharding(jax.sharding.Mesh(jax.devices(), "other"), jax.P("other"))
    places = {"nowhere": None, "a device": jax.devices()[3], "split": spread}

    def gone(make):
        def put(leaf):
            fits = leaf.ndim and leaf.shape[0] % 8 == 0
            return jax.device_put(leaf.copy(), places[place] if fits or place != "split" else None)

        args = jax.tree.map(put, jax.tree.map(jnp.asarray, case.args))
        jax.block_until_ready(make(args))
        return jax.tree.map(lambda leaf: leaf.is_deleted(), args)

    donated = (0, 1)
    parallel = sa.parallelize(case.step, method=METHODS[method](), donate_argnums=donated)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Some donated buffers were not usable")
        expected = gone(lambda args: jax.jit(case.step, donate_argnums=donated)(*args))
        assert gone(lambda args: parallel(*args)) == expected
