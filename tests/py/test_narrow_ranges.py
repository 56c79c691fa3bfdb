"""Sums of a batch that are put into a type of a smaller range are added up before that.

Half of the batch has a share that is larger than f16 holds; the shares cancel.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("stablehlo_alpa._core")

import stablehlo_alpa as sa

ROWS = np.ones((16, 1), np.float32)
# One in each row, and what adds up to nothing over all of them.
LARGE = (1 + 1e5 * np.repeat([1.0, -1.0], 8)[:, None] * np.ones((1, 4))).astype(np.float32)


def _product(x: Any, y: Any) -> Any:
    return (x.T @ y).astype(jnp.float16)


def _gradient(x: Any, y: Any) -> Any:
    w = jnp.ones((1, 4), jnp.float32)
    return sa.grad(lambda w: ((x @ w) * y).sum())(w).astype(jnp.float16)


def _update(x: Any, y: Any) -> Any:
    """In mixed precision, as the gradient of a cast parameter is cast."""
    w = jnp.ones((1, 4), jnp.float16)
    return w - sa.grad(lambda w: ((x @ w.astype(jnp.float32)) * y).sum())(w)


@pytest.mark.parametrize("fun", [_product, _gradient, _update])
@pytest.mark.parametrize("count", [1, 2, 8])
def test_shares_that_cancel_do_not_overflow(fun: Any, count: int) -> None:
    method = sa.ShardParallel(num_micro_batches=count, mesh_shape=(2,))
    ours = sa.parallelize(fun, method=method, devices=jax.devices()[:2], batch_argnums=(0, 1))
    found, expected = ours(ROWS, LARGE), jax.jit(fun)(ROWS, LARGE)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert np.isfinite(found).all()
