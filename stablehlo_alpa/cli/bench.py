"""``stablehlo-alpa bench``."""

from __future__ import annotations

import json
import statistics
from typing import Annotated, Any

import alpa_runtime
import typer

from stablehlo_alpa.cli.arguments import random_arguments
from stablehlo_alpa.cli.attempt import Attempt, attempt, method_for, method_names, quietly
from stablehlo_alpa.cli.cluster_options import BudgetOption, ClusterOption, named_cluster
from stablehlo_alpa.cli.exit_codes import ExitCode
from stablehlo_alpa.cli.local_devices import VirtualOption, first_devices, local_devices
from stablehlo_alpa.cli.method_names import METHODS, MethodOptions
from stablehlo_alpa.cli.model_options import (
    BatchOption,
    DtypeOption,
    GradientsOption,
    ImageOption,
    JsonOption,
    LayersOption,
    MicroBatchesOption,
    OptimizerOption,
    RematOption,
    ScannedOption,
    SequenceOption,
    method_options,
)
from stablehlo_alpa.cli.plan import ModelArgument
from stablehlo_alpa.cli.record import cluster_record
from stablehlo_alpa.cli.store_options import NoStoreOption, StoreOption, find_store
from stablehlo_alpa.cli.subject import Sizes, find_subject
from stablehlo_alpa.cli.timing import Stepper
from stablehlo_alpa.cli.usage import at_least_one
from stablehlo_alpa.cluster import Cluster, cluster_of
from stablehlo_alpa.units import format_seconds
from stablehlo_alpa.view import Column, Sheet

BENCH_SCHEMA = "stablehlo-alpa/bench/1"


def bench(
    model: ModelArgument,
    methods: Annotated[
        str, typer.Option(help=f"of {', '.join(METHODS)}, joined by commas; the first is 1")
    ] = "shard,data,zero3",
    batch: BatchOption = None,
    sequence: SequenceOption = None,
    image: ImageOption = None,
    micro_batches: MicroBatchesOption = None,
    layers: LayersOption = None,
    remat: RematOption = None,
    scanned: ScannedOption = False,
    dtype: DtypeOption = None,
    gradients: GradientsOption = None,
    optimizer: OptimizerOption = None,
    cluster: ClusterOption = None,
    memory_budget: BudgetOption = None,
    store: StoreOption = None,
    no_store: NoStoreOption = False,
    steps: Annotated[
        int,
        typer.Option(callback=at_least_one, help="rounds; in each every method runs a step"),
    ] = 5,
    virtual_devices: VirtualOption = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
) -> None:
    """Runs a model by several methods in turn, measured seconds of a step beside predicted."""
    names = method_names(methods, layers)
    devices = local_devices(virtual_devices)
    place: Cluster = cluster_of(devices) if cluster is None else named_cluster("--cluster", cluster)
    devices = first_devices(devices, place.num_devices)
    sizes = Sizes(batch, sequence, image, remat, scanned, dtype, gradients, optimizer)
    subject = find_subject(model, sizes, store=find_store(store, no_store))
    given = MethodOptions(place, None, memory_budget, micro_batches)
    options = method_options(subject, layers, remat, given)
    with quietly(quiet):
        made = {
            name: attempt(subject, sizes, method_for(subject, name, options), place, cluster)
            for name in names
        }
    rows = _measured(made, devices, steps)
    if as_json:
        record = {"schema": BENCH_SCHEMA, "model": subject.name, "devices": len(devices)}
        record |= {"platform": devices[0].platform, "cluster": cluster_record(place), "rows": rows}
        typer.echo(json.dumps(record, indent=2))
    else:
        typer.echo(_sheet(subject.name, len(devices), devices[0].platform, rows).text())
    if all(row["measured_step_s"] is None for row in rows):
        raise typer.Exit(ExitCode.NO_PLAN)


def _measured(made: dict[str, Attempt], devices: list[Any], steps: int) -> list[dict[str, Any]]:
    """A row per method; methods take turns, so that what else the machine does hits all."""
    steppers = {
        name: _stepper(one.plan, devices) for name, one in made.items() if one.plan is not None
    }
    for stepper in steppers.values():
        stepper.step()
    seconds: dict[str, list[float]] = {name: [] for name in steppers}
    for _ in range(steps):
        for name, stepper in steppers.items():
            seconds[name].append(stepper.step())
    rows: list[dict[str, Any]] = []
    for name, one in made.items():
        measured = statistics.median(seconds[name]) if name in seconds else None
        rows.append(
            {
                "method": name,
                "fits": one.record["fits"],
                "reason": one.record["reason"],
                "predicted_step_s": one.record.get("step_s"),
                "measured_step_s": measured,
                "step_s": seconds.get(name, []),
            }
        )
    first = next((row for row in rows if row["measured_step_s"] is not None), None)
    for row in rows:
        for kind in ("predicted", "measured"):
            known = row[f"{kind}_step_s"]
            of_first = None if first is None else first[f"{kind}_step_s"]
            row[f"{kind}_ratio"] = known / of_first if known and of_first else None
    return rows


def _stepper(plan: Any, devices: list[Any]) -> Stepper:
    executable = alpa_runtime.LocalExecutable(plan.runtime, devices)
    program = plan.program
    next_values = {
        program.aliases[index]: index for index in program.donated if index in program.aliases
    }
    return Stepper(executable, random_arguments(plan.runtime, 0), next_values)


def _sheet(name: str, count: int, platform: str, rows: list[dict[str, Any]]) -> Sheet:
    heads = ("predicted", "of the first", "measured", "of the first")
    columns = (Column("method"), *(Column(head, is_number=True) for head in heads))
    cells = tuple(
        (
            row["method"],
            *(
                text
                for kind in ("predicted", "measured")
                for text in (
                    _or_none(row[f"{kind}_step_s"], format_seconds),
                    _or_none(row[f"{kind}_ratio"], "{:.2f}".format),
                )
            ),
            "" if row["reason"] is None else str(row["reason"]).splitlines()[0],
        )
        for row in rows
    )
    title = f"a step of {name} on {count} devices ({platform})"
    return Sheet(title, (*columns, Column("reason")), cells, tuple(rows))


def _or_none(value: float | None, text: Any) -> str:
    return "" if value is None else str(text(value))
