"""Fits of least mean relative error."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from stablehlo_alpa.cost.kinds import FloatArray as Array


def least_deviation(columns: Array, seconds: Array) -> Array:
    r"""Minimises ``sum_t |columns_t c / seconds_t - 1|`` over ``c >= 0``, exactly.

    A linear program: each deviation is a variable that bounds it from both sides.

    Args:
        columns: float64[T, K] terms.
        seconds: float64[T] measured.

    Returns:
        float64[K].
    """
    relative = columns / seconds[:, None]
    scale = np.maximum(relative.max(axis=0), 1e-300)
    relative = relative / scale
    (points, terms), bounds = relative.shape, np.eye(len(relative))
    found = linprog(
        np.concatenate([np.zeros(terms), np.ones(points)]),
        A_ub=np.block([[relative, -bounds], [-relative, -bounds]]),
        b_ub=np.concatenate([np.ones(points), -np.ones(points)]),
    )
    least: Array = found.x[:terms] / scale
    return least


def mean_error(predicted: Array, measured: Array) -> float:
    """Mean relative error."""
    return float(np.abs(predicted / measured - 1).mean())
