"""Prints the modules of ours whose functions run from ``parallelize`` to results.

Run as a process of its own: ``python passed_modules.py shard``, or ``pipeshard``, or
``stage``.
"""

from __future__ import annotations

import inspect
import sys
import threading
from types import FrameType
from typing import Any

import jax.numpy as jnp
import numpy as np
from tanh_layers import step

import stablehlo_alpa as sa

PACKAGES = ("stablehlo_alpa", "alpa_runtime")


def make_method(name: str) -> sa.Method:
    """``shard``, or ``pipeshard`` of two stages, or of one: ``stage``."""
    if name == "shard":
        return sa.ShardParallel()
    count = 1 if name == "stage" else 2
    return sa.PipeshardParallel(
        num_micro_batches=2, layers=sa.AutoLayers(num_layers=count), stages=sa.UniformStages(count)
    )


def main(name: str) -> None:
    """Plans, lowers, compiles and runs the step, and prints what it passed through."""
    passed: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        # A module that is imported, or a class that is made, is not passed through.
        is_function = frame.f_code.co_flags & inspect.CO_OPTIMIZED
        if event == "call" and is_function and module.split(".")[0] in PACKAGES:
            passed.add(module)

    weights, batch = [np.eye(16, dtype="f")] * 2, np.ones((16, 16), "f")
    # Names of the package are looked up when they are first used.
    parallelize = sa.parallelize
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        parallel = parallelize(step, method=make_method(name), donate_argnums=0)
        parallel.plan(weights, batch)
        parallel.lower(weights, batch).compile()
        parallel([jnp.array(w) for w in weights], batch)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    print("\n".join(sorted(passed)))


if __name__ == "__main__":
    main(sys.argv[1])
