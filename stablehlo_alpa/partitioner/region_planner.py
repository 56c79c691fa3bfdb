"""Plans a region on the mesh of the program around it, under the shardings that XLA proposes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Any

from jax.sharding import Mesh, PartitionSpec

from stablehlo_alpa.cluster import cluster_of
from stablehlo_alpa.errors import MeshError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.partitioner.asked import Asked
from stablehlo_alpa.partitioner.recent import Recent
from stablehlo_alpa.planning import (
    Plan,
    PlanOptions,
    Preferred,
    Prescription,
    Wish,
    plan_program,
)

_plans: Recent[Plan] = Recent(256)

Entries = tuple[tuple[tuple[str, ...], ...], ...]
"""Per tensor and dimension the mesh axes that split it."""


@dataclass(frozen=True)
class Proposal:
    """Shardings that XLA has found for a region's arguments and results.

    Attributes:
        inputs, outputs: per tensor and dimension the mesh axes.
    """

    inputs: Entries
    outputs: Entries

    @property
    def is_empty(self) -> bool:
        """Whether nothing is split: XLA knows nothing, or wants nothing."""
        return not any(axes for entries in (*self.inputs, *self.outputs) for axes in entries)

    @property
    def prescription(self) -> Prescription:
        """What is split stays so, as far as the operators at the boundary allow it together.

        The planner pays what XLA pays to have results whole that it proposes whole. Where XLA
        proposes nothing at all, results are the planner's choice, and nothing is charged.
        """
        whole = {index for index, entries in enumerate(self.outputs) if not any(entries)}
        return Prescription(
            inputs=_preferred(self.inputs),
            outputs=_preferred(self.outputs),
            gathered=frozenset() if self.is_empty else frozenset(whole),
        )


def plan_region(
    program: TracedProgram,
    mesh: Mesh,
    proposal: Proposal,
    asked: Asked,
) -> Plan:
    """The plan of a region; equal regions under equal proposals are planned once.

    Raises:
        InfeasibleError: no plan keeps the memory budget.
        MeshError: the mesh's devices are not known.
    """
    options = replace(mesh_options(mesh, asked), prescription=proposal.prescription)
    rest = (
        options.cluster,
        options.mesh_shapes,
        options.axis_names,
        options.solve,
        proposal,
        program.trip_count_hint,
    )
    return _plans.get(digest(program, rest), lambda: plan_program(program, options))


def mesh_options(mesh: Mesh, asked: Asked) -> PlanOptions:
    """What is planned for on a mesh of jax.

    Raises:
        MeshError: the mesh's devices are not known, or both a device and a cluster are given.
    """
    method, cluster = asked.method, asked.cluster
    assert not isinstance(method.device, str)
    if cluster is None:
        cluster = cluster_of(list(mesh.devices.flat), method.device)
    elif method.device is not None:
        raise MeshError(f"cluster= is of {cluster.device.name} and method has device=: pass one")
    budget = method.memory_budget
    assert not isinstance(budget, str)
    return PlanOptions(
        cluster=cluster,
        mesh_shapes=(tuple(mesh.devices.shape),),
        axis_names=tuple(map(str, mesh.axis_names)),
        solve=SolveOptions(
            memory_budget=cluster.device.memory_bytes if budget is None else budget,
            time_limit_s=method.time_limit_s,
        ),
    )


def digest(program: TracedProgram, rest: Any = None) -> str:
    """Of a program, wherever in the source it stands, and of what else counts."""
    text = re.sub(r" loc\([^)]*\)|^#loc.*$", "", program.text, flags=re.MULTILINE)
    # A plan keeps its program, and with it the callbacks, whose addresses stay theirs.
    kernels = [one.partition for one in program.kernels]
    return hashlib.sha256(f"{program.name}\0{rest!r}\0{kernels!r}\0{text}".encode()).hexdigest()


def _preferred(tensors: Entries) -> dict[int, Wish]:
    """Where nothing holds a tensor so, XLA reshards at the border."""
    return {
        index: Preferred(PartitionSpec(*entries))
        for index, entries in enumerate(tensors)
        if any(entries)
    }
