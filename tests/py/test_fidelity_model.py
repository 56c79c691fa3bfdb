"""The model that published rows are priced with: what it computes equals jax.jit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from often import seldom

pytest.importorskip("stablehlo_alpa._core")

import stablehlo_alpa as sa

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from megatron_model import GPTSizes, gradients, step, step_shapes

SIZES = GPTSizes(2, 64, 8, 8, length=32, vocabulary=128)


def arrays() -> tuple[Any, Any]:
    """Random parameters, scales of norms one, and tokens."""
    rng = np.random.default_rng(0)
    state, tokens = step_shapes(SIZES)

    def drawn(path: Any, one: Any) -> jax.Array:
        name = path[-1].key
        is_scale = name == "scale" or (name.startswith("norm") and not name.endswith("bias"))
        return jnp.asarray(is_scale + 0.05 * rng.normal(size=one.shape), one.dtype)

    params = jax.tree_util.tree_map_with_path(drawn, state.params)
    return params, jnp.asarray(rng.integers(0, SIZES.vocabulary, tokens.shape), tokens.dtype)


def test_sizes() -> None:
    state, _ = step_shapes(SIZES)
    assert sum(one.size for one in jax.tree.leaves(state.params)) == SIZES.num_parameters


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        seldom({"tensor": 2, "data": 4}),
        {"tensor": 4, "data": 2, "micro_batch": 2, "recompute": "full"},
        {"tensor": 8, "sequence_parallel": True, "micro_batch": 4, "recompute": "selective"},
    ],
    ids=["none", "full", "selective"],
)
def test_gradients_equal_jit(options: Any) -> None:
    args = arrays()
    ours = sa.parallelize(gradients, method=sa.MegatronParallel(**options))(*args)
    theirs = jax.jit(gradients)(*args)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        # Sums over all tokens in bf16, in another order.
        error, size = float(np.linalg.norm(a - b)), float(np.linalg.norm(b))
        assert error <= 0.05 * max(size, 1e-3)


@pytest.mark.slow
def test_sequence_parallelism_sends_what_megatron_sends() -> None:
    """Per layer and direction two gathers and two scatters of a layer's activations."""
    method = sa.MegatronParallel(tensor=8, sequence_parallel=True, micro_batch=4)
    sizes = [GPTSizes(layers, 1024, 16, 4) for layers in (2, 3)]
    plans = [
        sa.parallelize(step, method=method, donate_argnums=0, cluster="dgx-a100:1").plan(
            *step_shapes(one)
        )
        for one in sizes
    ]
    sent = [
        sum(row.bytes for row in plan.communication() if row.kind == "reduce_scatter")
        for plan in plans
    ]
    assert sent[1] - sent[0] == pytest.approx(4 * 4 * 2048 * 1024 * 2, rel=0.01)


@pytest.mark.parametrize("micro_batch", [1, 8])
def test_masks_are_drawn_as_they_are_read(micro_batch: int) -> None:
    """No device draws the mask of the heads of others."""
    method = sa.MegatronParallel(tensor=8, micro_batch=micro_batch, recompute="selective")
    state, tokens = step_shapes(SIZES)
    plan = sa.parallelize(gradients, method=method).plan(state.params, tokens)
    texts = [plan.module_text(phase) for phase in ("forward", "backward")]
    assert all(f"tensor<{micro_batch}x1x32x32xui32>" in text for text in texts)
    assert not any(f"tensor<{micro_batch}x8x32x32xui32>" in text for text in texts)
