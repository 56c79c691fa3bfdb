"""Kinds of collectives."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class CollectiveKind(IntEnum):
    """Step kinds of a reshard plan, numbered as the compiler numbers them."""

    ALL_REDUCE = 0
    ALL_GATHER = 1
    REDUCE_SCATTER = 2
    ALL_TO_ALL = 3
    COLLECTIVE_PERMUTE = 4
    LOCAL = 5


class Beside(IntEnum):
    """What a collective may run beside, numbered as the compiler numbers it."""

    NOTHING = 0
    GRADIENTS = 1
    PARAMETERS = 2


def ring_share(kind: CollectiveKind, size: int) -> float:
    """Share of its payload that a device sends, by the algorithms that send least.

    References:
        Ring algorithms: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication
        Operations in MPICH", IJHPCA 2005. All-to-all: a device keeps 1/n of its operand.
    """
    if kind is CollectiveKind.COLLECTIVE_PERMUTE:
        return 1.0
    share = (size - 1) / size
    return 2 * share if kind is CollectiveKind.ALL_REDUCE else share
