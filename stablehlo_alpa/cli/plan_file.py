"""The argument that names a plan's file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.planning import SavedPlan, read_plan

PlanArgument = Annotated[
    Path, typer.Argument(help="a plan, as `stablehlo-alpa plan -o` and Plan.save write it")
]


def checked_path(path: Path) -> Path:
    """The file of a plan.

    Raises:
        UsageError: it is a module, which is no plan yet, or no file.
        OSError: there is no such file.
    """
    if path.suffix == ".mlir":
        raise UsageError(
            f"{path} is a module, no plan: write one by `stablehlo-alpa plan {path} -o`"
        )
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no regular file, must be that of a plan")
    if not path.exists():
        raise FileNotFoundError(
            f"no plan {path}: write one by `stablehlo-alpa plan MODEL -o {path.stem}.plan`"
        )
    return path


def find_plan(path: Path) -> SavedPlan:
    """The plan of a file.

    Raises:
        UsageError: it is no plan yet.
        ProgramError: it is damaged, of another version, or says only how it is run.
        OSError: there is no such file.
    """
    return read_plan(checked_path(path))
