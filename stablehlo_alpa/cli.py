"""``stablehlo-alpa``: plans modules from files."""

from __future__ import annotations

import importlib.metadata
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import typer
from jax.extend.mlir import ir

from stablehlo_alpa.cluster import (
    PRESETS,
    ClusterSpec,
    as_cluster,
    logical_mesh_shapes,
    preset_for,
)
from stablehlo_alpa.errors import MeshError, StablehloAlpaError, TraceError
from stablehlo_alpa.frontend import TracedProgram, TracedValue
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.planning import Plan, PlanOptions, plan_program
from stablehlo_alpa.units import parse_bytes

app = typer.Typer(add_completion=False, no_args_is_help=True)

ModuleFile = Annotated[Path, typer.Argument(help="StableHLO text, pretty or generic")]
MeshOption = Annotated[
    str | None, typer.Option(help="mesh shape, e.g. 2x4; or devices, e.g. 8: search")
]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        help="cluster preset, e.g. p4d.24xlarge:4, or TOML file; instead of device, hosts"
    ),
]
DeviceOption = Annotated[str, typer.Option(help=f"device preset: {', '.join(PRESETS)}")]
HostsOption = Annotated[int, typer.Option(help="hosts that the devices are spread over")]
BudgetOption = Annotated[
    str | None, typer.Option(help="memory per device, e.g. 16GiB; by default that of the device")
]


def read_program(path: Path) -> TracedProgram:
    """Reads a StableHLO module as a program of flat inputs and outputs.

    Raises:
        TraceError: the file does not parse, or has no function ``main`` of static tensors.
    """
    # Every dialect that JAX emits is registered in the context of what it lowers.
    lowered: Any = jax.jit(lambda: 0).lower().compiler_ir("stablehlo")
    with lowered.context as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(path.read_text(encoding="utf-8"))
        except ir.MLIRError as error:
            raise TraceError(f"{path} does not parse: {error}") from error
        main = [op for op in module.body.operations if _symbol(op) == "main"]
        if not main:
            raise TraceError(f"{path} has no function main")
        kind = ir.FunctionType(ir.TypeAttr(main[0].operation.attributes["function_type"]).value)
        inputs = [_value(path, f"arg{i}", type_) for i, type_ in enumerate(kind.inputs)]
        outputs = [_value(path, f"result{i}", type_) for i, type_ in enumerate(kind.results)]
        if not inputs:
            raise TraceError(f"{path}: main has no arguments, nothing can be sharded")
        text = str(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True))
    return TracedProgram(
        name=path.stem,
        text=text,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        in_tree=jax.tree.structure((tuple(range(len(inputs))), {})),
        out_tree=jax.tree.structure(tuple(range(len(outputs)))),
        input_argnum=tuple(range(len(inputs))),
        donated=(),
        batch=frozenset(i for i, value in enumerate(inputs) if value.shape),
        aliases={},
    )


def _symbol(op: Any) -> str | None:
    attributes = op.operation.attributes
    return str(attributes["sym_name"]).strip('"') if "sym_name" in attributes else None


def _value(path: Path, name: str, type_: Any) -> TracedValue:
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        raise TraceError(f"{path}: {name} of main is {type_}, it must be a tensor of static shape")
    aval = jax.ShapeDtypeStruct(tuple(type_.shape), _dtype(path, name, type_.element_type))
    return TracedValue(name, aval.shape, aval.dtype.name)


def _dtype(path: Path, name: str, element: Any) -> Any:
    spelled = str(element)
    for prefix, family in (("bf", "bfloat"), ("f", "float"), ("ui", "uint"), ("i", "int")):
        bits = spelled.removeprefix(prefix)
        if spelled.startswith(prefix) and bits.isdigit():
            return jnp.dtype("bool" if spelled == "i1" else family + bits)
    raise TraceError(f"{path}: {name} of main has element type {spelled}, which has no numpy dtype")


def make_plan(path: Path, mesh: str | None, cluster: ClusterSpec, budget: str | None) -> Plan:
    """Plans the module of a file.

    Args:
        path: of the file.
        mesh: sizes joined by x; of one number, or None, all shapes are tried.
        cluster: what is planned for.
        budget: memory per device, as text; that of the device when None.

    Raises:
        StablehloAlpaError: the module, the mesh or the budget cannot be met.
    """
    shape = _shape(mesh) if mesh is not None else (cluster.num_devices,)
    if math.prod(shape) != cluster.num_devices:
        raise MeshError(
            f"mesh {mesh} has {math.prod(shape)} devices, the cluster has {cluster.num_devices}: "
            f"{cluster.num_hosts} hosts of {cluster.devices_per_host}"
        )
    searched = logical_mesh_shapes(cluster.num_devices, cluster.num_hosts)
    return plan_program(
        read_program(path),
        PlanOptions(
            cluster=cluster,
            mesh_shapes=tuple(searched) if len(shape) == 1 else (shape,),
            solve=SolveOptions(
                memory_budget=cluster.device.memory_bytes if budget is None else parse_bytes(budget)
            ),
        ),
    )


def find_cluster(cluster: str | None, mesh: str | None, device: str, hosts: int) -> ClusterSpec:
    """The cluster that options name, or hosts of as many devices as the mesh has.

    Raises:
        MeshError: there is no such cluster, or the hosts do not divide the mesh.
    """
    if cluster is not None:
        return as_cluster(cluster)
    count = math.prod(_shape(mesh or "8"))
    if count % hosts:
        raise MeshError(f"{count} devices cannot be spread evenly over {hosts} hosts")
    return ClusterSpec(preset_for(device), hosts, count // hosts)


def _shape(mesh: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in mesh.split("x"))
    except ValueError:
        raise MeshError(f"mesh is '{mesh}', must be sizes joined by x, such as 2x4") from None


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
    """Plans StableHLO modules for meshes of devices."""


@app.command()
def plan(
    file: ModuleFile,
    mesh: MeshOption = None,
    cluster: ClusterOption = None,
    device: DeviceOption = "h100-80gb",
    hosts: HostsOption = 1,
    memory_budget: BudgetOption = None,
    explain: Annotated[str | None, typer.Option(help="name of an operator to explain")] = None,
) -> None:
    """Plans a module for a mesh of devices and prints the plan."""
    found = make_plan(file, mesh, find_cluster(cluster, mesh, device, hosts), memory_budget)
    typer.echo(str(found) if explain is None else str(found.explain(explain)))


@app.command()
def view(
    file: ModuleFile,
    stage: Annotated[str, typer.Option(help="traced, merged, planned or local")] = "local",
    mesh: MeshOption = None,
    cluster: ClusterOption = None,
    device: DeviceOption = "h100-80gb",
    hosts: HostsOption = 1,
    memory_budget: BudgetOption = None,
) -> None:
    """Prints the module at a stage of its way."""
    typer.echo(
        make_plan(
            file, mesh, find_cluster(cluster, mesh, device, hosts), memory_budget
        ).module_text(stage)
    )


@app.command()
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

    there = jax.devices()
    if devices is not None and not 1 <= devices <= len(there):
        raise MeshError(f"--devices is {devices}, must be 1 to {len(there)}, which are there")

    def say(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    measure(there[:devices], max_spread=max_spread, say=say).write(output)


def main() -> None:
    """Runs the command line; what the user can cause is one line on stderr."""
    try:
        app(standalone_mode=True)
    except (StablehloAlpaError, ValueError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
