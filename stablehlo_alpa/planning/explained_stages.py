"""Why a step is cut as it is: the plan beside the next best ones, under the same prices."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.planning.baselines import Baseline
from stablehlo_alpa.planning.cut import Cut
from stablehlo_alpa.planning.plan_report import Alternative
from stablehlo_alpa.units import format_seconds
from stablehlo_alpa.view import Column, Sheet

if TYPE_CHECKING:
    from stablehlo_alpa.planning.plan import Plan

CutEstimate: TypeAlias = tuple[Cut, float]
"""A cut, and the search's estimate of its latency in seconds."""


class Considered(Protocol):
    """What a search for stages has chosen from."""

    def cuts(self) -> Iterator[CutEstimate]:
        """Cuts, the best first."""


class Pinned(enum.StrEnum):
    """In what an alternative differs from the plan, the first of these."""

    RECOMPUTATION = "recomputation"
    SCHEDULE = "schedule"
    MICRO_BATCHES = "micro-batches"
    CUT = "cut"


@dataclass(frozen=True)
class StagesRow:
    """An alternative.

    Attributes:
        differs: in what.
        method: that gives it: planning the step by it takes ``step_time_s``.
        num_micro_batches, schedule, recomputed: of it.
        cut: into stages; None where none fits.
        step_time_s: predicted seconds of a step; None where it does not fit the devices.
        slowest_s, pass_s: predicted seconds of a micro-batch in its slowest stage, and in all of
            them, where it was planned for this table.
        estimate_s: what the search took its latency for, of a cut.
        reason: why there is no plan.
        least_s: see `Alternative`.
    """

    differs: Pinned
    method: Any
    num_micro_batches: int
    schedule: str
    recomputed: str
    cut: Cut | None
    step_time_s: float | None
    slowest_s: float | None = None
    pass_s: float | None = None
    estimate_s: float | None = None
    reason: str = ""
    least_s: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedStages:
    """A plan beside the next best. Printing it shows a table.

    Attributes:
        plan: that they are beside.
        rows: cuts, numbers of micro-batches, schedules and recomputations, of each the fastest
            first.
        reason: why this cut.
    """

    plan: Plan
    rows: tuple[StagesRow, ...]
    reason: str

    def sheet(self) -> Sheet:
        """The table; ``records`` of it are ``rows``."""
        numbers = (Column("step", is_number=True), Column("of the plan", is_number=True))
        columns = (
            *(Column("differs in"), Column("micro-batches", is_number=True), Column("schedule")),
            *(Column("computed again"), Column("layers on submeshes"), *numbers),
        )
        plan = self.plan
        own = (
            *("this plan", str(plan.runtime.num_micro_batches), str(plan.schedule.name)),
            *(plan.recomputed or "nothing", str(Cut.of(plan.stages))),
            *(format_seconds(plan.step_time_s), "1.00"),
        )
        title = f"stages of {plan.program.name}, by the same prices"
        return Sheet(title, columns, (own, *map(self._cells, self.rows)), self.rows, self.reason)

    def _cells(self, row: StagesRow) -> tuple[str, ...]:
        refused = "does not fit"
        if row.least_s is not None:
            refused = f"at least {format_seconds(row.least_s)}"
        step = refused if row.step_time_s is None else format_seconds(row.step_time_s)
        own = self.plan.step_time_s
        ratio = f"{row.step_time_s / own:.2f}" if row.step_time_s is not None and own else ""
        cut = "" if row.cut is None else str(row.cut)
        return (
            *(str(row.differs), str(row.num_micro_batches), row.schedule),
            *(row.recomputed or "nothing", cut, step, ratio),
        )

    def __str__(self) -> str:
        return self.sheet().text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.sheet().html()


class PlansPinned(Protocol):
    """Plans the step of a plan by other methods."""

    def __call__(self, plan: Plan, methods: Any) -> tuple[Baseline, ...]:
        """What methods make of the step; by default those that are usual."""

    def pinned(self, plan: Plan, one: Alternative) -> Any:
        """The method that gives an alternative.

        Raises:
            TraceError: that of the plan makes no stages.
        """


