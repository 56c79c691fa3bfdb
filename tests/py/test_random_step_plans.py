"""Any choice of strategies of a whole step computes what ``jax.jit`` computes.

Steps are random, and so is the plan of each: through loops and branches, partial sums,
micro-batches and the phases of stages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from random_programs import Recipe, make
from test_random_programs import assert_same, examples, run

import stablehlo_alpa as sa
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.errors import StablehloAlpaError
from stablehlo_alpa.intra_op import Solution
from stablehlo_alpa.planning import mesh_search

METHODS: dict[str, Callable[[], sa.Method]] = {
    "whole batch": lambda: sa.ShardParallel(mesh_shape=(2, 4), num_micro_batches=1),
    "micro-batches": lambda: sa.ShardParallel(mesh_shape=(2, 4), num_micro_batches=2),
    "more micro-batches": lambda: sa.ShardParallel(mesh_shape=(2, 2, 2), num_micro_batches=4),
    "stages": lambda: sa.PipeshardParallel(
        num_micro_batches=2, stages=sa.UniformStages(2), layers=sa.AutoLayers(num_layers=2)
    ),
}
QUICK, MANY = 5, 120
# Loops and branches, differentiated.
CONTROL_FLOW = ("counted_loop", "stacked", "while_loop", "branch")
FLOWING = [Recipe(blocks=(name, "dense"), extras=("outputs",)) for name in CONTROL_FLOW]


def choose_at_random(seed: int) -> Callable[..., Solution]:
    """A solver that takes any strategy of each operator, each as likely as any other."""
    rng = np.random.default_rng(seed)

    def solve(priced: PricedGraph, *_: Any, **__: Any) -> Solution:
        graph = priced.graph
        choice = [
            rng.choice(np.flatnonzero(graph.allowed[graph.span(node)]))
            for node in range(graph.num_nodes)
        ]
        return Solution(
            choice=np.array(choice, np.int32),
            compute_s=0.0,
            communication_s=0.0,
            reshard_s=0.0,
            memory_peak_bytes=0.0,
            memory_peak_point=-1,
            status="optimal",
            gap=0.0,
            spent_s=0.0,
            lp_integral=True,
        )

    return solve


def check(method: str, recipes: Sequence[Recipe], patch: pytest.MonkeyPatch) -> None:
    """Random plans of random steps against ``jax.jit``."""
    num_run = 0
    for seed, recipe in enumerate(recipes):
        if method == "stages" and recipe.gradients == "jax":
            continue
        patch.setattr(mesh_search, "solve", choose_at_random(seed))
        program = make(recipe)
        parallel = sa.parallelize(program.step, method=METHODS[method](), **program.options)
        try:
            found = run(program, parallel)
        except StablehloAlpaError as error:
            # What cannot be cut into micro-batches is said before there is a plan.
            if "micro-batch" not in str(error):
                raise
            continue
        expected = run(program, jax.jit(program.step, **program.options))
        assert_same(found, expected, program.tolerance, f"{method}, seed {seed}, {recipe}")
        num_run += 1
    assert num_run >= len(recipes) // 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["whole batch", pytest.param("micro-batches", marks=pytest.mark.matrix), *list(METHODS)[2:]],
)
def test_random_plans_of_steps_equal_jit(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    number = list(METHODS).index(method)
    check(
        method, [*FLOWING[number % 2 :: 2], *examples(QUICK)[number :: len(METHODS)]], monkeypatch
    )


@pytest.mark.matrix
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("method", METHODS)
def test_random_plans_of_many_steps_equal_jit(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check(method, [*FLOWING, *examples(MANY)], monkeypatch)
