"""What the page of a plan shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alpa_runtime import Event
from alpa_runtime.plan import Send
from alpa_runtime.simulate import loads_of

from stablehlo_alpa.cluster import Cluster, ClusterSpec, LogicalMesh, UnlikeCluster
from stablehlo_alpa.planning.baselines import Baselines
from stablehlo_alpa.planning.buffer_kinds import buffer_kinds, input_kinds
from stablehlo_alpa.planning.stage_part import stage_part
from stablehlo_alpa.units import micro_batches
from stablehlo_alpa.view import Part
from stablehlo_alpa.view.folding import fold, fold_remarks
from stablehlo_alpa.view.modules import module_rows
from stablehlo_alpa.view.names import path_of, stages_text
from stablehlo_alpa.view.operators import OperatorRow, operator_rows
from stablehlo_alpa.view.page import (
    MEMORY_KINDS,
    OPTIMISER,
    AlternativeContent,
    ClusterContent,
    CommunicationContent,
    HeldContent,
    LinkContent,
    ModuleContent,
    OperatorContent,
    PageContent,
    PhaseContent,
    RunContent,
    StageContent,
    TensorContent,
)
from stablehlo_alpa.view.parameters import parameter_rows

if TYPE_CHECKING:
    from stablehlo_alpa.planning.plan import Plan

_LABEL = re.compile(r"^stage (?P<stage>\d+) (?P<phase>\w+?)(?: (?P<micro_batch>\d+))?$")
_CONVERSIONS = ("gather", "reshard")
_NUMBERS = "micro-batches"


def page_content(
    plan: Plan, baselines: Baselines | None = None, measured: Sequence[Event] = ()
) -> PageContent:
    """What the page of a plan shows.

    Args:
        plan: the plan.
        baselines: what other methods make of the step; none by default.
        measured: the runs of a step that was traced.
    """
    schedule = plan.schedule
    inputs = input_kinds(plan.program, plan.stages)
    simulation = plan.simulate(buffer_kinds(plan.runtime, plan.stages, inputs))
    parts = [
        stage_part(
            f"stage {number}",
            stage,
            stage.mesh.cluster.device,
            simulation.peak_bytes[schedule.mesh_of(number)],
            schedule,
        )
        for number, stage in enumerate(plan.stages)
    ]
    kinds = dict(zip((path_of(one.name) for one in plan.program.inputs), inputs, strict=True))
    numbered = list(enumerate(parts))
    return PageContent(
        model=plan.program.name,
        method=plan.method,
        schedule=str(schedule.name),
        num_micro_batches=schedule.num_micro_batches,
        recomputed=plan.recomputed,
        step_s=simulation.step_s,
        bound_s=plan.bound_s,
        gap=plan.gap,
        peak_bytes=max(simulation.peak_bytes),
        parts=tuple(map(_cluster, plan.cluster.parts)),
        between=_between(plan.cluster),
        stages=_stages(plan),
        modules=tuple(one for number, part in numbered for one in _modules(number, part)),
        tensors=tuple(one for number, part in numbered for one in _tensors(number, part, kinds)),
        runs=runs_of(simulation.events),
        held=tuple(
            tuple(HeldContent(one.start_s, one.end_s, _by_kind(one.bytes)) for one in own)
            for own in simulation.held
        ),
        communication=_communication(plan, parts),
        alternatives=_alternatives(plan, baselines),
        operators=tuple(one for number, part in numbered for one in _operators(number, part)),
        remarks=tuple(fold_remarks(plan.remarks)),
        measured=runs_of(measured),
    )


def _by_kind(sizes: Sequence[float]) -> tuple[float, ...]:
    """One per kind: those behind the last that any buffer is of are not among what is held."""
    *buffers, inside = (float(size) for size in sizes)
    return (*buffers, *[0.0] * (len(MEMORY_KINDS) - 1 - len(buffers)), inside)


def _cluster(cluster: ClusterSpec) -> ClusterContent:
    inner, outer = cluster.device_link, cluster.host_network
    level = "torus" if cluster.torus else "rack" if cluster.hosts_per_rack > 1 else "host"
    links = [LinkContent(level, "device", float(inner.bandwidth), float(inner.alpha_s))]
    if cluster.num_devices > cluster.devices_per_domain:
        links.append(LinkContent("network", "host", float(outer.bandwidth), float(outer.alpha_s)))
    return ClusterContent(
        device=cluster.device.name,
        memory_bytes=float(cluster.device.memory_bytes),
        num_hosts=cluster.num_hosts,
        devices_per_host=cluster.devices_per_host,
        hosts_per_rack=cluster.hosts_per_rack,
        torus=cluster.torus.shape if cluster.torus else (),
        links=tuple(links),
    )


def _between(cluster: Cluster) -> LinkContent | None:
    if not isinstance(cluster, UnlikeCluster):
        return None
    link = cluster.between
    return LinkContent("between parts", "host", float(link.bandwidth), float(link.alpha_s))


def _stages(plan: Plan) -> tuple[StageContent, ...]:
    simulation = plan.simulation
    found = []
    for number, stage in enumerate(plan.stages):
        mesh = plan.schedule.mesh_of(number)
        phases = tuple(
            PhaseContent(
                one.name,
                float(one.time_s),
                float(one.compute_s),
                one.num_runs(plan.schedule),
            )
            for one in stage.phases
        )
        found.append(
            StageContent(
                mesh=mesh,
                axes=tuple(stage.mesh.axes),
                devices=tuple(stage.devices),
                layers=tuple(stage.layers),
                phases=phases,
                peak_bytes=float(simulation.peak_bytes[mesh]),
                idle=float(simulation.bubble(mesh)),
            )
        )
    return tuple(found)


def _modules(number: int, part: Part) -> list[ModuleContent]:
    return [
        ModuleContent(number, row.name, row.compute_s, row.communication_s, row.memory_bytes)
        for row in module_rows(part)
    ]


def _tensors(number: int, part: Part, kinds: dict[str, str]) -> list[TensorContent]:
    by_kind: dict[str, list[int]] = {}
    for place, value in enumerate(part.inputs):
        by_kind.setdefault(kinds.get(path_of(value.name), OPTIMISER), []).append(place)
    return [
        TensorContent(
            stage=number,
            path=row.path,
            kind=kind,
            count=row.count,
            shape=tuple(int(size) for size in row.shape),
            dtype=str(row.dtype),
            axes=_axes(tuple(row.spec), len(row.shape)),
            bytes=float(row.bytes),
        )
        for kind, places in by_kind.items()
        for row in parameter_rows([part.inputs[place] for place in places], part.mesh)
    ]


def _axes(entries: Sequence[object], rank: int) -> tuple[tuple[str, ...], ...]:
    """Entries of a sharding as a tuple of axes for every dimension."""
    found: list[tuple[str, ...]] = []
    for entry in entries:
        names = () if entry is None else entry if isinstance(entry, tuple) else (entry,)
        found.append(tuple(str(name) for name in names))
    return (*found, *[()] * (rank - len(found)))


def _operators(number: int, part: Part) -> list[OperatorContent]:
    """Equal operators of equal layers as one."""
    rows = operator_rows(part)
    keys = [(row.op, row.strategy, row.collectives) for row in rows]
    found = []
    for group in fold([row.name for row in rows], keys):
        own = [rows[place] for place in group.members]
        found.append(_operator(number, group.name, own))
    return found


def _operator(number: int, name: str, rows: Sequence[OperatorRow]) -> OperatorContent:
    first = rows[0]
    return OperatorContent(
        stage=number,
        name=name,
        op=first.op.split(".")[-1],
        strategy=first.strategy,
        collectives=first.collectives,
        count=len(rows),
        time_s=float(sum(row.time_s for row in rows)),
        memory_bytes=float(sum(row.memory_bytes for row in rows)),
    )


def runs_of(events: Sequence[Event]) -> tuple[RunContent, ...]:
    """Events of a step, predicted or traced, by stage, phase and micro-batch."""
    found = []
    for event in events:
        stage, phase, micro_batch = -1, "other", -1
        if match := _LABEL.match(event.name):
            stage, phase = int(match["stage"]), match["phase"]
            micro_batch = int(match["micro_batch"] or -1)
        elif event.name.startswith(_CONVERSIONS):
            phase = "reshard"
        elif event.name != _NUMBERS:
            # The one program of a step is called as the step is.
            stage, phase = 0, "step"
        start, end = float(event.start_s), float(event.end_s)
        found.append(RunContent(event.mesh, stage, phase, micro_batch, start, end))
    return tuple(found)


def _level(mesh: LogicalMesh, axes: Sequence[str]) -> str:
    """The slowest link that collectives over axes cross."""
    mask = sum(1 << place for place, name in enumerate(mesh.axis_names) if name in axes)
    group = mesh.groups[mask]
    if group.crosses:
        return "network"
    return "torus" if group.rings else "rack" if group.hosts > 1 else "host"


@dataclass
class _Sent:
    """What a mesh sends to another in a step."""

    bytes: float = 0.0
    count: int = 0
    time_s: float = 0.0


def _communication(plan: Plan, parts: Sequence[Part]) -> tuple[CommunicationContent, ...]:
    found = [
        CommunicationContent(
            where=part.label,
            kind=row.kind,
            axes=row.axes,
            level=_level(part.mesh, row.axes),
            bytes=float(row.bytes),
            count=float(row.count),
            time_s=part.seconds_of(row),
        )
        for part in parts
        for row in part.collectives
    ]
    for (source, target), sent in sorted(_sends(plan).items()):
        names = [_mesh_text(plan, mesh) for mesh in (source, target)]
        width = len(plan.runtime.meshes[source].devices)
        level = _level_between(plan, source, target)
        found.append(
            CommunicationContent(
                names[0],
                "send",
                (names[1],),
                level,
                sent.bytes / width,
                float(sent.count),
                sent.time_s,
            )
        )
    return tuple(found)


def _mesh_text(plan: Plan, mesh: int) -> str:
    return stages_text([n for n in range(len(plan.stages)) if plan.schedule.mesh_of(n) == mesh])


def _sends(plan: Plan) -> dict[tuple[int, int], _Sent]:
    """By numbers of sending and receiving mesh."""
    runtime = plan.runtime
    found: dict[tuple[int, int], _Sent] = {}
    known: dict[tuple[int, int, int, str], tuple[float, float]] = {}
    for mesh, instructions in enumerate(runtime.instructions):
        for one in instructions:
            if not isinstance(one, Send):
                continue
            dtype = runtime.value(mesh, one.buffer).dtype
            case = (mesh, one.target, one.resharding, dtype)
            if case not in known:
                loads = loads_of(runtime.reshardings[one.resharding], dtype)
                seconds = plan.transfer_s(mesh, one.target, loads) if loads else 0.0
                known[case] = (float(sum(loads.values())), float(seconds))
            sent = found.setdefault((mesh, one.target), _Sent())
            sent.bytes += known[case][0]
            sent.time_s += known[case][1]
            sent.count += 1
    return found


def _level_between(plan: Plan, source: int, target: int) -> str:
    parts = {
        stage.place.part
        for number, stage in enumerate(plan.stages)
        if plan.schedule.mesh_of(number) in (source, target)
    }
    if len(parts) > 1:
        return "between parts"
    (part,) = parts
    cluster, first = plan.cluster.parts[part], plan.cluster.first_device(part)
    domain, host = cluster.devices_per_domain, cluster.devices_per_host
    devices = [
        device - first for mesh in (source, target) for device in plan.runtime.meshes[mesh].devices
    ]
    if len({device // domain for device in devices}) > 1:
        return "network"
    if cluster.torus:
        return "torus"
    return "rack" if len({device // host for device in devices}) > 1 else "host"


def _alternatives(plan: Plan, baselines: Baselines | None) -> tuple[AlternativeContent, ...]:
    """This plan among those that the search looked at, and beside the baselines."""
    found = []
    for one in plan.tried:
        again = f", {one.recomputed} computed again" if one.recomputed else ""
        name = f"{micro_batches(one.num_micro_batches)}, {one.schedule}{again}"
        is_chosen = one.step_time_s == plan.step_time_s
        found.append(AlternativeContent(name, one.step_time_s, False, is_chosen, one.reason))
    if not any(one.is_chosen for one in found):
        name = plan.method or "this plan"
        found.insert(0, AlternativeContent(name, plan.step_time_s, False, True))
    for row in baselines.rows if baselines else ():
        step = None if row.plan is None else float(row.plan.step_time_s)
        outcome = "does not fit: " if row.is_too_large else "refused: "
        reason = "" if row.plan else outcome + (row.reason.splitlines() or [""])[0]
        found.append(AlternativeContent(row.method, step, True, False, reason))
    return tuple(found)
