"""The stages of a plan in another order, or with more micro-batches of the same size."""

from __future__ import annotations

from dataclasses import replace

from alpa_runtime import check

from stablehlo_alpa.inter_op.emit import emit
from stablehlo_alpa.inter_op.step_inputs import StepInterface
from stablehlo_alpa.planning import SavedPlan
from stablehlo_alpa.planning.ordering import make_schedule
from stablehlo_alpa.planning.prediction import Predicted
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.planning.stage import WEIGHT, SlotKind, StageBody


def reschedule(
    plan: SavedPlan, schedule: str | None = None, num_micro_batches: int | None = None
) -> tuple[Predicted, Schedule]:
    """A plan's programs under another schedule; nothing is planned or compiled anew.

    Programs are for micro-batches of one size: with n times as many of them the batch is n times as
    large.

    Args:
        plan: the plan.
        schedule: name of the schedule; that of the plan by default.
        num_micro_batches: of a step; those of the plan by default.

    Raises:
        ValueError: the plan has nothing to order, or its programs do not go with the schedule.
    """
    name = plan.runtime.name
    if plan.runtime.sole_program is not None:
        raise ValueError(
            f"{name} is one program, which is all of a step: there is nothing to order; plan it "
            "with --micro-batches"
        )
    count = num_micro_batches or plan.runtime.num_micro_batches
    made = _made(plan, schedule, count)
    if made.is_asynchronous:
        # As it is: its programs are for one update of many.
        return Predicted(plan.cluster, plan.runtime, plan.costs), made
    stages = plan.stages
    _check_phases(name, stages, made)
    interface = _interface(plan, count)
    runtime, costs = emit(stages, made, interface)
    check(runtime)
    return Predicted(plan.cluster, runtime, costs), made


def _made(plan: SavedPlan, schedule: str | None, count: int) -> Schedule:
    own, meshes = plan.account.schedule, plan.account.stage_meshes
    if plan.schedule.is_asynchronous and schedule is not None:
        raise ValueError(
            f"{plan.runtime.name} updates its state {plan.schedule.num_updates} times in a step "
            f"under schedule {own}, its programs are for the part of the batch of one update: plan "
            f"again under {schedule!r}"
        )
    if schedule is not None or not plan.account.order:
        return make_schedule(schedule or own, meshes, count)
    if count != plan.runtime.num_micro_batches:
        raise ValueError(
            f"{plan.runtime.name} has the schedule {own} of somebody's own for "
            f"{plan.runtime.num_micro_batches} micro-batches, whose tasks for {count} the plan "
            "does not know: pass schedule="
        )
    return plan.schedule


def _check_phases(name: str, stages: tuple[StageBody, ...], schedule: Schedule) -> None:
    """Refuses a schedule of other phases than the stages have."""
    is_trained = any(stage.phase("backward") is not None for stage in stages)
    if is_trained != schedule.has_backward:
        has = "has backward passes" if is_trained else "has no backward passes"
        raise ValueError(f"{name} {has}, schedule {schedule.name} does not go with that")
    is_split = any(stage.phase(WEIGHT) is not None for stage in stages)
    if is_split != schedule.splits_backward:
        has = "apart from" if is_split else "in one program with"
        raise ValueError(
            f"{name} computes the gradients of its parameters {has} what the stage before waits "
            f"for, schedule {schedule.name} takes them otherwise: plan again with --schedule "
            f"{schedule.name}"
        )


def _interface(plan: SavedPlan, num_micro_batches: int) -> StepInterface:
    """Inputs and outputs of the step, its batches as large as the micro-batches together."""
    runtime = plan.runtime
    cut = {
        slot.number
        for stage in plan.stages
        for phase in stage.phases
        for slot in phase.inputs
        if slot.kind is SlotKind.BATCH
    }
    inputs = []
    for index, one in enumerate(runtime.inputs):
        shape = one.value.shape
        if index in cut:
            size = shape[0] // runtime.num_micro_batches * num_micro_batches
            shape = (size, *shape[1:])
        inputs.append(replace(one.value, shape=shape))
    return StepInterface(
        runtime.name,
        tuple(inputs),
        tuple(output.name for output in runtime.outputs),
        dict(plan.account.donated),
    )