class Staged:
    """What a `Plan` says of its stages."""

    def explain_stages(self, cuts: int = 3) -> ExplainedStages:
        """Why the step is cut so, and what the next best choices would cost.

        The search has made whole plans for the numbers of micro-batches, the schedules and the
        recomputations that it did not rule out; other cuts it knows by estimates, of which the
        next best are planned now, one after the other. Every row is exact: planning the step by
        ``row.method`` gives ``row.step_time_s``.

        Args:
            cuts: how many other cuts.

        Raises:
            TraceError: the plan was made of a module, or by a method that makes no stages.
        """
        plan: Any = self
        if plan.rivals is None:
            raise TraceError(
                f"the plan of {plan.program.name} is of a module, and other cuts trace the "
                "function: ask a plan that a parallelized function has made"
            )
        rows = [*_tried(plan), *_other_cuts(plan, cuts)]
        order = list(Pinned)[::-1]
        rows.sort(key=lambda row: (order.index(row.differs), row.step_time_s or float("inf")))
        return ExplainedStages(plan, tuple(rows), _reason(plan, rows))


def _tried(plan: Plan) -> Iterator[StagesRow]:
    """Plans that the search has made and not taken."""
    for one in plan.tried:
        differs = _difference(plan, one)
        if differs is None:
            continue
        assert plan.rivals is not None
        yield StagesRow(
            differs,
            plan.rivals.pinned(plan, one),
            one.num_micro_batches,
            one.schedule,
            one.recomputed,
            one.cut,
            one.step_time_s,
            reason=one.reason,
            least_s=one.least_s,
        )


def _difference(plan: Plan, one: Alternative) -> Pinned | None:
    if one.recomputed != plan.recomputed:
        return Pinned.RECOMPUTATION
    if one.schedule != plan.schedule.name:
        return Pinned.SCHEDULE
    if one.num_micro_batches != plan.runtime.num_micro_batches:
        return Pinned.MICRO_BATCHES
    return None


def _other_cuts(plan: Plan, limit: int) -> Iterator[StagesRow]:
    """The next best cuts, planned."""
    assert plan.rivals is not None
    own = Cut.of(plan.stages)
    base = Alternative(
        plan.runtime.num_micro_batches, str(plan.schedule.name), None, plan.recomputed
    )
    if plan.considered is None:
        # Says where the method makes no stages at all.
        plan.rivals.pinned(plan, base)
        return
    others = (found for found in plan.considered.cuts() if found[0].places != own.places)
    for cut, estimate_s in itertools.islice(others, limit):
        one = Alternative(base.num_micro_batches, base.schedule, None, base.recomputed, cut)
        method = plan.rivals.pinned(plan, one)
        (made,) = plan.rivals(plan, [method])
        planned = made.plan
        yield StagesRow(
            Pinned.CUT,
            method,
            base.num_micro_batches,
            base.schedule,
            base.recomputed,
            one.cut if planned is None else Cut.of(planned.stages, is_given=True),
            None if planned is None else planned.step_time_s,
            None if planned is None else _slowest_s(planned),
            None if planned is None else _pass_s(planned),
            estimate_s,
            made.reason,
        )


def _slowest_s(plan: Plan) -> float:
    return max(stage.micro_batch_s for stage in plan.stages)


def _pass_s(plan: Plan) -> float:
    return sum(stage.micro_batch_s for stage in plan.stages)


def _reason(plan: Plan, rows: list[StagesRow]) -> str:
    """Why this cut, in a sentence."""
    cuts = [row for row in rows if row.differs is Pinned.CUT]
    if plan.applied is not None:
        return f"the stages are those of the plan for {plan.applied.sizes}"
    if plan.considered is None:
        return "the stages were given: other cuts were not looked for"
    fitting = [row for row in cuts if row.step_time_s is not None]
    if not fitting:
        return "no other cut fits" if cuts else "there is no other cut, or none was asked for"
    rival = min(fitting, key=lambda row: row.step_time_s or 0.0)
    assert rival.step_time_s is not None
    assert rival.slowest_s is not None
    more_s, own_s = rival.step_time_s - plan.step_time_s, _slowest_s(plan)
    name, gap = f"the next best cut ({rival.cut})", plan.gap
    if more_s < 0:
        stopped = "" if gap is None else f"; the search ended with {gap:.1%} left to be gained"
        return f"{name} is {format_seconds(-more_s)} faster by the simulation{stopped}"
    if more_s == 0:
        return f"{name} takes as long: either will do"
    count, pass_s = plan.runtime.num_micro_batches, _pass_s(plan)
    slower_s = (count - 1) * (rival.slowest_s - own_s)
    if slower_s >= more_s / 2:
        why = (
            f"its slowest stage takes {format_seconds(rival.slowest_s)} per micro-batch, that of "
            f"this plan {format_seconds(own_s)}, which counts {count} times"
        )
    else:
        why = (
            f"a micro-batch takes {format_seconds(rival.pass_s or 0.0)} through its stages, "
            f"{format_seconds(pass_s)} through those of this plan; the rest is waiting, sends and "
            "what runs once per step"
        )
    return f"{name} takes {format_seconds(more_s)} more: {why}"
