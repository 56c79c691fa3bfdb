"""``stablehlo-alpa plan``."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from stablehlo_alpa import zoo
from stablehlo_alpa.cli.attempt import attempt, method_for, method_name, quietly
from stablehlo_alpa.cli.cluster_options import (
    BudgetOption,
    ClusterOption,
    DeviceOption,
    HostsOption,
    MeshOption,
    find_cluster,
    mesh_shape,
)
from stablehlo_alpa.cli.exit_codes import ExitCode
from stablehlo_alpa.cli.explain import STAGES, check_subject, explain_subject
from stablehlo_alpa.cli.files import check_output
from stablehlo_alpa.cli.method_names import MEGATRON, METHODS, MethodOptions
from stablehlo_alpa.cli.model_options import (
    BatchOption,
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
    ScheduleOption,
    SequenceOption,
    TripCountHintOption,
    method_options,
)
from stablehlo_alpa.cli.store_options import NoStoreOption, StoreOption, find_store
from stablehlo_alpa.cli.subject import Sizes, find_subject
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.planning import Plan, SavedPlan


def _complete_model(incomplete: str) -> list[str]:
    return [name for name in zoo.names() if name.startswith(incomplete)]


def _complete_method(incomplete: str) -> list[str]:
    return [name for name in METHODS if name.startswith(incomplete)]


def _show(plan: Plan, page: Path | None) -> None:
    """Opens the page that was written, or else one that is kept until the machine is cleaned up."""
    if page is None:
        plan.view()
    else:
        webbrowser.open(page.resolve().as_uri())


def _check_explained(what: str | None, as_json: bool) -> None:
    """Refuses what can be asked of no plan, and to ask where JSON is printed."""
    if what is None:
        return
    check_subject(what)
    if as_json:
        raise UsageError(
            f"--explain {what} prints text, --json the plan: leave one out, or write the plan by "
            f"-o and ask it by `stablehlo-alpa explain FILE {what} --json`"
        )


def _check_outputs(model: str, output: Path | None, page: Path | None) -> None:
    file = Path(model) if Path(model).is_file() else None
    check_output("--output", output, is_replaced=True, others=(file,))
    check_output("--page", page, others=(file, output))


def _explained(plan: Plan, what: str) -> str:
    if what == STAGES:
        return str(plan.explain_stages())
    return str(explain_subject(SavedPlan.of(plan), what))


ModelArgument = Annotated[
    str,
    typer.Argument(
        help="a model (see models), StableHLO text (FILE.mlir), or module:function, where a module "
        "may be FILE.py",
        autocompletion=_complete_model,
    ),
]
MethodOption = Annotated[
    str | None,
    typer.Option(
        help=f"{', '.join(METHODS)} or megatron:TENSORxDATAxPIPELINE, with +{', +'.join(MEGATRON)} "
        "or +interleave=2 behind it, or expert+zero1, expert+zero3; by default pipeshard on "
        "several hosts, shard on one",
        autocompletion=_complete_method,
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", help="file that alpa_runtime.load reads")
]
PageOption = Annotated[
    Path | None, typer.Option(help="write the plan as an HTML page, as view does of a file")
]
ExplainOption = Annotated[
    str | None,
    typer.Option(help="what to explain: an operator, layer:N, stage:N, or stages: other cuts"),
]


def plan(
    model: ModelArgument,
    cluster: ClusterOption = None,
    batch: BatchOption = None,
    sequence: SequenceOption = None,
    image: ImageOption = None,
    method: MethodOption = None,
    micro_batches: MicroBatchesOption = None,
    layers: LayersOption = None,
    schedule: ScheduleOption = None,
    remat: RematOption = None,
    scanned: ScannedOption = False,
    dtype: DtypeOption = None,
    gradients: GradientsOption = None,
    optimizer: OptimizerOption = None,
    trip_count_hint: TripCountHintOption = None,
    mesh: MeshOption = None,
    device: DeviceOption = None,
    hosts: HostsOption = None,
    memory_budget: BudgetOption = None,
    store: StoreOption = None,
    no_store: NoStoreOption = False,
    output: OutputOption = None,
    page: PageOption = None,
    is_opened: Annotated[bool, typer.Option("--open", help="open the page in the browser")] = False,
    explain: ExplainOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Plans a model, a module or a function for a cluster, and prints the plan."""
    _check_explained(explain, as_json)
    _check_outputs(model, output, page)
    found = find_cluster(cluster, mesh, device, hosts)
    shape = mesh_shape(mesh, found)
    sizes = Sizes(batch, sequence, image, remat, scanned, dtype, gradients, optimizer)
    subject = find_subject(model, sizes, trip_count_hint, find_store(store, no_store))
    given = MethodOptions(found, shape, memory_budget, micro_batches, schedule=schedule)
    options = method_options(subject, layers, remat, given)
    chosen = method_for(subject, method_name(subject, method, options), options)
    with quietly(quiet):
        made = attempt(subject, sizes, chosen, found, cluster)
    if as_json:
        typer.echo(json.dumps(made.record, indent=2))
    if made.error is not None:
        raise made.error
    assert made.plan is not None
    if output is not None:
        made.plan.save(output)
    if page is not None:
        made.plan.view(page)
    if is_opened:
        _show(made.plan, page)
    if explain is not None:
        typer.echo(_explained(made.plan, explain))
    elif not as_json:
        typer.echo(made.plan.summary() if quiet else str(made.plan))
    if made.interrupt is not None:
        typer.echo("interrupted: this is the best plan that the search had found", err=True)
        raise typer.Exit(ExitCode.INTERRUPTED)
