"""Steps under a method against the same steps under ``jax.jit``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import numpy as np

import stablehlo_alpa as sa


def assert_equals_jit(ours: Any, theirs: Any, tolerance: float = 1e-4) -> None:
    """Equal structure, types and, up to rounding, numbers."""
    assert str(jax.tree.structure(ours)) == str(jax.tree.structure(theirs))
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        assert np.abs(a - b).max(initial=0) <= tolerance * max(1, np.abs(b).max(initial=0))


def check(step: Any, args: Any, method: Any, **options: Any) -> Any:
    """Runs a step under a method and under ``jax.jit``; returns the plan."""
    parallel = sa.parallelize(step, method=method, **options)
    plan = parallel.plan(*args)
    assert_equals_jit(parallel(*args), jax.jit(step)(*args))
    return plan


def specs(plan: Any, stage: int = 0) -> dict[str, Any]:
    """The spec of every input of the step that a stage reads, by name."""
    found: dict[str, Any] = {}
    for phase in plan.stages[stage].phases:
        for slot, value in zip(phase.inputs, phase.program.inputs, strict=True):
            if slot.kind in ("input", "batch"):
                found.setdefault(value.name, value.spec)
    return found


def collectives(plan: Any, axis: str, least_bytes: float = 1024) -> Counter[str]:
    """Per kind how many collectives along an axis move as much on average."""
    found: Counter[str] = Counter()
    for one in plan.communication():
        if axis in one.axes and one.bytes >= least_bytes * one.count:
            found[one.kind] += int(one.count)
    return found
