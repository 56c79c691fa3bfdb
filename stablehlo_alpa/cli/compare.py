"""``stablehlo-alpa compare``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from stablehlo_alpa.cli.attempt import Attempt, attempt, method_for, method_names, quietly
from stablehlo_alpa.cli.cluster_options import BudgetOption, named_cluster
from stablehlo_alpa.cli.exit_codes import ExitCode
from stablehlo_alpa.cli.method_names import METHODS, MethodOptions
from stablehlo_alpa.cli.model_options import (
    DtypeOption,
    GradientsOption,
    ImageOption,
    JsonOption,
    LayersOption,
    MicroBatchesOption,
    OptimizerOption,
    QuietOption,
    RematOption,
    ScannedOption,
    SequenceOption,
    TripCountHintOption,
    method_options,
)
from stablehlo_alpa.cli.plan import ModelArgument
from stablehlo_alpa.cli.record import COMPARISON_SCHEMA, asked_record, refusal_record
from stablehlo_alpa.cli.store_options import NoStoreOption, StoreOption, find_store
from stablehlo_alpa.cli.subject import Sizes, Subject, find_subject
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.planning import Plan
from stablehlo_alpa.units import format_bytes, format_seconds

# Characters of a reason in the table; JSON has all of it (heuristic: two lines of a screen).
_LONGEST = 160
# Characters of a line that goes to no terminal (heuristic: a reason is on two lines).
_UNWATCHED = 200
# Characters of an outcome at least, where a row is a plan (heuristic: four words).
_NARROWEST = 24

_HEADS = ("method", "cluster", "batch", "step", "per device", "memory", "stages", "outcome")


def compare(
    model: ModelArgument,
    methods: Annotated[str, typer.Option(help=f"of {', '.join(METHODS)}, joined by commas")],
    clusters: Annotated[str, typer.Option(help="presets or TOML files, joined by commas")],
    batch: Annotated[
        str | None, typer.Option(help="examples of a step; several are joined by commas")
    ] = None,
    sequence: SequenceOption = None,
    image: ImageOption = None,
    micro_batches: MicroBatchesOption = None,
    layers: LayersOption = None,
    remat: RematOption = None,
    scanned: ScannedOption = False,
    dtype: DtypeOption = None,
    gradients: GradientsOption = None,
    optimizer: OptimizerOption = None,
    trip_count_hint: TripCountHintOption = None,
    memory_budget: BudgetOption = None,
    store: StoreOption = None,
    no_store: NoStoreOption = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Plans a model by several methods, on several clusters, with several batches."""
    names = method_names(methods, layers)
    found = {name: named_cluster("--clusters", name) for name in clusters.split(",")}
    sizes = Sizes(None, sequence, image, remat, scanned, dtype, gradients, optimizer)
    every = [replace(sizes, batch=one) for one in batch_sizes(batch)]
    kept = find_store(store, no_store)
    subjects = [(find_subject(model, one, trip_count_hint, kept), one) for one in every]
    rows: list[Attempt] = []
    interrupt: KeyboardInterrupt | None = None
    try:
        with quietly(quiet):
            for (place, cluster), (subject, one), name in itertools.product(
                found.items(), subjects, names
            ):
                given = MethodOptions(cluster, None, memory_budget, micro_batches)
                options = method_options(subject, layers, remat, given)
                made = _row(subject, one, name, options, place)
                made.record["asked_method"] = name
                rows.append(made)
                if made.interrupt is not None:
                    raise made.interrupt
    except KeyboardInterrupt as error:
        if not rows:
            raise
        interrupt = error
    if as_json:
        records = [row.record for row in rows]
        typer.echo(json.dumps({"schema": COMPARISON_SCHEMA, "rows": records}, indent=2))
    else:
        _print(model, rows)
    if interrupt is not None:
        typer.echo("interrupted: the rows are those that there were", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED)
    if all(row.plan is None for row in rows):
        raise typer.Exit(ExitCode.NO_PLAN)


