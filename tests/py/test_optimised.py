"""One model of every family under XLA's default optimisation, as users have it.

The other tests compile with less of it, which is where most of their time would go.
"""

from __future__ import annotations

import os

import pytest
from test_models import Run, compare
from test_pipeline import TWO, Pipeline
from test_pipeline import compare as compare_pipeline

pytestmark = [
    pytest.mark.optimised,
    pytest.mark.skipif(
        "xla_backend_optimization_level" in os.environ.get("XLA_FLAGS", ""),
        reason="XLA optimises less here",
    ),
]

FAMILIES = [
    Run("mlp", (2, 4)),
    Run("gpt", (2, 4), {"layers": 1}),
    Run("llama", (2, 4), {"layers": 1}),
    Run("moe", (2, 4), {"layers": 1}),
    Run("vit", (2, 4), {"layers": 1}),
    Run("wide_resnet", (2, 4)),
    Run("unet", (2, 4)),
    Run("encoder_decoder", (2, 4), {"layers": 1}),
    Run("lstm", (2, 4)),
    Run("mixer", (2, 4), {"layers": 1}),
]


@pytest.mark.parametrize("run", FAMILIES, ids=lambda run: run.model)
def test_models_equal_jit(run: Run) -> None:
    compare(run)


def test_a_pipeline_equals_jit() -> None:
    compare_pipeline(Pipeline("gpt", 2, TWO, options={"layers": 2}))
