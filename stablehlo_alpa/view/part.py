"""What is shown of a plan: plain data of one mesh, or of one mesh per stage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from alpa_runtime import ValueSpec

from stablehlo_alpa.cluster import DeviceSpec, LogicalMesh
from stablehlo_alpa.cost import CollectiveKind, PricedGraph, Volume, collective_seconds
from stablehlo_alpa.intra_op import Solution
from stablehlo_alpa.view.sheet import Column, Sheet


@dataclass(frozen=True)
class Collective:
    """Collectives of one kind over the same mesh axes.

    Attributes:
        kind: ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"all_to_all"`` or
            ``"collective_permute"``.
        axes: mesh axes.
        bytes: payload per device and step.
        count: how many run per step.
    """

    kind: str
    axes: tuple[str, ...]
    bytes: float
    count: float


@dataclass(frozen=True, eq=False)
class Part:
    """A program on one mesh.

    Attributes:
        label: what it is among several, ``"stage 0"``; empty where it is all there is.
        inputs: what it is given, with shardings.
        mesh: the mesh.
        device: one of its devices.
        priced: its operators with the seconds of their strategies.
        solution: the strategy of each.
        collectives: of one step.
        live: names and bytes per device of what is live where most memory is needed.
        peak_bytes: per device.
    """

    label: str
    inputs: tuple[ValueSpec, ...]
    mesh: LogicalMesh
    device: DeviceSpec
    priced: PricedGraph
    solution: Solution
    collectives: tuple[Collective, ...]
    live: tuple[tuple[str, float], ...]
    peak_bytes: float

    def seconds_of(self, row: Collective) -> float:
        """Predicted seconds per step of collectives."""
        if not row.count:
            return 0.0
        mask = sum(1 << i for i, name in enumerate(self.mesh.axis_names) if name in row.axes)
        kind = CollectiveKind[row.kind.upper()]
        each = collective_seconds([kind], [mask], [row.bytes / row.count], self.mesh, self.device)
        return row.count * float(each[0])


def axes_of(mask: int, mesh: LogicalMesh) -> tuple[str, ...]:
    """Names of the mesh axes of a mask: bit i is axis i."""
    return tuple(name for i, name in enumerate(mesh.axis_names) if mask >> i & 1)


def collectives(
    volumes: Iterable[tuple[int, int, Volume]], mesh: LogicalMesh
) -> tuple[Collective, ...]:
    """Collectives per kind and axes, most bytes first.

    Args:
        volumes: kind, mask of mesh axes and volume of each; local steps are left out.
        mesh: the mesh of the axes.
    """
    return merged(
        Collective(
            CollectiveKind(kind).name.lower(),
            axes_of(mask, mesh),
            volume.payload_bytes,
            volume.count,
        )
        for kind, mask, volume in volumes
        if kind != CollectiveKind.LOCAL
    )


def merged(rows: Iterable[Collective]) -> tuple[Collective, ...]:
    """Those of one kind over the same axes of one mesh as one, most bytes first."""
    total: dict[tuple[str, tuple[str, ...]], Collective] = {}
    for row in rows:
        before = total.get((row.kind, row.axes), Collective(row.kind, row.axes, 0.0, 0.0))
        total[row.kind, row.axes] = Collective(
            row.kind, row.axes, before.bytes + row.bytes, before.count + row.count
        )
    return tuple(sorted(total.values(), key=lambda row: (-row.bytes, row.kind, row.axes)))


def make_sheet(
    parts: Sequence[Part],
    title: str,
    columns: Sequence[Column],
    rows: Sequence[tuple[str, Sequence[str]]],
    records: Sequence[Any],
    note: str = "",
) -> Sheet:
    """A table of the parts of a plan.

    Args:
        parts: of the plan; several have a column that names them.
        title: of the table.
        columns: without that column.
        rows: label of the part, and cells.
        records: what the rows were made of.
        note: below the table.
    """
    if not any(part.label for part in parts):
        return Sheet(title, tuple(columns), tuple(tuple(c) for _, c in rows), tuple(records), note)
    cells = tuple((label, *own) for label, own in rows)
    return Sheet(title, (Column("part"), *columns), cells, tuple(records), note)
