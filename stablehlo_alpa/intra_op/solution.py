"""Options and result of the intra-operator programme."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from stablehlo_alpa.intra_op.exact import Minimum

Method = Literal["elimination", "lagrangian", "ilp"]


@dataclass(frozen=True)
class SolveOptions:
    """How to solve.

    Attributes:
        memory_budget: bytes per device that live tensors may take at any program point; None
            for no limit.
        time_limit_s: seconds of work after which the best plan so far is taken, with its gap:
            counted, so that the plan does not depend on how busy the machine is, see `Work`.
        relative_gap: the solver stops when it has proved this gap.
        budget_gap: gap at which a plan under a binding memory budget is good enough, where the
            graph is too large to close it.
        enough_s: seconds per step of a plan under a binding budget that is good enough, whatever
            its gap.
        most_s: seconds per step that a plan must undercut: the search ends where none can.
        closes: whether the integer programme looks for a plan where prices of memory lead to none,
            and closes a gap that is larger than `budget_gap`; without, such a gap is left, and of
            what is known not to fit nothing is said but that.
        method: 'auto': the exact solver; the integer programme where that takes too large tables;
            the Lagrangian, closed by the integer programme, where its optimum exceeds the budget.
            'elimination': the exact solver alone. 'ilp': the integer programme alone.
    """

    memory_budget: float | None = None
    time_limit_s: float = 600.0
    relative_gap: float = 1e-6
    budget_gap: float = 1e-3
    enough_s: float = 0.0
    most_s: float = np.inf
    closes: bool = True
    method: Literal["auto", "elimination", "ilp"] = "auto"

    def __post_init__(self) -> None:
        if self.memory_budget is not None and not self.memory_budget >= 0:
            raise ValueError(f"memory_budget must be >= 0 bytes, got {self.memory_budget}")
        if not self.time_limit_s > 0:
            raise ValueError(f"time_limit_s must be > 0, got {self.time_limit_s}")
        if not 0 <= self.relative_gap < 1:
            raise ValueError(f"relative_gap must be in [0, 1), got {self.relative_gap}")
        if not 0 <= self.budget_gap < 1:
            raise ValueError(f"budget_gap must be in [0, 1), got {self.budget_gap}")
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
        status: 'optimal'; 'gap': within the gap below, under a memory budget; 'time limit'.
        gap: proved relative distance to the optimum.
        spent_s: wall seconds of solving.
        work_s: seconds of work, counted.
        needed_work_s: a limit of which this is a twentieth decided nothing.
        is_late: the clock has ended the search.
        lp_integral: the relaxation alone gave the plan, nothing was branched on; False when it
            was not solved.
        method: 'elimination', 'lagrangian' or 'ilp', what gave the choice.
        memory_points: int64[P] program points at which the budget binds.
        memory_prices: float64[P] seconds per step that one byte more per device would save there.
        mixed: int32[K, N] choices between which a mixture keeps the budget, at seconds close to the
            bound: where the search under another budget begins.
        minimum: how the exact solver got on without the budget; None when it was not asked.
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
    method: Method = "ilp"
    memory_points: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    memory_prices: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    mixed: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    minimum: Minimum | None = None
    work_s: float = 0.0
    needed_work_s: float = 0.0
    is_late: bool = False

    @property
    def memory_price_s(self) -> float:
        """Seconds per step that one more byte per device would save, at the optimum."""
        return float(self.memory_prices.sum())

    @property
    def objective_s(self) -> float:
        """Seconds per step."""
        return self.compute_s + self.communication_s + self.reshard_s
