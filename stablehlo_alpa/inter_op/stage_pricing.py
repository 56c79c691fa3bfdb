"""Prices of stages by the intra-operator planner: what was chosen is solved exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.compiler import enumerate_strategies, without_locations
from stablehlo_alpa.cost import PricedGraph, price
from stablehlo_alpa.errors import InfeasibleError, MeshError
from stablehlo_alpa.inter_op.layer_parts import content_digest
from stablehlo_alpa.inter_op.slicing import LayeredStep
from stablehlo_alpa.inter_op.stage_planner import prepare_stage
from stablehlo_alpa.inter_op.submeshes import Submesh
from stablehlo_alpa.intra_op import Solution, SolveOptions, SolverCache, in_pipeline, solve
from stablehlo_alpa.planning.mesh_search import Subject

_Key: TypeAlias = tuple[str, Submesh, int]


@dataclass(frozen=True)
class StagePrice:
    """What a stage costs on a submesh.

    Attributes:
        time_s: seconds per micro-batch, its share of what runs once per step included.
        bound_s: no plan of the stage within the budget takes less.
    """

    time_s: float
    bound_s: float


class StagePricing:
    """Solves stages, each with its micro-batches in flight; equal ones once."""

    def __init__(
        self,
        layered: LayeredStep,
        cluster: ClusterSpec,
        num_micro_batches: int,
        options: SolveOptions,
    ) -> None:
        """Takes a step with layers and phases; see ``alpa-mark-layers``."""
        # Without locations the text is short and equal layers are equal.
        self.layered = replace(layered, text=without_locations(layered.text))
        self._cluster, self._micro_batches = cluster, num_micro_batches
        self._options = options
        self._cache = SolverCache()
        self._subjects: dict[tuple[int, int], tuple[Subject, str]] = {}
        self._priced: dict[tuple[str, Submesh], PricedGraph] = {}
        self._found: dict[_Key, Solution | InfeasibleError] = {}
        self.refusals: list[InfeasibleError] = []

    def price(self, first: int, last: int, submesh: Submesh, in_flight: int) -> StagePrice | None:
        """The price of a run of layers; None where it does not fit the memory.

        Args:
            first: layer.
            last: layer, included.
            submesh: where it runs.
            in_flight: micro-batches whose activations are kept.
        """
        found = self._solution(first, last, submesh, in_flight)
        if isinstance(found, InfeasibleError):
            self.refusals.append(found)
            return None
        time_s = found.objective_s / self._micro_batches
        return StagePrice(time_s, time_s * (1 - found.gap))

    def solution(self, first: int, last: int, submesh: Submesh, in_flight: int) -> Solution:
        """The strategies behind a price.

        Raises:
            InfeasibleError: it does not fit the memory.
        """
        found = self._solution(first, last, submesh, in_flight)
        if isinstance(found, InfeasibleError):
            raise found
        return found

    def _solution(
        self, first: int, last: int, submesh: Submesh, in_flight: int
    ) -> Solution | InfeasibleError:
        subject, digest = self._prepare(first, last)
        key = (digest, submesh, in_flight)
        if key not in self._found:
            try:
                self._found[key] = self._solve(subject, key)
            except InfeasibleError as error:
                self._found[key] = error
            except MeshError as error:
                self._found[key] = InfeasibleError(str(error))
        return self._found[key]

    def _prepare(self, first: int, last: int) -> tuple[Subject, str]:
        """A run of layers with roles, and its digest."""
        if (first, last) not in self._subjects:
            stages = tuple(
                int(layer >= first) + int(layer > last) - int(first == 0)
                for layer in range(self.layered.num_layers)
            )
            sliced = self.layered.slice(stages)[f"stage_{stages[first]}"]
            subject = prepare_stage(sliced, f"{self.layered.name} layers {first} to {last}")
            self._subjects[first, last] = subject, content_digest(subject.merged)
        return self._subjects[first, last]

    def _solve(self, subject: Subject, key: _Key) -> Solution:
        """Solves a stage, beginning with what is known of it with other micro-batches in flight."""
        digest, submesh, in_flight = key
        if (digest, submesh) not in self._priced:
            cluster = self._cluster.part(submesh.hosts, submesh.devices_per_host)
            mesh = cluster.logical_mesh(submesh.mesh_shape)
            graph = enumerate_strategies(subject.merged, mesh, subject.name)
            self._priced[digest, submesh] = price(graph, mesh, cluster.device)
        priced = self._priced[digest, submesh]
        priced = replace(priced, graph=in_pipeline(priced.graph, in_flight, self._micro_batches))
        before = [
            found
            for (other, where, _), found in self._found.items()
            if (other, where) == (digest, submesh) and isinstance(found, Solution)
        ]
        return solve(priced, self._options, self._cache, before)
