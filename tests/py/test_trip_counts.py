"""Loops that end when values say so count as often as their author says.

What they cost is held against the same loop of a known number of turns; what they compute does not
depend on the hint.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen
from jax import lax
from jax.sharding import AxisType, Mesh
from test_command_line import ended, printed

import stablehlo_alpa as sa
from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.planning import Plan

SIZE = 256
TURNS = 7
CLUSTER = ClusterSpec.preset("p4d.24xlarge:2")
METHOD = sa.DataParallel(mesh_shape=(16,))
ROWS = jax.ShapeDtypeStruct((1024, SIZE), jnp.float32)
SQUARE = jax.ShapeDtypeStruct((SIZE, SIZE), jnp.float32)


def _turn(w: Any, x: Any, y: Any) -> Any:
    # The mean over all rows is a collective of every turn.
    return jnp.tanh(y @ w + x) - 0.1 * jnp.mean(y, axis=0)


def until_close(w: Any, x: Any) -> Any:
    """A fixed point, which is found after as many turns as it takes."""

    def body(carry: Any) -> Any:
        y, _ = carry
        new = _turn(w, x, y)
        return new, jnp.abs(new - y).max()

    return lax.while_loop(lambda carry: carry[1] > 1e-3, body, (x, jnp.float32(1)))[0]


def decaying(w: Any, x: Any) -> Any:
    """Turns of which each is of every row by itself, until a number of `w` has become small."""

    def body(carry: Any) -> Any:
        y, weight = carry
        return jnp.tanh(y @ w + x), weight * jnp.abs(w[0, 0])

    return lax.while_loop(lambda carry: carry[1] > 1e-3, body, (x, jnp.float32(1)))[0]


def counted(turns: int) -> Callable[[Any, Any], Any]:
    """The same turns, as often as is said."""

    def run(w: Any, x: Any) -> Any:
        def body(_: Any, carry: Any) -> Any:
            y, _ = carry
            new = _turn(w, x, y)
            return new, jnp.abs(new - y).max()

        return lax.fori_loop(0, turns, body, (x, jnp.float32(1)))[0]

    return run


def planned(fun: Callable[..., Any], hint: int | None = None, **options: Any) -> Plan:
    given: Any = {"method": METHOD, "cluster": CLUSTER, "batch_argnums": 1} | options
    return sa.parallelize(fun, trip_count_hint=hint, **given).plan(SQUARE, ROWS)


def seconds(plan: Plan) -> float:
    return sum(phase.time_s for stage in plan.stages for phase in stage.phases)


def sent(plan: Plan) -> dict[str, float]:
    """Bytes of collectives of a run, by kind."""
    found: dict[str, float] = {}
    for stage in plan.stages:
        for phase in stage.phases:
            for one in phase.collectives:
                found[one.kind] = found.get(one.kind, 0.0) + one.bytes
    return found


def test_a_hint_costs_what_so_many_turns_cost() -> None:
    plan, known = planned(until_close, TURNS), planned(counted(TURNS))
    assert seconds(plan) == pytest.approx(seconds(known), rel=0.02)
    assert seconds(planned(until_close)) == pytest.approx(seconds(planned(counted(1))), rel=0.02)
    assert seconds(plan) > 5 * seconds(planned(until_close))
    assert sent(plan) == pytest.approx(sent(known), rel=0.02)
    assert sum(sent(plan).values()) > 0


def test_a_hint_does_not_touch_loops_that_are_known() -> None:
    assert seconds(planned(counted(TURNS), 1000)) == seconds(planned(counted(TURNS)))


@pytest.mark.parametrize(
    ("kind", "start", "turns"),
    [("uint32", 2**31 - 3, TURNS), ("uint32", 2**32 - 8, TURNS), ("uint8", 100, 100)],
)
def test_limits_of_unsigned_counters_are_large_numbers(kind: str, start: int, turns: int) -> None:
    """The first bit of the limit is no sign."""

    def loop(w: Any, x: Any) -> Any:
        first, limit = getattr(jnp, kind)(start), getattr(jnp, kind)(start + turns)
        return lax.fori_loop(first, limit, lambda _, y: _turn(w, x, y), x)

    def known(w: Any, x: Any) -> Any:
        return lax.fori_loop(0, turns, lambda _, y: _turn(w, x, y), x)

    assert seconds(planned(loop)) == pytest.approx(seconds(planned(known)), rel=0.01)
    random = np.random.default_rng(0)
    w = (random.normal(size=(16, 16)) / 8).astype("f")
    x = random.normal(size=(32, 16)).astype("f")
    step = sa.parallelize(loop, method=sa.ShardParallel(mesh_shape=(8,)))
    np.testing.assert_allclose(step(w, x), jax.jit(loop)(w, x), rtol=1e-5, atol=1e-5)


def _no_turn_to_go(w: Any, x: Any) -> Any:
    return lax.fori_loop(5, 3, lambda _, y: _turn(w, x, y), x)


def _no_element_to_scan(w: Any, x: Any) -> Any:
    return lax.scan(lambda y, _: (_turn(w, x, y), None), x, None, length=0)[0]


@pytest.mark.parametrize("fun", [_no_turn_to_go, _no_element_to_scan])
def test_products_of_loops_without_turns_cost_nothing(fun: Callable[[Any, Any], Any]) -> None:
    random = np.random.default_rng(0)
    w, x = random.normal(size=(16, 16)), random.normal(size=(32, 16))
    for method in (sa.ShardParallel(mesh_shape=(8,)), sa.DataParallel()):
        step = sa.parallelize(fun, method=method)
        np.testing.assert_array_equal(step(w, x), jax.jit(fun)(w, x))
    assert (
        planned(fun).stages[0].phases[0].compute_s
        < planned(counted(1)).stages[0].phases[0].compute_s
    )


def test_the_plan_says_how_often_a_loop_counts() -> None:
    said = [text for text in planned(until_close, TURNS).remarks if "trip count" in text]
    assert len(said) == 1
    assert f"its costs are counted {TURNS} times, as the hint says" in said[0]
    (unsaid,) = [text for text in planned(until_close).remarks if "trip count" in text]
    assert "its costs are counted once" in unsaid


def test_a_loop_inside_of_a_loop_counts_for_each_turn() -> None:
    def nested(w: Any, x: Any) -> Any:
        return lax.while_loop(lambda y: jnp.abs(y).max() > 1e-3, lambda y: until_close(w, y) / 2, x)

    once, often = (planned(nested, hint).stages[0].phases[0].compute_s for hint in (1, TURNS))
    # What the outer loop does beside the inner one counts for its own turns only.
    assert 0.6 * TURNS**2 < often / once < TURNS**2


def _of_haiku(w: Any, x: Any) -> Any:
    def run(x: Any) -> Any:
        layer = hk.Linear(SIZE, w_init=lambda *_: w)
        layer(x)
        return hk.while_loop(lambda y: jnp.abs(y).max() > 1e-3, lambda y: layer(y) / 2, x)

    apply = hk.without_apply_rng(hk.transform(run)).apply
    return apply({"linear": {"w": w, "b": jnp.zeros(SIZE)}}, x)


class _Settling(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        layer = linen.Dense(SIZE)
        return linen.while_loop(
            lambda _, y: jnp.abs(y).max() > 1e-3, lambda _, y: layer(y) / 2, layer, x
        )


def _of_flax(w: Any, x: Any) -> Any:
    parameters = {"params": {"Dense_0": {"kernel": w, "bias": jnp.zeros(SIZE)}}}
    return _Settling().apply(parameters, x)


@pytest.mark.parametrize("fun", [_of_haiku, _of_flax])
def test_loops_of_models_count_as_often(fun: Callable[..., Any]) -> None:
    plan = planned(fun, TURNS)
    assert any(f"counted {TURNS} times" in text for text in plan.remarks)
    assert seconds(plan) > (TURNS - 2) * seconds(planned(fun))


def test_results_do_not_depend_on_the_hint() -> None:
    random = np.random.default_rng(0)
    w = (random.normal(size=(32, 32)) / 32).astype("f")
    x = random.normal(size=(64, 32)).astype("f")
    expected = jax.jit(until_close)(w, x)
    for hint in (None, 1, 10**6):
        step = sa.parallelize(
            until_close,
            method=sa.ShardParallel(mesh_shape=(8,)),
            batch_argnums=1,
            trip_count_hint=hint,
        )
        np.testing.assert_allclose(step(w, x), expected, rtol=1e-5, atol=1e-5)
        assert "alpa." not in step.plan(w, x).module_text("local")


def test_micro_batches_count_their_loops() -> None:
    def step(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            return ((x @ w - lax.stop_gradient(decaying(lax.stop_gradient(w), x))) ** 2).mean()

        return w - sa.grad(loss)(w)

    method = sa.ShardParallel(mesh_shape=(16,), num_micro_batches=2)
    once, often = (
        sum(phase.compute_s for phase in planned(step, hint, method=method).stages[0].phases)
        for hint in (1, 100)
    )
    assert often > 20 * once


def test_stages_of_a_pipeline_count_their_loops() -> None:
    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            y = x
            for w in params:
                target = lax.stop_gradient(decaying(lax.stop_gradient(w), y))
                y = jnp.tanh(y @ w) + target
            return (y**2).mean()

        return jax.tree.map(lambda w, g: w - g, params, sa.grad(loss)(params))

    method = sa.PipeshardParallel(
        num_micro_batches=4, layers=sa.AutoLayers(2), stages=sa.UniformStages(2)
    )
    once, often = (
        sa.parallelize(
            step, method=method, cluster=CLUSTER, batch_argnums=1, trip_count_hint=hint
        ).plan([SQUARE, SQUARE], ROWS)
        for hint in (1, 100)
    )
    assert len(often.stages) == 2
    for before, after in zip(once.stages, often.stages, strict=True):
        assert after.phases[0].compute_s > 20 * before.phases[0].compute_s


@pytest.mark.parametrize("hint", [0, -1, 1.5, "3", True, 1 << 63])
def test_what_is_no_count_is_refused_by_name(hint: Any) -> None:
    message = rf"^trip_count_hint must be None or an integer >= 1, got {hint!r}$"
    with pytest.raises(ValueError, match=message):
        sa.parallelize(until_close, trip_count_hint=hint)
    with pytest.raises(ValueError, match=message):
        sa.partition(until_close, trip_count_hint=hint)


def test_numbers_of_numpy_are_counts() -> None:
    hint: Any = np.int32(TURNS)
    assert seconds(planned(until_close, hint)) == seconds(planned(until_close, TURNS))


def test_the_hint_weighs_the_shardings_of_jit() -> None:
    devices = np.array(jax.devices()[:8])
    mesh = Mesh(devices, ("x",), axis_types=(AxisType.Auto,))
    into, _ = sa.shardings(until_close, mesh, SQUARE, ROWS, trip_count_hint=TURNS)
    assert len(into) == 2


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "loop.mlir"
    path.write_text(jax.jit(until_close).lower(SQUARE, ROWS).as_text())
    return path


def test_the_command_line_takes_a_hint(module: Path) -> None:
    arguments = ("plan", str(module), "--mesh", "8")
    once = printed(*arguments)
    often = printed(*arguments, "--trip-count-hint", "100")
    assert often["step_s"] > 20 * once["step_s"]


@pytest.mark.slow
def test_the_command_line_refuses_what_is_no_count(module: Path) -> None:
    done = ended("plan", str(module), "--mesh", "8", "--trip-count-hint", "0")
    assert done.returncode == 2
    assert "--trip-count-hint" in done.stderr
