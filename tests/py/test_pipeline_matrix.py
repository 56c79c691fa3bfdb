"""Every model under every schedule on two, four and unequal stages: `make test-matrix`.

Minutes per model; the choice of it that `make test` takes is in ``test_pipeline.py``.
"""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest
from test_models import STEPS, assert_trees_close
from test_pipeline import FOUR, TWO, UNEQUAL, Pipeline, make_case, oracle, parallel_step, train

from stablehlo_alpa import UniformStages

pytestmark = pytest.mark.matrix

# Name, options, and whether micro-batches are batches of their own.
MODELS = [
    ("gpt", {"layers": 4}, False),
    ("gpt", {"layers": 4, "dropout": 0.0, "is_scanned": True}, False),
    ("moe", {}, False),
    ("wide_resnet", {}, True),
    ("encoder_decoder", {}, False),
    ("unet", {}, False),
    ("llama", {"layers": 4}, False),
]
STAGES = {"two": TWO, "four": FOUR, "unequal": UNEQUAL}


def results(pipeline: Pipeline, reference: tuple[Any, Any]) -> tuple[Any, Any]:
    """Trains, and compares with the step of the user."""
    case = make_case(pipeline)
    state, metrics = train(parallel_step(case, pipeline), case)
    expected_state, expected = reference
    for step in range(STEPS):
        found, wanted = metrics[step]["loss"], expected[step]["loss"]
        assert_trees_close(found, wanted, 1e-5, f"{pipeline.id}: loss")
    gradients = expected[0]["gradients"]
    assert_trees_close(metrics[0]["gradients"], gradients, 1e-5, f"{pipeline.id}: gradients")
    assert_trees_close(state, expected_state, 1e-4, f"{pipeline.id}: state")
    return state, metrics


def reference_of(pipeline: Pipeline) -> tuple[Any, Any]:
    case = make_case(pipeline)
    return train(jax.jit(oracle(case, pipeline)), case)


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("stages", STAGES.values(), ids=STAGES)
@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: "-".join([model[0], *map(str, model[1])])
)
def test_schedules(model: Any, stages: Any, count: int) -> None:
    name, options, is_independent = model

    def pipeline(schedule: str) -> Pipeline:
        return Pipeline(name, count, stages, schedule, options, is_independent=is_independent)

    reference = reference_of(pipeline("1f1b"))
    found = {s: results(pipeline(s), reference) for s in ("gpipe", "1f1b", "zero_bubble")}
    # Both run the same programs on the same numbers.
    for a, b in zip(jax.tree.leaves(found["gpipe"]), jax.tree.leaves(found["1f1b"]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize(
    "model", MODELS, ids=lambda model: "-".join([model[0], *map(str, model[1])])
)
def test_interleaved(model: Any, count: int) -> None:
    name, options, is_independent = model
    for stages, shape in itertools.product((4,), ((4,), (2, 2))):
        pipeline = Pipeline(
            name,
            count,
            UniformStages(stages, shape),
            "interleaved",
            options,
            {"num_chunks": 2},
            is_independent,
        )
        results(pipeline, reference_of(pipeline))
