"""The commands together, and what becomes of errors."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from stablehlo_alpa.cli.bench import bench
from stablehlo_alpa.cli.calibrate import calibrate
from stablehlo_alpa.cli.check import check
from stablehlo_alpa.cli.clusters import clusters
from stablehlo_alpa.cli.compare import compare
from stablehlo_alpa.cli.exit_codes import ExitCode
from stablehlo_alpa.cli.explain import explain
from stablehlo_alpa.cli.models import models
from stablehlo_alpa.cli.module import module
from stablehlo_alpa.cli.plan import plan
from stablehlo_alpa.cli.run import run
from stablehlo_alpa.cli.simulate import simulate
from stablehlo_alpa.cli.view import view
from stablehlo_alpa.errors import (
    CompileError,
    InfeasibleError,
    SolverError,
    StablehloAlpaError,
)

app = typer.Typer(no_args_is_help=True)

_COMMANDS: tuple[Callable[..., None], ...] = (
    *(plan, compare, explain, simulate, check, run, bench),
    *(models, clusters, view, module, calibrate),
)

for _command in _COMMANDS:
    app.command()(_command)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        try:
            version = importlib.metadata.version("stablehlo-alpa")
        except importlib.metadata.PackageNotFoundError:
            version = "a checkout that is not installed"
        typer.echo(f"stablehlo-alpa {version}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="print the version and exit"
        ),
    ] = False,
) -> None:
    """Plans training steps for clusters that need not be there."""


def main() -> None:
    """Runs the command line; what the user can cause is one line on stderr."""
    try:
        app(standalone_mode=True)
    except (InfeasibleError, CompileError, SolverError) as error:
        _fail(error, ExitCode.NO_PLAN)
    except (StablehloAlpaError, ValueError, OSError, ModuleNotFoundError) as error:
        _fail(error, ExitCode.USAGE)


def _fail(error: Exception, code: ExitCode) -> None:
    typer.echo(f"error: {error}", err=True)
    sys.exit(code)
