"""What is found follows from counted work: no clock, load, processor or store decides."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from graphs import random_priced
from often import seldom

import stablehlo_alpa as sa
from stablehlo_alpa.errors import InfeasibleError
from stablehlo_alpa.intra_op import Solution, SolveOptions, SolverCache, solve
from stablehlo_alpa.intra_op.costs import Costs
from stablehlo_alpa.intra_op.exact import minimize
from stablehlo_alpa.intra_op.solver import solve_anew
from stablehlo_alpa.intra_op.work import LATE, Work
from stablehlo_alpa.planning import Plan
from stablehlo_alpa.store import Store

# Of instances that take longer than any limit here.
HARD = {"nodes": 60, "edges": 160, "strategies": (4, 8), "reach": 12}


def hard(seed: int, gathers: bool = True) -> tuple[Any, float]:
    """A programme, and a budget halfway between what its fastest and its leanest choices take."""
    priced = random_priced(seed, **HARD, gathers=gathers)
    free = solve(priced, SolveOptions(time_limit_s=0.5))
    with pytest.raises(InfeasibleError) as refused:
        solve(priced, SolveOptions(memory_budget=0.0, time_limit_s=0.2))
    assert refused.value.needed_bytes is not None
    return priced, 0.5 * (free.memory_peak_bytes + refused.value.needed_bytes)


def told(found: Solution) -> tuple[Any, ...]:
    return found.choice.tolist(), found.gap, found.status, found.work_s, found.method


@contextmanager
def busy() -> Iterator[None]:
    """Two threads that keep a processor and Python's lock from all others."""
    is_over = threading.Event()

    def turn() -> None:
        while not is_over.is_set():
            sum(range(10_000))

    threads = [threading.Thread(target=turn) for _ in range(2)]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        is_over.set()
        for one in threads:
            one.join()


def slowed(monkeypatch: pytest.MonkeyPatch, by: float) -> None:
    """A machine that takes so many times as long for all it does."""
    clock = time.monotonic
    begin = clock()
    monkeypatch.setattr(time, "monotonic", lambda: begin + by * (clock() - begin))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "limit_s", "gathers"),
    [
        *((1, 0.02, False), (2, 0.3, False), (2, 0.05, True)),
        *(seldom(number, limit_s, False) for number, limit_s in ((2, 0.02), (1, 0.3))),
        *(seldom(number, limit_s, True) for number, limit_s in ((1, 0.3), (1, 0.05), (2, 0.3))),
    ],
)
def test_a_limit_ends_at_the_same_place_on_a_slow_machine(
    seed: int, limit_s: float, gathers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced, budget = hard(seed, gathers)
    options = SolveOptions(memory_budget=budget, time_limit_s=limit_s, budget_gap=0.0)
    first = solve(priced, options)
    assert first.gap > 0, "an instance that the limit does not cut short shows nothing"
    with busy():
        assert told(solve(priced, options)) == told(first)
    slowed(monkeypatch, 4.0)
    assert told(solve(priced, options)) == told(first)


def test_the_clock_is_a_last_resort_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    costs = Costs.of(random_priced(3, **HARD))
    work = Work(deadline=0.0)
    found = minimize(costs, work=work)
    assert found.status == "given up"
    assert work.is_late
    assert work.left_s() == 0.0
    assert LATE in caplog.text


@pytest.mark.slow
def test_what_the_clock_has_ended_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced, budget = hard(1)
    store, options = Store(tmp_path), SolveOptions(memory_budget=budget, time_limit_s=0.5)
    with monkeypatch.context() as late:
        late.setattr(Work, "of", lambda limit_s: Work(limit_s, deadline=0.0))
        found = solve(priced, options, store=store)
    assert found.is_late
    kept = solve(priced, options, store=store)
    assert not kept.is_late
    assert store.asked == (0, 4)
    assert told(solve(priced, options, store=store)) == told(kept) == told(solve(priced, options))
    assert store.asked[0] == 1


@pytest.mark.slow
def test_a_longer_limit_is_not_answered_by_a_shorter_one(tmp_path: Path) -> None:
    """In either order of the questions, so that what was asked before changes no answer."""
    priced, budget = hard(2)
    limits = [SolveOptions(memory_budget=budget, time_limit_s=one) for one in (0.05, 0.4)]
    plain = [told(solve(priced, one)) for one in limits]
    assert plain[0] != plain[1]
    for number, order in enumerate(([0, 1], [1, 0])):
        store = Store(tmp_path / str(number))
        for _ in range(2):
            assert [told(solve(priced, limits[at], store=store)) for at in order] == [
                plain[at] for at in order
            ]


def test_tables_of_other_problems_change_neither_choice_nor_count() -> None:
    """Of equal choices the first is taken, whatever a cache numbered tables before."""
    cache = SolverCache()
    for seed in range(8):
        priced = random_priced(seed, nodes=24, edges=50, strategies=(2, 5), ties=True, reach=6)
        alone, shared = solve_anew(priced), solve_anew(priced, cache=cache)
        assert told(alone) == told(shared)


def _as_it_is(_: pytest.MonkeyPatch) -> None:
    pass


CHANGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "again": _as_it_is,
    "slow": lambda patch: slowed(patch, 4.0),
    "slow and busy": lambda patch: slowed(patch, 4.0),
    "one processor": lambda patch: patch.setattr(os, "cpu_count", lambda: 1),
    "many processors": lambda patch: patch.setattr(os, "cpu_count", lambda: 16),
}


