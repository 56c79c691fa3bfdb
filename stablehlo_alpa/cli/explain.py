"""``stablehlo-alpa explain``."""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from typing import Annotated, Any, TypeAlias

import typer

from stablehlo_alpa.cli.model_options import JsonOption
from stablehlo_alpa.cli.plan_file import PlanArgument, find_plan
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.intra_op import Explanation
from stablehlo_alpa.planning import SavedPlan
from stablehlo_alpa.planning.explaining import (
    LayerExplanation,
    StageExplanation,
    explain_layer,
    explain_operator,
    explain_stage,
)
from stablehlo_alpa.planning.explaining_modules import ModuleExplanation, explain_module

EXPLANATION_SCHEMA = "stablehlo-alpa/explanation/1"
STAGES = "stages"
"""In place of a subject: why the step is cut so, which other cuts are planned for."""

Explained: TypeAlias = Explanation | LayerExplanation | ModuleExplanation | StageExplanation

_KINDS = {
    Explanation: "operator",
    LayerExplanation: "layer",
    ModuleExplanation: "module",
    StageExplanation: "stage",
}
_INTEGER = re.compile(r"-?\d+")
_NUMBERED = re.compile(r"(layer|stage)(?:[ :]?(\d+)|:(.*))", re.IGNORECASE)


def explain(
    plan: PlanArgument,
    subject: Annotated[
        str,
        typer.Argument(
            metavar="OPERATOR|MODULE|LAYER|STAGE",
            help="name of an operator or a part of it, of a module, layer:3, or stage:1",
        ),
    ],
    stage: Annotated[
        int | None,
        typer.Option(help="number of the stage, of an operator or module that several have"),
    ] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="the first line alone")] = False,
) -> None:
    """Says why: the strategies of an operator, where a layer lies, what a module or stage costs."""
    check_subject(subject, stage)
    found = explain_subject(find_plan(plan), subject, stage)
    if as_json:
        typer.echo(json.dumps(explanation_record(found), indent=2))
    else:
        text = str(found)
        typer.echo(text.splitlines()[0] if quiet else text)


def explain_subject(plan: SavedPlan, subject: str, stage: int | None = None) -> Explained:
    """What a plan says of an operator, a module, a layer or a stage.

    Args:
        plan: the plan.
        subject: a name or a part of it, ``"layer:3"``, ``"stage:1"``. What names modules and is
            part of the names of several operators means the modules.
        stage: number of the stage, of an operator or module that several have.

    Raises:
        ShardingError: there is no such thing, or there are several.
        UsageError: see `check_subject`; or other cuts are asked for.
    """
    check_subject(subject, stage)
    if subject == STAGES:
        raise UsageError(
            "a file has no other cuts, they are planned anew: stablehlo-alpa plan MODEL ... "
            "--explain stages, or layer:N and stage:N of the file"
        )
    numbered = _NUMBERED.fullmatch(subject)
    if numbered is None:
        return _explain_name(plan, subject, stage)
    number = int(numbered[2] or numbered[3])
    if numbered[1].lower() == "layer":
        return explain_layer(plan, number)
    return explain_stage(plan, number)


def check_subject(subject: str, stage: int | None = None) -> None:
    """Refuses what can be asked of no plan.

    Args:
        subject: see `explain_subject`.
        stage: likewise.

    Raises:
        UsageError: there is no name, or no number of a layer or a stage; or a stage is said of
            something that is in one.
    """
    if not subject:
        raise UsageError("nothing is named, must be an operator, a module, layer:3 or stage:1")
    numbered = _NUMBERED.fullmatch(subject)
    if numbered is None:
        return
    if numbered[3] is not None and not _INTEGER.fullmatch(numbered[3]):
        kind = numbered[1].lower()
        raise UsageError(f"{subject} has no number behind the colon, as {kind}:3 has")
    if stage is not None:
        raise UsageError(
            f"--stage {stage} is of an operator or a module, got {subject}: leave it out"
        )


def _explain_name(plan: SavedPlan, name: str, stage: int | None) -> Explained:
    try:
        return explain_operator(plan, name, stage)
    except ShardingError:
        module = explain_module(plan, name, stage)
        if module is not None:
            return module
        names = [one for table in plan.tables for one in table.name]
        if stage is not None or any(name in one for one in names):
            raise
    # Stages have operators of one name.
    close = difflib.get_close_matches(name, dict.fromkeys(names), n=5, cutoff=0.0)
    raise ShardingError(
        f"no operator and no module is named {name!r}, the closest are: {', '.join(close)}"
    )


def explanation_record(found: Explained) -> dict[str, Any]:
    """What is told as JSON; the schema is written down in docs/command_line.md."""
    return {"schema": EXPLANATION_SCHEMA, "kind": _KINDS[type(found)], **dataclasses.asdict(found)}
