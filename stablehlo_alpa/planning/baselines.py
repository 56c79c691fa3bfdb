"""A plan beside what methods that have a name make of the same step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view import Column, Sheet

if TYPE_CHECKING:
    from stablehlo_alpa.planning.plan import Plan

# Characters of a reason in the table (heuristic: two lines of a screen).
_LONGEST = 120


@dataclass(frozen=True)
class Baseline:
    """What one method makes of a step.

    Attributes:
        method: it, with the options that are not at their defaults.
        plan: its plan; None where there is none.
        reason: why there is none.
        is_too_large: whether that is for want of memory.
    """

    method: str
    plan: Plan | None
    reason: str = ""
    is_too_large: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Baselines:
    """Methods on the same devices, under the same prices. Printing it shows a table.

    Attributes:
        plan: that they are beside.
        rows: fastest first; then those that have no plan.
    """

    plan: Plan
    rows: tuple[Baseline, ...]

    @property
    def best(self) -> Baseline | None:
        """The fastest; None where no method has a plan."""
        return self.rows[0] if self.rows and self.rows[0].plan is not None else None

    def sheet(self) -> Sheet:
        """The table; ``records`` of it are ``rows``."""
        columns = (
            Column("method", is_name=True),
            Column("step", is_number=True),
            Column("of the plan", is_number=True),
            Column("memory per device", is_number=True),
            Column("stages", is_number=True),
            Column("outcome"),
        )
        rows = (("this plan", *_cells(self.plan, self.plan)), *map(self._row, self.rows))
        title = f"{self.plan.program.name} by other methods, by the same prices"
        return Sheet(title, columns, rows, self.rows)

    def _row(self, one: Baseline) -> tuple[str, ...]:
        if one.plan is not None:
            return (one.method, *_cells(one.plan, self.plan))
        reason = one.reason.splitlines()[0] if one.reason else ""
        reason = reason if len(reason) <= _LONGEST else f"{reason[: _LONGEST - 3]}..."
        outcome = "does not fit" if one.is_too_large else "refused"
        return (one.method, "", "", "", "", f"{outcome}: {reason}")

    def __str__(self) -> str:
        return self.sheet().text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.sheet().html()


def _cells(plan: Plan, against: Plan) -> tuple[str, ...]:
    ratio = plan.step_time_s / against.step_time_s if against.step_time_s else 1.0
    stages = str(len(plan.stages))
    step, memory = format_seconds(plan.step_time_s), format_bytes(plan.peak_bytes)
    return step, f"{ratio:.2f}", memory, stages, "fits"


class Compared:
    """What a `Plan` can be put beside."""

    def baselines(self, methods: Sequence[Any] | None = None) -> Baselines:
        """What other methods make of the step on the same devices, under the same prices.

        Plans each of them, which takes as long as that takes.

        Args:
            methods: as ``parallelize`` takes them; by default what people write down: one mesh
                without a pipeline, data parallelism, ZeRO 2 and 3, experts over an axis, Megatron's
                three dimensions, pipelines of data-parallel stages.

        Raises:
            TraceError: the plan was made of a module, not of a function.
        """
        plan: Any = self
        if plan.rivals is None:
            raise TraceError(
                f"the plan of {plan.program.name} is of a module, and other methods trace the "
                "function: ask a plan that a parallelized function has made"
            )
        found = plan.rivals(plan, methods)
        return Baselines(plan, tuple(sorted(found, key=_time_or_never)))


def _time_or_never(one: Baseline) -> float:
    return math.inf if one.plan is None else one.plan.step_time_s
