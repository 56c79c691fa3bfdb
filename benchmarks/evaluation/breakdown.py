"""What a search spends its time at, by looking at its stack now and then."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from types import FrameType, TracebackType

# Modules and packages whose work is told apart; of a stack the innermost counts. What waits for
# threads waits for the compiler.
_PARTS = {
    "stablehlo_alpa.inter_op.threads": "compiler passes and strategies",
    "stablehlo_alpa.frontend": "tracing",
    "stablehlo_alpa.layers": "tracing",
    "stablehlo_alpa.compiler": "compiler passes and strategies",
    "stablehlo_alpa.cost": "prices",
    "stablehlo_alpa.intra_op": "intra-operator programmes",
    "stablehlo_alpa.inter_op": "stage construction",
    "stablehlo_alpa.planning": "programs of the plan",
}
OTHER = "other"
PARTS = (*dict.fromkeys(_PARTS.values()), OTHER)

# Seconds between two looks (heuristic: a thousand of them in the shortest searches).
_INTERVAL_S = 0.02


class Sampler:
    """Looks at the thread that enters it until that leaves it."""

    def __init__(self) -> None:
        """Nothing is seen yet."""
        self._seen: Counter[str] = Counter()
        self._done = threading.Event()
        self._watched = 0
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Sampler:
        self._watched = threading.get_ident()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def parts(self, total_s: float) -> dict[str, float]:
        """Seconds of each part that was seen, which add up to what all of it took.

        Args:
            total_s: that.
        """
        looks = self._seen.total()
        return {part: total_s * self._seen[part] / looks for part in PARTS if self._seen[part]}

    def _look(self) -> None:
        while not self._done.wait(_INTERVAL_S):
            frame = sys._current_frames().get(self._watched)
            self._seen[part_of(frame)] += 1


def part_of(frame: FrameType | None) -> str:
    """The part of the innermost frame that is of one."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        for name in (module, ".".join(module.split(".")[:2])):
            if name in _PARTS:
                return _PARTS[name]
        frame = frame.f_back
    return OTHER
