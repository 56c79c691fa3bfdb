"""``stablehlo-alpa module``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stablehlo_alpa.cli.attempt import method_for, method_name
from stablehlo_alpa.cli.cluster_options import (
    BudgetOption,
    ClusterOption,
    DeviceOption,
    HostsOption,
    MeshOption,
    find_cluster,
    mesh_shape,
)
from stablehlo_alpa.cli.method_names import MethodOptions
from stablehlo_alpa.cli.subject import Sizes, find_subject


def module(
    file: Annotated[str, typer.Argument(help="StableHLO text, pretty or generic")],
    stage: Annotated[str, typer.Option(help="traced, merged, planned or local")] = "local",
    mesh: MeshOption = None,
    cluster: ClusterOption = None,
    device: DeviceOption = None,
    hosts: HostsOption = None,
    memory_budget: BudgetOption = None,
) -> None:
    """Prints the module at a stage of its way."""
    if not Path(file).is_file():
        raise FileNotFoundError(f"no file {file}: what is printed is of a file, FILE.mlir")
    found = find_cluster(cluster, mesh, device, hosts)
    subject = find_subject(file, Sizes())
    options = MethodOptions(found, mesh_shape(mesh, found), memory_budget)
    method = method_for(subject, method_name(subject, None, options), options)
    plan = subject.plan(method, found)
    typer.echo(plan.module_text(stage))