OFTEN = {"slow", "one processor"}

# Hardly more than one stage needs.
WIDTH, LAYERS, BUDGET = 512, 6, 66 << 20


def loss(weights: Any, batch: jax.Array) -> jax.Array:
    x = batch
    for up, down in weights:
        x = x + jax.numpy.tanh(x @ up) @ down
    return jax.numpy.mean(x**2)


def step(weights: Any, moments: Any, batch: jax.Array) -> Any:
    gradients = sa.grad(loss)(weights, batch)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
    return jax.tree.map(lambda w, m: w - 0.1 * m, weights, moments), moments


def planned(store: Any = False, budget: int = BUDGET) -> Plan:
    method = sa.PipeshardParallel(
        layers=sa.AutoLayers(num_layers=LAYERS), memory_budget=budget, num_micro_batches=8
    )
    parallel = sa.parallelize(step, method=method, cluster="v100-16gb:1x4", store=store)
    up = jax.ShapeDtypeStruct((WIDTH, 4 * WIDTH), np.float32)
    down = jax.ShapeDtypeStruct((4 * WIDTH, WIDTH), np.float32)
    weights = [(up, down)] * LAYERS
    return parallel.plan(weights, weights, jax.ShapeDtypeStruct((256, WIDTH), np.float32))


@pytest.fixture(scope="module")
def first() -> Plan:
    plan = planned()
    assert len(plan.stages) > 1
    return plan


@pytest.mark.parametrize("budget", [70, 74])
def test_what_less_memory_has_a_plan_for_more_has_too(budget: int) -> None:
    """64 MiB are enough.

    Stages that are found for more take too much once they are lowered, and others are searched.
    """
    plan = planned(budget=budget << 20)
    assert plan.peak_bytes <= budget << 20
    assert plan.bound_s is not None
    assert plan.bound_s <= plan.step_time_s


def digest(plan: Plan) -> tuple[Any, ...]:
    """All that devices run, and what was proved."""
    texts = tuple(one.texts for one in plan.stages)
    choices = tuple(one.solution.choice.tobytes() for one in plan.stages)
    return texts, choices, plan.step_time_s, plan.bracket


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(change, marks=pytest.mark.slow if change in OFTEN else pytest.mark.matrix)
        for change in CHANGES
    ],
)
def test_a_pipeline_is_planned_alike(
    change: str, first: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    CHANGES[change](monkeypatch)
    with busy() if "busy" in change else threading.Lock():
        assert digest(planned()) == digest(first)


@pytest.mark.slow
def test_a_pipeline_is_planned_alike_from_the_store(first: Plan, tmp_path: Path) -> None:
    for _ in range(2):
        assert digest(planned(Store(tmp_path, worth_s=0.0))) == digest(first)
