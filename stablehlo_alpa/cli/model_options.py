"""Options that say what of a model is planned, and how it is told."""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import Annotated

import typer

from stablehlo_alpa.cli.method_names import DEFAULT_LAYERS, MethodOptions
from stablehlo_alpa.cli.subject import Subject
from stablehlo_alpa.cli.usage import at_least_one


class Dtype(enum.StrEnum):
    """Of what a model computes; its parameters are float32."""

    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"


SCHEDULES = ("1f1b", "gpipe", "zero_bubble")

BatchOption = Annotated[int | None, typer.Option(callback=at_least_one, help="examples of a step")]
SequenceOption = Annotated[
    int | None,
    typer.Option(callback=at_least_one, help="tokens of a sequence; by default the model's"),
]
ImageOption = Annotated[
    int | None,
    typer.Option(
        callback=at_least_one, help="pixels of a side of an image; by default the model's"
    ),
]
MicroBatchesOption = Annotated[
    int | None,
    typer.Option(
        callback=at_least_one,
        help="equal parts that the batch is worked on in; searched by default",
    ),
]
LayersOption = Annotated[
    int | None,
    typer.Option(
        callback=at_least_one,
        help=f"layers that a pipeline is cut into, {DEFAULT_LAYERS} by default",
    ),
]
ScheduleOption = Annotated[
    str | None,
    typer.Option(
        help=f"of a pipeline: {', '.join(SCHEDULES)}, pipedream, or pipedream_2bw:4 with "
        "micro-batches per update; searched by default"
    ),
]
RematOption = Annotated[
    bool | None,
    typer.Option(
        "--remat/--no-remat",
        help="whether the backward pass computes the blocks of a model again; by default it does. "
        "Without, a pipeline searches what of its layers is computed again",
    ),
]
ScannedOption = Annotated[
    bool, typer.Option("--scanned", help="equal blocks of a model are one loop")
]
DtypeOption = Annotated[
    Dtype | None, typer.Option(help="of what a model computes; by default the model's, bfloat16")
]
GradientsOption = Annotated[
    Dtype | None,
    typer.Option(
        help="of a model's gradients, which micro-batches add up; by default that of its "
        "parameters, float32"
    ),
]
OptimizerOption = Annotated[
    str | None,
    typer.Option(
        help="that trains a model: adamw, adafactor or sgd (with momentum); by default adamw"
    ),
]
TripCountHintOption = Annotated[
    int | None,
    typer.Option(
        callback=at_least_one,
        help="how often loops run of which that is not known; once by default",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="print JSON, see docs/command_line.md")]
QuietOption = Annotated[
    bool, typer.Option("--quiet", help="no progress, and the summary in place of the tables")
]


def method_options(
    subject: Subject, layers: int | None, remat: bool | None, options: MethodOptions
) -> MethodOptions:
    """What methods are made with, and what follows from the subject.

    Args:
        subject: what is planned.
        layers: that a pipeline is cut into, as asked for.
        remat: whether the model computes its blocks again, as asked for.
        options: all else.
    """
    case = subject.case
    return replace(
        options,
        independent=case is not None and case.has_statistics,
        layers=layers,
        depth=DEFAULT_LAYERS if case is None else case.depth,
        recomputed=case is not None and remat is not False,
    )
