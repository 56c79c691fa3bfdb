"""Of many logical meshes the fastest is found, though most are looked at roughly."""

from __future__ import annotations

import importlib
import math
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from often import seldom

import stablehlo_alpa as sa
from stablehlo_alpa.errors import InfeasibleError

CLUSTER = "tpu-v5e:4x8"
LAYERS, WIDTH, BATCH = 3, 512, 64


def step(params: Any, x: jax.Array) -> Any:
    def loss(p: Any) -> jax.Array:
        h = x
        for wide, narrow in p:
            h = h + jnp.tanh(h @ wide) @ narrow
        return jnp.mean(h**2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def arguments(batch: int = BATCH) -> tuple[Any, jax.ShapeDtypeStruct]:
    def shaped(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    params = [(shaped(WIDTH, 4 * WIDTH), shaped(4 * WIDTH, WIDTH)) for _ in range(LAYERS)]
    return params, shaped(batch, WIDTH)


def plan_on(shape: tuple[int, ...] | None, budget: float | None, count: int = 1) -> sa.Plan:
    """The plan of a mesh, or of any for None, of so many micro-batches."""
    method = sa.ShardParallel(mesh_shape=shape, memory_budget=budget, num_micro_batches=count)
    return sa.parallelize(step, method=method, cluster=CLUSTER).plan(*arguments())


def solution_on(shape: tuple[int, ...] | None, budget: float | None) -> Any:
    """What is chosen on a mesh; on any for None, where no more than one micro-batch is run."""
    return plan_on(shape, budget).stages[0].solution


@pytest.mark.parametrize("share", [seldom(0.3), seldom(0.5), 0.8])
def test_the_fastest_of_many_meshes_is_found(share: float) -> None:
    """As good as the best mesh alone, but for the gap that is good enough; none where none is."""
    free = solution_on(None, None)
    budget = share * free.memory_peak_bytes
    alone = []
    for shape in ((32,), (2, 16), (4, 8), (8, 4), (16, 2)):
        try:
            alone.append(solution_on(shape, budget).objective_s)
        except InfeasibleError:
            alone.append(math.inf)
    assert sum(map(math.isfinite, alone)) > 1
    plan = plan_on(None, budget)
    found = plan.stages[0].solution
    assert plan.bound_s is not None
    assert plan.gap == pytest.approx(1 - plan.bound_s / found.objective_s)
    assert 0 < plan.bound_s <= min(alone)
    assert found.memory_peak_bytes <= budget * (1 + 1e-6)
    assert found.objective_s <= min(alone) * (1 + 2e-3)
    assert found.objective_s >= free.objective_s * (1 - 1e-9)


def test_without_a_budget_the_best_of_all_meshes_is_proved() -> None:
    for count in (1, 4):
        plan = plan_on(None, None, count)
        assert plan.gap == pytest.approx(0, abs=1e-5)
        assert plan.bound_s == pytest.approx(plan.stages[0].solution.objective_s, rel=1e-5)


Asked = list[tuple[tuple[int, ...], int, float]]


def note_solutions(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Notes from here on for what strategies are looked for.

    Of each time the shape of the mesh, the number of micro-batches, and bytes that are proved to be
    needed, zero where there is a plan.
    """
    search = importlib.import_module("stablehlo_alpa.planning.mesh_search")
    asked: Asked = []
    original = search._solved

    def noted(subject: Any, problem: Any, options: Any, cache: Any) -> Any:
        least = 0.0
        try:
            return original(subject, problem, options, cache)
        except InfeasibleError as error:
            least = error.least_bytes or 0.0
            raise
        finally:
            asked.append((problem.mesh.shape, options.num_micro_batches, least))

    monkeypatch.setattr(search, "_solved", noted)
    return asked


def test_what_fits_no_mesh_is_asked_once_and_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two orders of the axes one is asked; the bound is that of the meshes alone."""
    budget = 0.05 * solution_on(None, None).memory_peak_bytes
    alone = {}
    for shape in ((32,), (2, 16), (16, 2), (4, 8), (8, 4)):
        with pytest.raises(InfeasibleError) as refused:
            solution_on(shape, budget)
        alone[shape] = refused.value
    for shape in ((2, 16), (4, 8)):
        assert alone[shape].least_bytes == pytest.approx(alone[shape[::-1]].least_bytes)
        assert alone[shape].needed_bytes == pytest.approx(alone[shape[::-1]].needed_bytes)
    asked = note_solutions(monkeypatch)
    with pytest.raises(InfeasibleError, match="more; largest live tensors there: ") as refused:
        solution_on(None, budget)
    assert len(asked) <= 3 + 1
    least, needed = refused.value.least_bytes, refused.value.needed_bytes
    assert least is not None
    assert needed is not None
    assert budget < least <= min(error.needed_bytes or 0.0 for error in alone.values())
    assert needed >= least


def test_meshes_that_cannot_fit_are_not_asked_for_more_micro_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twice as many micro-batches need half of the memory at least, on the same mesh.

    24 devices in one row split no size of the step.
    """
    batch, cluster = 4096, "dgx-h100:3"
    method = sa.ShardParallel(num_micro_batches=1, pad=False)
    whole = sa.parallelize(step, method=method, cluster=cluster).plan(*arguments(batch))
    budget = 0.3 * whole.stages[0].solution.memory_peak_bytes
    method = sa.ShardParallel(memory_budget=budget, pad=False)
    asked = note_solutions(monkeypatch)
    found = sa.parallelize(step, method=method, cluster=cluster).plan(*arguments(batch))
    assert found.runtime.num_micro_batches > 1
    assert max(found.simulation.peak_bytes) <= budget
    # Where a plan was found, no more is known of the other meshes.
    refused = [one for one in asked if all(least for _, n, least in asked if n == one[1])]
    left_out = 0
    for count in {count for _, count, _ in asked}:
        tried = {shape for shape, number, _ in asked if number == count}
        for shape in {shape for shape, _, _ in asked}:
            fewer: dict[int, list[float]] = {}
            for _, number, least in (o for o in refused if o[0] == shape and o[1] < count):
                fewer.setdefault(number, []).append(least)
            cannot = any(min(least) * n > budget * count for n, least in fewer.items())
            assert not (cannot and shape in tried)
            left_out += cannot
    assert left_out > 0
