"""Fits of least mean relative error."""

from __future__ import annotations

import itertools

import numpy as np

from stablehlo_alpa.cost.kinds import FloatArray as Array


def least_deviation(columns: Array, seconds: Array) -> Array:
    r"""Minimises ``sum_t |columns_t c / seconds_t - 1|`` over ``c >= 0``, exactly.

    A basic solution passes through as many points as it has terms: all are tried.

    Args:
        columns: float64[T, K] terms.
        seconds: float64[T] measured.

    Returns:
        float64[K].
    """
    relative = columns / seconds[:, None]
    scale = np.maximum(relative.max(axis=0), 1e-300)
    relative = relative / scale
    best, least = np.zeros(columns.shape[1]), np.inf
    for count in range(1, min(columns.shape) + 1):
        points = np.array(list(itertools.combinations(range(len(seconds)), count)))
        for terms in itertools.combinations(range(columns.shape[1]), count):
            part = relative[:, terms]
            systems = part[points]
            systems = systems[np.abs(np.linalg.det(systems)) > 1e-12]
            if not len(systems):
                continue
            found = np.linalg.solve(systems, np.ones((len(systems), count, 1)))[..., 0]
            found = found[(found >= 0).all(axis=1)]
            errors = np.abs(found @ part.T - 1).sum(axis=1)
            if len(found) and errors.min() < least - 1e-9:
                least, best = errors.min(), np.zeros(columns.shape[1])
                best[list(terms)] = found[errors.argmin()]
    return best / scale


def reweighted(columns: Array, seconds: Array, rounds: int = 40) -> Array:
    """The same for many points, by reweighted least squares (approximately)."""
    relative = columns / seconds[:, None]
    scale = np.maximum(relative.max(axis=0), 1e-300)
    relative = relative / scale
    best, least = np.zeros(columns.shape[1]), np.inf
    for count in range(1, columns.shape[1] + 1):
        for terms in itertools.combinations(range(columns.shape[1]), count):
            part, weight = relative[:, terms], np.ones(len(seconds))
            for _ in range(rounds):
                weighted = part * weight[:, None]
                found = np.linalg.solve(
                    weighted.T @ part + 1e-9 * np.eye(count), weighted.sum(axis=0)
                )
                weight = np.maximum(np.abs(part @ found - 1), 1e-3) ** -0.5
            error = np.abs(part @ found - 1).mean()
            if (found >= 0).all() and error < least:
                least, best = error, np.zeros(columns.shape[1])
                best[list(terms)] = found
    return best / scale


def mean_error(predicted: Array, measured: Array) -> float:
    """Mean relative error."""
    return float(np.abs(predicted / measured - 1).mean())
