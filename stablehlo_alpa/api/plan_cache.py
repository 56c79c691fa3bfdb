"""What was made for the signatures of a function, and the nearest of a new one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

from stablehlo_alpa.api.prepared import Prepared
from stablehlo_alpa.frontend.signature import Signature
from stablehlo_alpa.planning import Plan

Nearest: TypeAlias = Callable[[], Plan | None]


class PlanCache:
    """By signature what was made for it. Whoever asks holds the lock of the function."""

    def __init__(self) -> None:
        """There is nothing yet."""
        self._prepared: dict[Signature, Prepared] = {}

    def __len__(self) -> int:
        return len(self._prepared)

    def __iter__(self) -> Iterator[Prepared]:
        return iter(self._prepared.values())

    def find(self, signature: Signature, make: Callable[[Nearest], Prepared]) -> Prepared:
        """What is there for a signature, made where it was not asked for before.

        Args:
            signature: of a call.
            make: takes what finds the nearest plan.
        """
        if signature not in self._prepared:
            nearest = functools.partial(self._nearest, signature)
            self._prepared[signature] = make(nearest)
        return self._prepared[signature]

    def _nearest(self, signature: Signature) -> Plan | None:
        """The plan for the same arguments in the sizes nearest to those of a signature.

        The one whose most changed dimension differs by the smallest factor; of those the one with
        the smallest product of such factors, and the oldest. None where no plan is of the same
        structure, static arguments, dtypes, ranks and context.
        """
        found = [
            (distance, prepared)
            for other, prepared in self._prepared.items()
            if prepared.is_planned and (distance := _distance(signature, other)) is not None
        ]
        return min(found, key=lambda one: one[0])[1].plan if found else None


def _distance(one: Signature, other: Signature) -> tuple[float, float] | None:
    """Largest and sum of ``|log(size / other size)|``; None where more differs than sizes."""
    same = (one.arguments, one.context, one.placements)
    if same != (other.arguments, other.context, other.placements):
        return None
    logs = [0.0]
    for (shape, *kind), (other_shape, *other_kind) in zip(one.avals, other.avals, strict=True):
        if kind != other_kind or len(shape) != len(other_shape):
            return None
        for size, other_size in zip(shape, other_shape, strict=True):
            if size != other_size:
                if not size or not other_size:
                    return None
                logs.append(abs(math.log(size / other_size)))
    return max(logs), sum(logs)