def batch_sizes(text: str | None) -> list[int | None]:
    """Numbers joined by commas.

    Raises:
        UsageError: they are none, or less than 1.
    """
    if text is None:
        return [None]
    parts = text.split(",")
    if not all(one.strip().isdecimal() and int(one) for one in parts):
        raise UsageError(f"--batch is {text!r}, must be numbers of at least 1 joined by commas")
    return [int(one) for one in parts]


def _row(subject: Subject, sizes: Sizes, name: str, options: MethodOptions, place: str) -> Attempt:
    """One plan, or why there is none; that its options do not go together included."""
    try:
        method = method_for(subject, name, options)
    except ValueError as error:
        plain = method_for(subject, "shard", MethodOptions(options.cluster))
        asked = asked_record(subject, sizes, plain, options.cluster, place) | {"method": name}
        reason = str(error)
        return Attempt(None, error, lambda: refusal_record(asked, reason, False, 0.0))
    return attempt(subject, sizes, method, options.cluster, place)


def _print(model: str, rows: list[Attempt]) -> None:
    """A row per plan, or where a terminal has no room for that, a block of lines per plan."""
    # Brackets of a reason are no markup.
    console = Console(markup=False)
    cells, title = [_cells(row) for row in rows], f"plans of {model}"
    least = _least_width(cells)
    if not console.is_terminal:
        # Where nobody watches, lines are as long as they have to be.
        console = Console(width=max(_UNWATCHED, least), markup=False)
    is_wide = console.width >= least
    console.print(_table(title, cells) if is_wide else _blocks(title, cells))


def _least_width(rows: Sequence[Sequence[str]]) -> int:
    """Characters of a line in which no cell but the outcome is broken."""
    columns = zip(_HEADS, *rows, strict=True)
    widths = [max(map(len, column)) for column in columns]
    # Of every column a border and a space on both sides.
    return sum(widths[:-1]) + min(widths[-1], _NARROWEST) + 3 * len(widths) + 1


def _table(title: str, rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title)
    for head in _HEADS:
        is_number = head in ("batch", "step", "per device", "memory", "stages")
        is_last = head == _HEADS[-1]
        justify: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(head, justify=justify, overflow="fold", no_wrap=not is_last)
    for row in rows:
        table.add_row(*row)
    return table


def _blocks(title: str, rows: Sequence[Sequence[str]]) -> Table:
    """A line per cell, without those that are empty."""
    table = Table(title=title, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        for head, cell in zip(_HEADS, row, strict=True):
            if cell:
                table.add_row(head, cell)
        table.add_section()
    return table


def _cells(row: Attempt) -> tuple[str, ...]:
    record = row.record
    first = (record["asked_method"], _place(record), str(record["model"].get("batch", "")))
    if row.plan is None:
        outcome = "does not fit" if row.is_too_large else "refused"
        return (*first, "", "", "", "", f"{outcome}: {_shortened(record['reason'])}")
    rate: Any = record["flops_per_device_s"]
    memory = f"{format_bytes(record['peak_bytes'])} of {_memory(row.plan)}"
    return (
        *first,
        format_seconds(record["step_s"]),
        f"{rate / 1e12:.0f} TFLOP/s" if rate else "",
        memory,
        str(len(record["stages"])),
        "fits",
    )


def _place(record: dict[str, Any]) -> str:
    return str(record["cluster"]["name"])


def _memory(plan: Plan) -> str:
    """What the fullest device has."""
    number = plan.simulation.peak_bytes.index(plan.peak_bytes)
    stages = enumerate(plan.stages)
    own = next(stage for at, stage in stages if plan.schedule.mesh_of(at) == number)
    return format_bytes(own.mesh.cluster.device.memory_bytes)


def _shortened(reason: str) -> str:
    """The first line of a reason, and no more than a table takes."""
    first = reason.splitlines()[0]
    return first if len(first) <= _LONGEST else f"{first[: _LONGEST - 3]}..."
