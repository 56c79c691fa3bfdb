"""Seconds of a step of a program, the cost of calling and of looping left out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from stablehlo_alpa.errors import StablehloAlpaError

# A run is long enough for the clock, and short enough that all runs together are minutes.
_LEAST_S, _MOST_S = 4e-3, 0.15
_MOST_STEPS = 1 << 20
_ROUNDS = 7
# An accelerator asks its host after every iteration whether the loop goes on: some 25 us on an
# H100, which may be left in a step of a millisecond.
_SHORT_S = 1e-3
UNROLLED = 32
"""Steps of an iteration, where a step is short."""


class BusyError(StablehloAlpaError):
    """The machine does other things, so that equal runs take different times."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one step.

    Attributes:
        seconds: from medians over rounds.
        spread: interquartile range of the rounds over their median; infinite where what does more
            took no longer.
    """

    seconds: float
    spread: float


Stepped = Callable[..., Any]
"""``f(count, *operands)``: does its iteration ``count`` times, an int32 not known beforehand."""


def time_step(stepped: Callable[[int], Stepped], *operands: Any) -> Timing:
    """Times a step by how much longer an iteration takes that does more of them.

    Args:
        stepped: by a number, the loop whose iteration does the step that many times.
        operands: on the devices.
    """
    single = time_iteration(stepped(1), *operands)
    if single.seconds >= _SHORT_S:
        return single
    many = time_iteration(stepped(UNROLLED), *operands)
    # What the loop takes is in both.
    step = (many.seconds - single.seconds) / (UNROLLED - 1)
    spread = max(single.spread, many.spread)
    return Timing(step, spread) if step > 0 else Timing(many.seconds / UNROLLED, np.inf)


def time_iteration(stepped: Stepped, *operands: Any) -> Timing:
    """Times an iteration by how much longer a program takes that does more of them.

    Args:
        stepped: compiled once for all numbers of iterations.
        operands: on the devices.
    """
    run = jax.jit(stepped)

    def seconds(count: int) -> float:
        start = time.perf_counter()
        jax.block_until_ready(run(np.int32(count), *operands))
        return time.perf_counter() - start

    seconds(1)
    floor = min(seconds(1) for _ in range(3))
    count = 1
    while (took := seconds(1 + count) - floor) < _LEAST_S and count < _MOST_STEPS:
        count *= 2 if took <= 0 else max(2, min(64, int(_LEAST_S / took) + 1))
    # One iteration may be more than enough.
    count = max(1, min(count, int(count * _MOST_S / max(took, 1e-9))))
    short, long = np.array([(seconds(1), seconds(1 + count)) for _ in range(_ROUNDS)]).T
    first, middle, last = np.quantile(long, (0.25, 0.5, 0.75)).tolist()
    step = (middle - float(np.median(short))) / count
    return Timing(step, (last - first) / middle) if step > 0 else Timing(middle, np.inf)
