"""Scans over layers in pipelines: each stage holds its part of the stack, and computes the same."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

pytest.importorskip("stablehlo_alpa._core")

from alpa_runtime import InputError, StackedArray
from comparing import assert_equals_jit
from models import gpt
from scanned import Scanned, pipeline

import stablehlo_alpa as sa

ADAM = optax.adamw(1e-2)


def start(model: Scanned, optimiser: optax.GradientTransformation) -> Any:
    params = model.init()
    return params, optimiser.init(params)


def trains(
    model: Scanned,
    method: Any,
    optimiser: optax.GradientTransformation = ADAM,
    tolerance: float = 1e-4,
    **options: Any,
) -> tuple[Any, Any]:
    """Steps of both, each on its own results; the parallel function and its last state."""
    step = model.step(optimiser)
    parallel = sa.parallelize(step, method=method, **({"donate_argnums": 0} | options))
    plain = jax.jit(step)
    ours, theirs = start(model, optimiser), start(model, optimiser)
    for batch in model.batches(3):
        ours, result = parallel(ours, batch)
        theirs, expected = plain(theirs, batch)
        assert_equals_jit(result, expected, tolerance)
    assert_equals_jit(ours, theirs, tolerance)
    return parallel, ours


def bytes_per_device(state: Any) -> Counter[jax.Device]:
    found: Counter[jax.Device] = Counter()
    for leaf in jax.tree.leaves(state):
        for part in leaf.parts if isinstance(leaf, StackedArray) else [leaf]:
            for shard in part.addressable_shards:
                found[shard.device] += shard.data.nbytes
    return found


def test_each_stage_holds_its_part_of_the_stack_and_of_the_optimiser_state() -> None:
    model = Scanned(layers=8, has_ends=False)
    method = pipeline(4, stages=sa.UniformStages(4, methods=sa.DataParallel()))
    parallel, state = trains(model, method, optax.adam(1e-2))
    whole = sum(leaf.nbytes for leaf in jax.tree.leaves(start(model, optax.adam(1e-2))) if leaf.ndim)
    found = bytes_per_device([leaf for leaf in jax.tree.leaves(state) if leaf.ndim])
    assert found == dict.fromkeys(jax.devices(), whole // 4)
    for leaf in jax.tree.leaves(state):
        assert isinstance(leaf, jax.Array)
    # Nothing of the stack is an input of two stages, and none goes from one to another.
    plan = parallel.plan(state, next(model.batches(1)))
    row = WIDTH_BYTES * 2
    sent = sum(one.bytes for one in plan.transfers() if one.bytes >= row)
    assert sent == 0


@pytest.mark.parametrize(
    "model",
    [
        Scanned(keeps=True),
        Scanned(dim=1),
        Scanned(is_reversed=True, shares=True),
        Scanned(dtype=jnp.bfloat16),
        Scanned(policy=jax.checkpoint_policies.dots_saveable),
        Scanned(unroll=2),
        Scanned(layers=6),
    ],
    ids=["keeps", "dim 1", "reversed", "bf16", "policy", "unrolled", "uneven"],
)
def test_models_train_as_on_one_device(model: Scanned) -> None:
    tolerance = 3e-2 if model.dtype == jnp.bfloat16 else 1e-4
    trains(model, pipeline(4), optax.sgd(1e-2, momentum=0.9), tolerance)
