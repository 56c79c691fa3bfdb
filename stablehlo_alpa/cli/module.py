"""``stablehlo-alpa module``."""

from __future__ import annotations

from typing import Annotated

import typer

from stablehlo_alpa.cli.attempt import method_for
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
    device: DeviceOption = "h100-80gb",
    hosts: HostsOption = 1,
    memory_budget: BudgetOption = None,
) -> None:
    """Prints the module at a stage of its way."""
    found = find_cluster(cluster, mesh, device, hosts)
    subject = find_subject(file, Sizes())
    options = MethodOptions(found, mesh_shape(mesh, found), memory_budget)
    plan = subject.plan(method_for(subject, None, options), found)
    typer.echo(plan.module_text(stage))
