"""Options and result of the intra-operator programme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class SolveOptions:
    """How to solve.

    Attributes:
        memory_budget: bytes per device that live tensors may take at any program point; None
            for no limit.
        time_limit_s: seconds after which the best plan so far is taken, with its gap.
        relative_gap: the solver stops when it has proved this gap.
        method: 'auto': exact elimination, and the integer programme where elimination takes too
            large tables or its optimum exceeds the budget. 'elimination': no integer programme.
            'ilp': no elimination.
    """

    memory_budget: float | None = None
    time_limit_s: float = 600.0
    relative_gap: float = 1e-6
    method: Literal["auto", "elimination", "ilp"] = "auto"

    def __post_init__(self) -> None:
        if self.memory_budget is not None and not self.memory_budget >= 0:
            raise ValueError(f"memory_budget must be >= 0 bytes, got {self.memory_budget}")
        if not self.time_limit_s > 0:
            raise ValueError(f"time_limit_s must be > 0, got {self.time_limit_s}")
        if not 0 <= self.relative_gap < 1:
            raise ValueError(f"relative_gap must be in [0, 1), got {self.relative_gap}")
        if self.method not in ("auto", "elimination", "ilp"):
            raise ValueError(f"method must be one of auto, elimination, ilp, got {self.method!r}")


@dataclass(frozen=True, eq=False)
class Solution:
    """A strategy for every operator.

    Attributes:
        choice: int32[N] chosen strategy of each node.
        compute_s, communication_s, reshard_s: seconds per step; their sum is the objective.
        memory_peak_bytes: largest sum of live tensors per device. Bytes.
        memory_peak_point: program point of the peak, -1 when there is none.
        status: 'optimal' or 'time limit'.
        gap: proved relative distance to the optimum.
        spent_s: wall seconds of solving.
        lp_integral: the relaxation alone gave the plan, nothing was branched on; False when it
            was not solved.
        method: 'elimination' or 'ilp', what gave the choice.
    """

    choice: npt.NDArray[np.int32]
    compute_s: float
    communication_s: float
    reshard_s: float
    memory_peak_bytes: float
    memory_peak_point: int
    status: str
    gap: float
    spent_s: float
    lp_integral: bool
    method: str = "ilp"

    @property
    def objective_s(self) -> float:
        """Seconds per step."""
        return self.compute_s + self.communication_s + self.reshard_s
