"""A plan beside what XLA's compiler for an accelerator makes of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from alpa_runtime import SpmdProgram

from stablehlo_alpa import view
from stablehlo_alpa.planning.prediction import Predicted
from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view import Column, Sheet
from stablehlo_alpa.witness import Collective, Examination, Kind, runs_of, sent_bytes


@dataclasses.dataclass(frozen=True)
class MeshClaims:
    """What a step takes on a mesh, by the plan or by XLA.

    Attributes:
        peak_bytes: per device.
        collectives: of a step.
        compute_s: seconds per step without communication; None where there is no estimate.
        optimal_s: XLA's ``optimal_seconds`` of a step, see `Examination.optimal_seconds`; None of
            plans, and where there is none.
    """

    peak_bytes: float
    collectives: tuple[Collective, ...]
    compute_s: float | None
    optimal_s: float | None = None

    @property
    def sent_bytes(self) -> float:
        """Bytes per step that a device sends, with bandwidth-optimal algorithms."""
        return sent_bytes(self.collectives)


@dataclasses.dataclass(frozen=True)
class MeshCheck:
    """A mesh of a plan.

    Attributes:
        planned: what the plan says.
        compiled: what XLA says.
    """

    planned: MeshClaims
    compiled: MeshClaims


@dataclasses.dataclass(frozen=True, repr=False)
class PlanCheck:
    """A plan beside what XLA makes of it. Printing it shows a table.

    Attributes:
        name: of the step.
        meshes: by number.
        examination: texts, memory and estimates of the compiled programs.
    """

    name: str
    meshes: tuple[MeshCheck, ...]
    examination: Examination

    def sheet(self) -> Sheet:
        """The table; ``records`` of it are ``meshes``."""
        target = self.examination.target.name
        rows = tuple(
            (str(number), *cells)
            for number, mesh in enumerate(self.meshes)
            for cells in _rows(mesh.planned, mesh.compiled)
        )
        numbers = (Column("plan", is_number=True), Column(f"XLA for {target}", is_number=True))
        columns = (Column("mesh"), Column("per device"), *numbers)
        return Sheet(f"check of {self.name} for {target}", columns, rows, self.meshes)

    def __str__(self) -> str:
        return self.sheet().text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.sheet().html()


def check_plan(predicted: Predicted, examination: Examination) -> PlanCheck:
    """Puts predictions beside what was compiled.

    Args:
        predicted: the plan.
        examination: of what it runs.

    Raises:
        HloError: what a compiled program sends cannot be told.
    """
    meshes = tuple(
        MeshCheck(planned_claims(predicted, mesh), compiled_claims(examination, mesh))
        for mesh in range(len(predicted.runtime.meshes))
    )
    return PlanCheck(predicted.runtime.name, meshes, examination)


def planned_claims(predicted: Predicted, mesh: int) -> MeshClaims:
    """What a plan says of one of its meshes.

    Args:
        predicted: the plan.
        mesh: number of the mesh.
    """
    runs = runs_of(predicted.runtime, mesh)
    found = [
        dataclasses.replace(one, count=one.count * count)
        for number, count in runs.items()
        for one in planned_collectives(predicted, number)
    ]
    return MeshClaims(
        predicted.simulation.peak_bytes[mesh],
        tuple(found),
        sum(predicted.costs[number].compute_s * count for number, count in runs.items()),
    )


def compiled_claims(examination: Examination, mesh: int) -> MeshClaims:
    """What XLA says of one of a plan's meshes.

    Args:
        examination: of what the plan runs.
        mesh: number of the mesh.

    Raises:
        HloError: what a compiled program sends cannot be told.
    """
    return MeshClaims(
        float(examination.memory_analysis()[mesh].peak_memory_in_bytes),
        examination.collectives(mesh),
        examination.kernel_seconds(mesh),
        examination.optimal_seconds(mesh),
    )


def planned_collectives(predicted: Predicted, number: int) -> tuple[Collective, ...]:
    """Those of one run of a program, as the plan has them.

    Args:
        predicted: the plan.
        number: of the program.
    """
    cost = predicted.costs[number]
    return tuple(_of_axes(one, cost.program) for one in cost.collectives if one.count)


def _of_axes(one: view.Collective, program: SpmdProgram) -> Collective:
    kind, sizes = Kind(one.kind), program.mesh_sizes
    size = math.prod(sizes[axis] for axis in one.axes)
    return Collective(kind, size, one.bytes / one.count, one.count)


def _rows(planned: MeshClaims, compiled: MeshClaims) -> Iterable[tuple[str, ...]]:
    """What is compared, and both values."""
    both = (planned, compiled)
    yield "memory at the peak", *(format_bytes(one.peak_bytes) for one in both)
    yield "sent", *(format_bytes(one.sent_bytes) for one in both)
    for kind in Kind:
        cells = [_kind_cell([one for one in c.collectives if one.kind is kind]) for c in both]
        if any(cells):
            yield f"  {kind}", *cells
    yield "compute", *(_seconds_cell(one.compute_s) for one in both)
    if any(one.optimal_s is not None for one in both):
        yield "  optimal_seconds", *(_seconds_cell(one.optimal_s) for one in both)


def _seconds_cell(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds)


def _kind_cell(found: list[Collective]) -> str:
    if not found:
        return ""
    return f"{sum(one.count for one in found):g} x, {format_bytes(sent_bytes(found))}"
