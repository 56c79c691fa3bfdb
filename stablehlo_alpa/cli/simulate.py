"""``stablehlo-alpa simulate``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from stablehlo_alpa.cli.files import check_output
from stablehlo_alpa.cli.model_options import JsonOption
from stablehlo_alpa.cli.plan_file import PlanArgument, find_plan
from stablehlo_alpa.cli.usage import UsageError, at_least_one
from stablehlo_alpa.inter_op.rescheduling import reschedule
from stablehlo_alpa.planning.occupation import Occupation
from stablehlo_alpa.planning.prediction import Predicted
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.units import format_seconds

SIMULATION_SCHEMA = "stablehlo-alpa/simulation/1"


def simulate(
    plan: PlanArgument,
    trace: Annotated[
        Path | None, typer.Option(help="file for Perfetto (ui.perfetto.dev), the whole time line")
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="the plan's programs in another order, e.g. gpipe")
    ] = None,
    micro_batches: Annotated[
        int | None,
        typer.Option(callback=at_least_one, help="more or fewer micro-batches of the plan's size"),
    ] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="the seconds of a step alone")] = False,
) -> None:
    """Simulates a step: per stage busy and idle seconds, micro-batches in flight, memory."""
    if schedule == "":
        raise UsageError("--schedule is empty, must be the name of a schedule, such as gpipe")
    check_output("--trace", trace, others=(plan,))
    found = find_plan(plan)
    predicted: Predicted = found
    order = found.schedule
    if schedule is not None or micro_batches is not None:
        predicted, order = reschedule(found, schedule, micro_batches)
    if trace is not None:
        predicted.timeline(trace)
    occupation = Occupation.of(predicted, order)
    if as_json:
        record = {"schema": SIMULATION_SCHEMA, **dataclasses.asdict(occupation)}
        record["planned_step_s"] = found.step_time_s
        typer.echo(json.dumps(record, indent=2))
        return
    typer.echo(format_seconds(occupation.step_s) if quiet else str(occupation))
    if predicted is not found and not quiet:
        typer.echo(f"as it was planned: {format_seconds(found.step_time_s)}{_growth(found, order)}")


def _growth(plan: Predicted, order: Schedule) -> str:
    """What becomes of the batch."""
    count, before = order.num_micro_batches, plan.runtime.num_micro_batches
    if count == before:
        return ""
    return f" with {before} micro-batches; the batch is {count / before:g} times as large"
