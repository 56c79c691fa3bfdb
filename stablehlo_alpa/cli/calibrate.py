"""``stablehlo-alpa calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import jax
import typer

from stablehlo_alpa.cli.files import check_output
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.errors import MeshError


def calibrate(
    output: Annotated[Path, typer.Option("-o", "--output", help="cluster file to write")],
    devices: Annotated[int | None, typer.Option(help="only the first of the devices")] = None,
    max_spread: Annotated[
        float, typer.Option(help="by how much equal runs may differ, as a share")
    ] = 0.25,
    quiet: Annotated[bool, typer.Option("--quiet", help="say nothing of what is measured")] = False,
) -> None:
    """Measures the devices at hand and writes a cluster file for --cluster, in minutes."""
    from stablehlo_alpa.calibration import calibrate as measure

    if not max_spread > 0:
        raise UsageError(f"--max-spread is {max_spread}, must be more than 0")
    check_output("--output", output)
    there = jax.devices()
    if devices is not None and not 1 <= devices <= len(there):
        raise MeshError(f"--devices is {devices}, must be 1 to {len(there)}, which are there")

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    measure(there[:devices], max_spread=max_spread, say=say).write(output)
