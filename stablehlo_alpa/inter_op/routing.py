"""Values on their way: between meshes, and between shardings of one mesh."""

from __future__ import annotations

from dataclasses import dataclass

from alpa_runtime import Resharding, SpmdProgram, ValueSpec

from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.compiler import Module, Traffic, format_sharding, tensor_type
from stablehlo_alpa.inter_op.cross_mesh import CrossMeshTransfer, plan_transfer
from stablehlo_alpa.inter_op.gather import gather_collectives, gather_program, gather_seconds
from stablehlo_alpa.planning.device_module import lower_planned, work_of
from stablehlo_alpa.planning.lowering import (
    InsideBytes,
    collectives_in,
    communication_seconds,
    work_seconds,
)
from stablehlo_alpa.planning.stage import CostedProgram


@dataclass(frozen=True)
class Route:
    """How a value goes from one mesh to another.

    Attributes:
        landing: what the destination receives.
        resharding: the pieces that cross.
        gather: the program that makes the wanted value of ``landing``; None where it is that.
    """

    landing: ValueSpec
    resharding: Resharding
    gather: CostedProgram | None


class Router:
    """Plans ways; equal ones once."""

    def __init__(self, inside_bytes: InsideBytes) -> None:
        """Takes what measures what programs need."""
        self._inside_bytes = inside_bytes
        self._routes: dict[tuple[object, ...], Route] = {}
        self._reshards: dict[tuple[object, ...], CostedProgram] = {}

    def route(
        self, source: ValueSpec, source_mesh: LogicalMesh, target: ValueSpec, mesh: LogicalMesh
    ) -> Route:
        """The way of a value to another mesh."""
        # Unlike devices gather at other prices.
        device = mesh.cluster.device.name
        key = (source, tuple(source_mesh.axes), target, tuple(mesh.axes), device)
        if key not in self._routes:
            found = plan_transfer(source, tuple(source_mesh.axes), target, tuple(mesh.axes))
            gather = self._gather(found, target, mesh) if found.needs_gather else None
            landing = found.landing if gather else target
            self._routes[key] = Route(landing, found.resharding, gather)
        return self._routes[key]

    def _gather(
        self, transfer: CrossMeshTransfer, target: ValueSpec, mesh: LogicalMesh
    ) -> CostedProgram:
        name = f"gather_{len(self._routes)}"
        program = gather_program(transfer, target, tuple(mesh.axes), name)
        return CostedProgram(
            program,
            gather_seconds(transfer, mesh, mesh.cluster.device),
            self._inside_bytes.of(program),
            collectives=gather_collectives(transfer, mesh),
        )

    def reshard(self, source: ValueSpec, target: ValueSpec, mesh: LogicalMesh) -> CostedProgram:
        """The program that brings a value of a mesh into another sharding."""
        device = mesh.cluster.device
        key = (source, target, tuple(mesh.axes), device.name)
        if key not in self._reshards:
            name = f"reshard_{len(self._reshards)}"
            module = Module(_identity(source, target, mesh), name)
            module.run("alpa-insert-reshards")
            moved = Traffic.of(module)
            lower_planned(module, device)
            program = SpmdProgram(module.text(), tuple(mesh.axes), (source,), (target,), (), name)
            compute_s = work_seconds(work_of(module, device.platform), device)
            self._reshards[key] = CostedProgram(
                program,
                compute_s + communication_seconds(moved, mesh, device),
                self._inside_bytes.of(program),
                compute_s,
                collectives_in(moved, mesh),
            )
        return self._reshards[key]


def _identity(source: ValueSpec, target: ValueSpec, mesh: LogicalMesh) -> str:
    """A planned module that returns its argument in another sharding."""
    names = [name for name, _ in mesh.axes]
    type_ = tensor_type(source.shape, source.dtype)
    have, want = (
        f"#alpa.sharding<{format_sharding(value.axes, names)}>" for value in (source, target)
    )
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.axes)
    return "\n".join(
        [
            f"module attributes {{alpa.mesh = #alpa.mesh<[{axes}]>}} {{",
            f"func.func public @main(%value: {type_} {{alpa.sharding = {have}}})"
            f" -> ({type_} {{alpa.sharding = {want}}}) {{",
            f"return {{alpa.operands = [{want}]}} %value : {type_}",
            "}",
            "}",
        ]
    )
