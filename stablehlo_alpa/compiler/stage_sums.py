"""The inner loop of the search for stages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stablehlo_alpa import _core

Float = npt.NDArray[np.float64]
Int = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StageTable:
    """Choices of stages, by descending first layer.

    Attributes:
        firsts, lasts: int64[C] layers of each, both included.
        sizes: int64[C] devices.
        limits: int64[C] stages from it to the end, itself included, at most.
        times: float64[C] seconds.
        num_layers, num_devices: of all stages together.
    """

    firsts: Int
    lasts: Int
    sizes: Int
    limits: Int
    times: Float
    num_layers: int
    num_devices: int


def stage_sums(table: StageTable, most: int, bound: float, lows: Int, highs: Int) -> Float:
    """Least sums of seconds of partitions whose stages take at most some seconds.

    Args:
        table: the choices.
        most: numbers of stages that are told apart; -1 for none.
        bound: seconds of a stage at most.
        lows: int64[L + 1] per layer the least number of devices from it on that is looked at.
        highs: int64[L + 1] per layer the end of these numbers, excluded.

    Returns:
        float64[L + 1, most + 2, D + 1] per first layer, stages and devices.
    """
    found: Float = _core.stage_sums(
        table.firsts,
        table.lasts,
        table.sizes,
        table.limits,
        table.times,
        table.num_layers,
        table.num_devices,
        most,
        bound,
        lows,
        highs,
    )
    return found.reshape(table.num_layers + 1, most + 2, table.num_devices + 1)


def unlike_stage_sums(
    table: StageTable, parts: Int, sources: Int, num_devices: tuple[int, ...], most: int
) -> Float:
    """Least sums of seconds of partitions over devices of several parts.

    Args:
        table: the choices.
        parts: int64[C] the part whose devices each takes.
        sources: int64[C] the part of the stage before; 0 where there is none.
        num_devices: of each part P.
        most: numbers of stages that are told apart; -1 for none.

    Returns:
        float64[L + 1, P, most + 2, D_0 + 1, D_1 + 1, ...] per first layer, part of the stage
        before, stages and devices.
    """
    found: Float = _core.unlike_stage_sums(
        table.firsts,
        table.lasts,
        table.sizes,
        table.limits,
        table.times,
        parts,
        sources,
        table.num_layers,
        np.array(num_devices, np.int64),
        most,
    )
    widths = (count + 1 for count in num_devices)
    return found.reshape(table.num_layers + 1, len(num_devices), most + 2, *widths)
