"""``stablehlo-alpa run``."""

from __future__ import annotations

import contextlib
import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import alpa_runtime
import typer
from alpa_runtime.plan_file import load

from stablehlo_alpa.cli.arguments import (
    check_arguments,
    not_finite,
    random_arguments,
    read_arguments,
)
from stablehlo_alpa.cli.exit_codes import ExitCode
from stablehlo_alpa.cli.local_devices import VirtualOption, first_devices, local_devices
from stablehlo_alpa.cli.model_options import JsonOption
from stablehlo_alpa.cli.plan_file import PlanArgument, checked_path
from stablehlo_alpa.cli.timing import Stepper
from stablehlo_alpa.cli.usage import at_least_one, at_least_zero
from stablehlo_alpa.planning import SavedPlan, is_explained, read_plan
from stablehlo_alpa.units import format_seconds

RUN_SCHEMA = "stablehlo-alpa/run/1"


def run(
    plan: PlanArgument,
    steps: Annotated[
        int,
        typer.Option(callback=at_least_one, help="steps that are timed, behind one that is not"),
    ] = 5,
    args: Annotated[
        Path | None, typer.Option(help="arrays by names or numbers of inputs, an .npz file")
    ] = None,
    seed: Annotated[
        int,
        typer.Option(callback=at_least_zero, help="of what --args leaves out, made up by shape"),
    ] = 0,
    virtual_devices: VirtualOption = None,
    ray: Annotated[bool, typer.Option("--ray", help="on the processes of a Ray cluster")] = False,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="the seconds of a step alone")] = False,
) -> None:
    """Runs a plan on the devices at hand: seconds of a step, measured beside predicted."""
    check_arguments(args)
    path = checked_path(plan)
    saved = read_plan(path) if is_explained(path) else None
    runtime = load(path) if saved is None else saved.runtime
    # Before anything is made of jax, whose first array makes the devices.
    found = local_devices(virtual_devices)
    devices = found if ray else first_devices(found, runtime.num_devices)
    arguments = (
        random_arguments(runtime, seed) if args is None else read_arguments(runtime, args, seed)
    )
    with _executable(runtime, devices, ray) as executable:
        stepper = Stepper(executable, arguments, _next_values(saved))
        first_s = stepper.step()
        seconds = [stepper.step() for _ in range(steps)]
        bad = not_finite(runtime, stepper.results)
    record = _record(runtime, saved, seconds)
    record |= {"platform": "ray" if ray else devices[0].platform, "not_finite": bad}
    record |= {"compile_s": stepper.compile_s, "first_step_s": first_s}
    if as_json:
        typer.echo(json.dumps(record, indent=2))
    else:
        typer.echo(_text(record, quiet))
    if bad:
        typer.echo(f"error: not finite after {steps + 1} steps: {', '.join(bad[:5])}", err=True)
        raise typer.Exit(ExitCode.FAILED)


@contextlib.contextmanager
def _executable(
    runtime: alpa_runtime.Plan, devices: list[Any], on_ray: bool
) -> Iterator[alpa_runtime.Executable]:
    """What runs a plan here, or on a Ray cluster, whose processes end with it."""
    if not on_ray:
        yield alpa_runtime.LocalExecutable(runtime, devices)
        return
    from alpa_runtime.ray import RayCluster, RayExecutable, shutdown
    from alpa_runtime.ray.cluster import find_hosts

    # As many hosts as the cluster has; on one machine one for each mesh, where these are equal.
    sizes = {len(mesh.devices) for mesh in runtime.meshes}
    per_host = sizes.pop() if len(sizes) == 1 else runtime.num_devices
    cluster = RayCluster(num_hosts=runtime.num_devices // per_host, devices_per_host=per_host)
    executable = RayExecutable(runtime, cluster, find_hosts(cluster, len(devices)))
    try:
        yield executable
    finally:
        executable.close()
        shutdown()


def _next_values(saved: SavedPlan | None) -> Mapping[int, int]:
    return {} if saved is None else saved.account.next_values


def _record(
    runtime: alpa_runtime.Plan, saved: SavedPlan | None, seconds: list[float]
) -> dict[str, Any]:
    """What was measured as JSON; the schema is written down in docs/command_line.md."""
    measured = statistics.median(seconds)
    predicted = None if saved is None else saved.step_time_s
    return {
        "schema": RUN_SCHEMA,
        "name": runtime.name,
        "devices": runtime.num_devices,
        "planned_for": None if saved is None else _kinds(saved),
        "step_s": seconds,
        "measured_step_s": measured,
        "predicted_step_s": predicted,
        "ratio": measured / predicted if predicted else None,
    }


def _text(record: Mapping[str, Any], is_brief: bool) -> str:
    measured = format_seconds(record["measured_step_s"])
    if is_brief:
        return measured
    spread = " to ".join(format_seconds(of(record["step_s"])) for of in (min, max))
    lines = [
        f"{record['name']} on {record['devices']} devices ({record['platform']}), compiled in "
        f"{format_seconds(record['compile_s'])}",
        f"step {measured} (measured, median of {len(record['step_s'])}: {spread})",
    ]
    if record["predicted_step_s"] is not None:
        predicted = format_seconds(record["predicted_step_s"])
        # Of what is priced at nothing there is none.
        ratio = record["ratio"]
        compared = "" if ratio is None else f", measured / predicted = {ratio:.3g}"
        lines.append(f"step {predicted} (predicted for {record['planned_for']}){compared}")
    if not record["not_finite"]:
        lines.append("all results are finite")
    return "\n".join(lines)


def _kinds(saved: SavedPlan) -> str:
    """Names of the devices that a plan is for."""
    return " + ".join(part.device.name for part in saved.cluster.parts)
