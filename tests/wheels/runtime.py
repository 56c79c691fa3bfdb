"""The installed runtime alone runs a saved plan; the argument is the folder of plan and arrays."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import alpa_runtime
import jax
import numpy as np


def main(folder: Path) -> None:
    for name in ("stablehlo_alpa", "cvxpy", "highspy"):
        assert importlib.util.find_spec(name) is None, f"{name} is installed"
    plan = alpa_runtime.load(folder / "step.plan")
    arrays = np.load(folder / "step.npz")
    inputs = [arrays[name] for name in arrays if name.startswith("input_")]
    results = alpa_runtime.LocalExecutable(plan, jax.devices())(*inputs)
    for number, result in enumerate(results):
        np.testing.assert_allclose(
            np.asarray(result), arrays[f"result_{number}"], rtol=1e-5, atol=1e-6
        )
    print(f"{plan.name}: {len(results)} results on {len(jax.devices())} devices")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
