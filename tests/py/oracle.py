"""Comparison with plain ``jax.jit``: not only of values."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def assert_same(ours: Any, theirs: Any) -> None:
    """Structure, shapes, dtypes, weak types and values are equal."""
    structure: Any = jax.tree.structure(ours)
    expected: Any = jax.tree.structure(theirs)
    mine, other = jax.tree.leaves(ours), jax.tree.leaves(theirs)
    assert structure == expected
    for a, b in zip(mine, other, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert jax.typeof(a).weak_type == jax.typeof(b).weak_type
        if a.dtype == jax.dtypes.float0:
            continue
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        kind = np.complex128 if jnp.iscomplexobj(a) else np.float64
        np.testing.assert_allclose(np.asarray(a, kind), np.asarray(b, kind), rtol=1e-5, atol=1e-6)
