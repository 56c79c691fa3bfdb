"""Ctrl-C during a search keeps what was found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from tanh_layers import step
from typer.testing import CliRunner

import stablehlo_alpa as sa
import stablehlo_alpa.inter_op.sweep
from stablehlo_alpa.cli import app

WEIGHTS = [0.3 * np.random.default_rng(i).normal(size=(16, 16)).astype("f") for i in range(2)]
BATCH = np.random.default_rng(9).normal(size=(8, 16)).astype("f")
METHOD = sa.PipeshardParallel(layers=sa.AutoLayers(num_layers=2))


@pytest.fixture
def interrupt_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Interrupts the search when it has tried so many plans."""
    # The package has a function of the module's name.
    sweep = sys.modules["stablehlo_alpa.inter_op.sweep"]

    def set_up(count: int) -> None:
        plan_pipeline = sweep.plan_pipeline
        tried: list[Any] = []

        def plan(*args: Any) -> sa.Plan:
            if len(tried) == count:
                raise KeyboardInterrupt
            tried.append(args)
            return plan_pipeline(*args)

        monkeypatch.setattr(sweep, "plan_pipeline", plan)

    return set_up


def test_the_best_plan_so_far_is_kept(interrupt_after: Callable[[int], None]) -> None:
    interrupt_after(2)
    with pytest.raises(sa.SearchInterrupted, match="the best so far, <") as found:
        sa.parallelize(step, method=METHOD).plan(WEIGHTS, BATCH)
    plan = found.value.plan
    assert len(plan.tried) == 2
    assert plan.step_time_s == min(one.step_time_s or np.inf for one in plan.tried)
    assert plan.bracket is not None


def test_without_a_plan_there_is_nothing_to_keep(interrupt_after: Callable[[int], None]) -> None:
    interrupt_after(0)
    with pytest.raises(KeyboardInterrupt) as found:
        sa.parallelize(step, method=METHOD).plan(WEIGHTS, BATCH)
    assert not isinstance(found.value, sa.SearchInterrupted)


def test_a_function_is_planned_anew_after_an_interrupt(
    interrupt_after: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    parallel = sa.parallelize(step, method=METHOD)
    interrupt_after(1)
    with pytest.raises(sa.SearchInterrupted):
        parallel(WEIGHTS, BATCH)
    monkeypatch.undo()
    for a, b in zip(
        jax.tree.leaves(parallel(WEIGHTS, BATCH)),
        jax.tree.leaves(jax.jit(step)(WEIGHTS, BATCH)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("plan", "gpt-tiny", "--cluster", "p3.16xlarge:1", "--method", "pipeshard"), "gpt_tiny"),
        (
            ("compare", "gpt-tiny", "--clusters", "p3.16xlarge:1", "--methods", "pipeshard,shard"),
            "pipeshard",
        ),
    ],
    ids=["plan", "compare"],
)
def test_commands_print_what_there_was(
    command: tuple[str, ...], shown: str, interrupt_after: Callable[[int], None]
) -> None:
    interrupt_after(1)
    found = CliRunner().invoke(app, [*command, "--batch", "16", "--sequence", "32"])
    assert found.exit_code == 130, found.output
    assert "interrupted" in found.stderr
    assert shown in found.stdout
