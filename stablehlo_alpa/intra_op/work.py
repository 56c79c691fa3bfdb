"""Work of the solvers, counted: what is found does not depend on how busy a machine is.

Where a solver is not run to the end, it decides what is found how far it gets. By the clock that
would be another plan whenever another process runs beside, and processes of one session would not
agree. So all that takes long is counted - entries of tables that the exact solver looks at,
iterations of HiGHS by the size of its programme - and limits are on that, in the seconds that it
takes on a processor of its own. The clock ends what takes many times as long, as a last resort.
"""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass

_log = logging.getLogger(__name__)

# The clock ends what takes so many times the limit and so many seconds more (heuristics): a machine
# that is shared by a few does not get there.
_LAST_RESORT, _LAST_RESORT_S = 10.0, 60.0
# Said of what the clock has ended.
LATE = (
    "the solver was ended by the clock, far beyond its limit of work: another run may find another "
    "plan (a longer time_limit_s, or fewer processes beside it, prevents that)"
)


@dataclass(eq=False)
class Work:
    """What may be done, and what was done.

    Attributes:
        limit_s: work that may be done. Seconds of an idle processor.
        deadline: of the last resort, by the monotonic clock.
        spent_s: work that was done.
        needed_s: a limit of which a twentieth is as much had decided nothing.
        is_late: the clock has ended something.
        whole: what it is a part of.
    """

    limit_s: float = math.inf
    deadline: float = math.inf
    spent_s: float = 0.0
    needed_s: float = 0.0
    is_late: bool = False
    whole: Work | None = None

    @classmethod
    def of(cls, limit_s: float) -> Work:
        """Nothing is done yet."""
        return cls(limit_s, time.monotonic() + _LAST_RESORT * limit_s + _LAST_RESORT_S)

    def left_s(self) -> float:
        """Work that may still be done; none once the clock has ended it."""
        return 0.0 if self.is_late else max(0.0, self.limit_s - self.spent_s)

    def clock_s(self) -> float:
        """Seconds until the last resort."""
        return max(0.0, self.deadline - time.monotonic())

    def part(self, limit_s: float) -> Work:
        """A part of it, which ends sooner."""
        return Work(min(limit_s, self.left_s()), self.deadline, is_late=self.is_late, whole=self)

    def fits(self, needed_s: float, limit_s: float) -> bool:
        """Whether something may be begun that takes so long, within a limit of its own.

        Args:
            needed_s: seconds.
            limit_s: what there is left, or a part of it.
        """
        self._need(needed_s)
        return needed_s <= limit_s

    def spend(self, spent_s: float, *, is_late: bool = False) -> None:
        """Takes work that was done, and whether the clock ended it."""
        self.spent_s += spent_s
        self._need(self.spent_s)
        if is_late and not self.is_late:
            self.is_late = True
            if self.whole is None:
                _log.warning("%s", LATE)
        if self.whole is not None:
            self.whole.spend(spent_s, is_late=is_late)

    def _need(self, needed_s: float) -> None:
        self.needed_s = max(self.needed_s, needed_s)
        if self.whole is not None:
            self.whole._need(needed_s)
