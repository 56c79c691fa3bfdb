"""A plan: how one program is split over one mesh, what that costs, and why."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import alpa_runtime
import jax
import numpy as np
from alpa_runtime import SpmdProgram, ValueSpec
from jax.sharding import PartitionSpec

from stablehlo_alpa.cluster import ClusterSpec, LogicalMesh
from stablehlo_alpa.cost import PricedGraph, Volume
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.intra_op import Difference, Explanation, Solution, diff, explain
from stablehlo_alpa.planning.compiler import run_passes
from stablehlo_alpa.units import format_bytes, format_seconds
from stablehlo_alpa.view import (
    Collective,
    Part,
    Report,
    Shown,
    collectives,
    mesh_text,
    solution_lines,
)


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """How a program runs on a mesh. Printing it shows shardings, modules and remarks.

    Attributes:
        program: what was planned.
        spmd: the per-device program.
        mesh: the logical mesh chosen.
        cluster: the devices it was chosen for.
        priced: the strategies with their seconds.
        solution: the strategy of every operator.
        stages: module texts by stage: traced, merged, planned, local.
        volumes: the collectives of the planned module (arrays kind, axes, bytes, count, name).
        memory: of the local module: peak_bytes and the largest live tensors.
        remarks: what the compiler wants known, e.g. operators that it could only replicate.
    """

    program: TracedProgram
    spmd: SpmdProgram
    mesh: LogicalMesh
    cluster: ClusterSpec
    priced: PricedGraph
    solution: Solution
    stages: Mapping[str, str]
    volumes: Mapping[str, Any]
    memory: Mapping[str, Any]
    remarks: tuple[str, ...] = ()

    @cached_property
    def runtime(self) -> alpa_runtime.Plan:
        """What is run."""
        return alpa_runtime.Plan.of_program(self.spmd)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes what is run to one file, for ``alpa_runtime.load``."""
        alpa_runtime.save(self.runtime, path)

    @property
    def mesh_shape(self) -> tuple[int, ...]:
        """Sizes of the mesh axes."""
        return self.mesh.shape

    @property
    def input_shardings(self) -> Any:
        """``(args, kwargs)`` of ``PartitionSpec``, without the static arguments."""
        return jax.tree.unflatten(self.program.in_tree, _logical(self.spmd.inputs))

    @property
    def output_shardings(self) -> Any:
        """``PartitionSpec`` in the structure of the result."""
        return jax.tree.unflatten(self.program.out_tree, _logical(self.spmd.outputs))

    @property
    def step_time_s(self) -> float:
        """Predicted seconds of one call."""
        return self.solution.objective_s

    @property
    def peak_bytes(self) -> float:
        """Predicted bytes of live tensors per device at the worst point of the local module."""
        return float(self.memory["peak_bytes"])

    def module_text(self, stage: str = "local") -> str:
        """The module at a stage: ``traced``, ``merged``, ``planned`` or ``local``."""
        if stage not in self.stages:
            raise ShardingError(f"stage {stage!r} is not known, stages are {list(self.stages)}")
        return self.stages[stage]

    def export(self, form: str = "shardy") -> str:
        """The whole program with the plan's shardings, for one of XLA's partitioners.

        Args:
            form: ``"shardy"`` (``sdy.sharding_constraint``) or ``"gspmd"`` (``mhlo.sharding``).

        Raises:
            ShardingError: the form is not known.
        """
        if form not in ("shardy", "gspmd"):
            raise ShardingError(f"form is {form!r}, must be 'shardy' or 'gspmd'")
        passes = f"builtin.module(alpa-export-shardings{{form={form}}})"
        return run_passes(self.stages["planned"], passes, self.program.name)[0]

    def explain(self, name: str) -> Explanation:
        """Says which strategies an operator has, what each costs and why one was chosen."""
        return explain(self.priced, self.solution, name)

    def diff(self, other: Plan) -> Difference:
        """Says which operators another plan of the program splits differently, at which cost."""
        return diff(self.priced, self.solution, other.priced, other.solution)

    @property
    def memory_price_s_per_gib(self) -> float:
        """Seconds per step that one more GiB per device would save; 0 without a tight budget."""
        return self.solution.memory_price_s * 2**30

    def communication(self) -> list[Collective]:
        """Collectives of one step per kind and axes, most bytes first."""
        kinds, axes, sizes, counts = (
            np.asarray(self.volumes[key]).tolist() for key in ("kind", "axes", "bytes", "count")
        )
        volumes = [
            (kind, mask, Volume(size * count, count))
            for kind, mask, size, count in zip(kinds, axes, sizes, counts, strict=True)
        ]
        return list(collectives(volumes, self.mesh))

    def report(self) -> Report:
        """What is shown of it."""
        live = zip(self.memory["name"], np.asarray(self.memory["bytes"]).tolist(), strict=True)
        part = Part(
            label="",
            inputs=self.spmd.inputs,
            mesh=self.mesh,
            device=self.cluster.device,
            priced=self.priced,
            solution=self.solution,
            collectives=tuple(self.communication()),
            live=tuple(live),
            peak_bytes=self.peak_bytes,
        )
        name = f"plan of {self.program.name}"
        brief = (
            f"{name}: {mesh_text(part)}, {format_seconds(self.step_time_s)} per step, "
            f"{format_bytes(self.peak_bytes)} per device"
        )
        return Report(
            heading=f"{name} on {mesh_text(part)}",
            brief=brief,
            lines=solution_lines(part),
            parts=(part,),
            remarks=self.remarks,
        )


def _logical(values: tuple[ValueSpec, ...]) -> list[PartitionSpec]:
    return [value.logical_spec for value in values]
