"""``stablehlo-alpa check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from stablehlo_alpa.cli.files import check_folder
from stablehlo_alpa.cli.model_options import JsonOption
from stablehlo_alpa.cli.plan_file import PlanArgument, find_plan
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.nearest import nearest
from stablehlo_alpa.planning.checking import MeshClaims, PlanCheck, check_plan
from stablehlo_alpa.units import format_bytes
from stablehlo_alpa.witness import TARGETS, examine, target_named

CHECK_SCHEMA = "stablehlo-alpa/check/1"


def _complete_target(incomplete: str) -> list[str]:
    return [name for name in TARGETS if name.startswith(incomplete)]


def check(
    plan: PlanArgument,
    target: Annotated[
        str,
        typer.Option(
            help=f"{' or '.join(TARGETS)}; none has to be there", autocompletion=_complete_target
        ),
    ],
    cache: Annotated[Path | None, typer.Option(help="folder that keeps what was compiled")] = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="one line per mesh, no progress")] = False,
) -> None:
    """Compares a plan with what XLA's compiler for an accelerator makes of it."""
    if target not in TARGETS:
        raise UsageError(
            f"no target {target!r}{nearest(target, TARGETS)}, targets are {', '.join(TARGETS)}"
        )
    check_folder("--cache", cache)
    found = find_plan(plan)
    # Said before anything is compiled.
    versions = target_named(target).versions

    def say(what: str) -> None:
        if not quiet:
            typer.echo(f"compiling {what}", err=True)

    checked = check_plan(found, examine(found.runtime, target, cache=cache, say=say))
    if as_json:
        typer.echo(json.dumps(check_record(checked, versions), indent=2))
    elif quiet:
        for number, mesh in enumerate(checked.meshes):
            both = (mesh.planned.peak_bytes, mesh.compiled.peak_bytes)
            typer.echo(f"mesh {number}: memory {' planned, '.join(map(format_bytes, both))} by XLA")
    else:
        typer.echo(str(checked))


def check_record(checked: PlanCheck, versions: tuple[str, ...]) -> dict[str, Any]:
    """A comparison as JSON; the schema is written down in docs/command_line.md.

    Args:
        checked: the comparison.
        versions: of the packages that compiled.
    """
    return {
        "schema": CHECK_SCHEMA,
        "name": checked.name,
        "target": checked.examination.target.name,
        "compiler": list(versions),
        "meshes": [
            {"planned": _claims(mesh.planned), "compiled": _claims(mesh.compiled)}
            for mesh in checked.meshes
        ],
    }


def _claims(claims: MeshClaims) -> dict[str, Any]:
    collectives = [
        {"kind": str(one.kind), "group_size": one.group_size}
        | {"bytes": one.total_bytes, "count": one.count}
        for one in claims.collectives
    ]
    return {
        "peak_bytes": claims.peak_bytes,
        "sent_bytes": claims.sent_bytes,
        "compute_s": claims.compute_s,
        "optimal_s": claims.optimal_s,
        "collectives": collectives,
    }
