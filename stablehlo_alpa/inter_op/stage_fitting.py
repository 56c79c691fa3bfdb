"""Stages whose programs take more than was counted, planned again until they fit the memory."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from alpa_runtime import check

from stablehlo_alpa.errors import InfeasibleError, SlowerError
from stablehlo_alpa.inter_op.assigning import ADVICE
from stablehlo_alpa.inter_op.options import PipelineOptions
from stablehlo_alpa.inter_op.stages_planner import StagesPlanner
from stablehlo_alpa.planning.plan import Plan
from stablehlo_alpa.planning.planner import over_budget
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import PlannedStage
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.view import Say

_log = logging.getLogger(__name__)

# How often stages that exceed the budget are planned again with less (heuristic).
_ROUNDS = 4
# What a stage that is planned again gives at least, as a part of what it takes (heuristic): what is
# counted differs by as much from what its programs need, between strategies that are alike.
_LEAST_GIVEN = 2e-3


def fitted(planner: StagesPlanner, stages: list[PlannedStage], say: Say) -> Plan:
    """The plan of planned stages, those that exceed the memory planned again with less.

    Args:
        planner: of the stages.
        stages: of the step; those that are planned again are replaced.
        say: is told what is being done.

    Raises:
        InfeasibleError: they do not fit, named with what is largest.
        SlowerError: it takes too long before it fits.
    """
    options = planner.options
    for round_ in range(_ROUNDS + 1):
        say("instructions")
        plan = planner.emitted(stages)
        budgets = _budgets(plan, options)
        excess = _excess(plan, budgets)
        if not excess:
            check(plan.runtime)
            return plan
        if plan.step_time_s >= options.most_step_s:
            raise SlowerError(
                f"{planner.program.name} takes {plan.step_time_s:.4g} s under schedule "
                f"{planner.schedule.name} before it fits the memory, {options.most_step_s:.4g} s "
                "was to be undercut",
                plan.step_time_s,
            )
        if round_ < _ROUNDS:
            try:
                _fit(planner, stages, excess)
            except InfeasibleError as error:
                _log.info("%s", error)
                break
    fullest = max(excess, key=excess.__getitem__)
    raise over_budget(plan, fullest, budgets[fullest], ADVICE)


def _fit(planner: StagesPlanner, stages: list[PlannedStage], excess: Mapping[int, float]) -> None:
    """Mends stages that take more than was counted.

    What is gathered is kept for operators near by alone; where it is so already, the strategies
    are others. Stages of one mesh give in proportion to what they take; what one cannot give,
    the others do. Those that have to give most are first: they are most likely to refuse.

    Args:
        planner: of the stages.
        stages: as planned; those of the meshes are replaced.
        excess: bytes per device over the budget, per number of a mesh.

    Raises:
        InfeasibleError: a stage cannot do with so little.
    """
    mesh_of = planner.schedule.mesh_of
    taken: dict[int, float] = {}
    for number, stage in enumerate(stages):
        mesh = mesh_of(number)
        taken[mesh] = taken.get(mesh, 0.0) + stage.solution.memory_peak_bytes
    left = {
        mesh: max(0.0, 1 - max(over / taken[mesh], _LEAST_GIVEN)) for mesh, over in excess.items()
    }

    rooms = {
        number: left[mesh_of(number)] * stage.solution.memory_peak_bytes
        for number, stage in enumerate(stages)
        if mesh_of(number) in excess
    }

    def mended(number: int) -> PlannedStage | InfeasibleError:
        if number not in planner.frugal:
            planner.frugal.add(number)
            return planner.lower(number)
        if rooms[number] <= 0:
            raise InfeasibleError(
                f"stage {number} of {planner.program.name} would have to do without "
                f"{format_bytes(excess[mesh_of(number)])}, more than its mesh's stages take"
            )
        try:
            return planner.plan(number, rooms[number])
        except InfeasibleError as error:
            return error

    exceeding = sorted(rooms, key=lambda number: left[mesh_of(number)])
    refusals: dict[int, InfeasibleError] = {}
    for number, found in zip(exceeding, planner.each(mended, exceeding), strict=True):
        if isinstance(found, InfeasibleError):
            refusals[number] = found
        else:
            stages[number] = found
    for number, room in _given_by_others(rooms, refusals, stages, planner.schedule).items():
        if stages[number].solution.memory_peak_bytes > room:
            stages[number] = planner.plan(number, room)


def _given_by_others(
    rooms: Mapping[int, float],
    refusals: Mapping[int, InfeasibleError],
    stages: Sequence[PlannedStage],
    schedule: Schedule,
) -> dict[int, float]:
    """Bytes per device of stages that give what others of their mesh cannot; those stay.

    Args:
        rooms: by number of a stage what it should do with.
        refusals: of stages that cannot.
        stages: of the step.
        schedule: of them.

    Raises:
        InfeasibleError: no other stage of a mesh is left.
    """
    found: dict[int, float] = {}
    for mesh in {schedule.mesh_of(number) for number in refusals}:
        own = [number for number in rooms if schedule.mesh_of(number) == mesh]
        others = [number for number in own if number not in refusals]
        refused = [number for number in own if number in refusals]
        if not others:
            raise refusals[refused[0]]
        lacking = sum(stages[one].solution.memory_peak_bytes - rooms[one] for one in refused)
        share = max(0.0, 1 - lacking / sum(rooms[number] for number in others))
        found |= {number: share * rooms[number] for number in others}
    return found


def _budgets(plan: Plan, options: PipelineOptions) -> dict[int, float]:
    """Bytes per device of each mesh; empty for any."""
    found = {
        plan.schedule.mesh_of(number): options.budget_of(stage.place.part)
        for number, stage in enumerate(plan.stages)
    }
    return {mesh: budget for mesh, budget in found.items() if budget is not None}


def _excess(plan: Plan, budgets: Mapping[int, float]) -> dict[int, float]:
    """Bytes per device over the budget of each mesh that exceeds it.

    Buffers of all micro-batches in flight have to fit, with what programs need inside.
    """
    if not budgets:
        return {}
    peaks = enumerate(plan.simulation.peak_bytes)
    return {mesh: peak - budgets[mesh] for mesh, peak in peaks if peak > budgets[mesh]}
