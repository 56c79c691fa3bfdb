"""Prices of stages: every run of layers on every submesh, by the intra-operator planner."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from stablehlo_alpa.cluster import ClusterSpec, logical_mesh_shapes
from stablehlo_alpa.compiler import Signature, tensor_bytes, without_locations
from stablehlo_alpa.cost import link_seconds, network_transfer_seconds
from stablehlo_alpa.errors import InfeasibleError, MeshError
from stablehlo_alpa.inter_op.slicing import LayeredStep
from stablehlo_alpa.inter_op.stage_planner import prepare_stage
from stablehlo_alpa.inter_op.stage_search import StageChoice
from stablehlo_alpa.intra_op import MemoryModel, SolveOptions, SolverCache
from stablehlo_alpa.planning.mesh_search import Candidate, PlanOptions, Subject, solve_on
from stablehlo_alpa.planning.stage import Slot, SlotKind

_log = logging.getLogger(__name__)

# What differs between equal layers: where they come from, not what they are.
_POSITIONS = re.compile(r"alpa\.(input|output|transfer|layer) = \d+")


@dataclass(frozen=True)
class Submesh:
    """A part of the cluster under a logical shape.

    Attributes:
        hosts, devices_per_host: its size.
        mesh_shape: the logical mesh laid over it.
    """

    hosts: int
    devices_per_host: int
    mesh_shape: tuple[int, ...]

    @property
    def num_devices(self) -> int:
        """Devices."""
        return self.hosts * self.devices_per_host


@dataclass(frozen=True)
class StagePrice:
    """What a stage costs on a submesh.

    Attributes:
        time_s: seconds per micro-batch, its share of what runs once per step included.
        memory_bytes: per device beside activations.
        activation_bytes: per device and micro-batch in flight.
    """

    time_s: float
    memory_bytes: float
    activation_bytes: float

    def most_in_flight(self, budget: float) -> int:
        """Micro-batches whose activations fit (paper, Eq. 5)."""
        room = budget - self.memory_bytes
        if room < self.activation_bytes:
            return 0
        return int(min(room // max(self.activation_bytes, 1e-9), 1 << 30))


def submeshes(cluster: ClusterSpec) -> list[Submesh]:
    """(1, 2^p) within a host and (n, M) over whole hosts, each under all its logical shapes.

    Paper, section 5.2; Theorem 1 there: any choice of them with the right total covers the cluster.
    """
    sizes = []
    per_host = cluster.devices_per_host
    size = 1
    while size < per_host:
        if per_host % size == 0:
            sizes.append((1, size))
        size *= 2
    sizes += [(hosts, per_host) for hosts in range(1, cluster.num_hosts + 1)]
    return [
        Submesh(hosts, devices, shape)
        for hosts, devices in sizes
        for shape in logical_mesh_shapes(hosts * devices, hosts)
    ]


class StagePricing:
    """Prices runs of layers; equal ones once."""

    def __init__(
        self,
        layered: LayeredStep,
        cluster: ClusterSpec,
        num_micro_batches: int,
        options: SolveOptions,
    ) -> None:
        """Takes a step with layers and phases; see ``alpa-mark-layers``."""
        # Without locations the text is short and equal layers are equal.
        self._layered = replace(layered, text=without_locations(layered.text))
        self._num_layers, self._cluster = layered.num_layers, cluster
        self._micro_batches, self._options = num_micro_batches, options
        self._cache = SolverCache()
        self._prices: dict[tuple[str, Submesh], StagePrice | InfeasibleError] = {}
        self.refusals: list[InfeasibleError] = []

    @property
    def num_solved(self) -> int:
        """Intra-operator programmes solved so far."""
        return len(self._prices)

    def choices(self) -> Iterator[StageChoice]:
        """All runs of layers on all submeshes on which they fit; the key is the submesh."""
        budget = self._options.memory_budget or self._cluster.device.memory_bytes
        meshes = submeshes(self._cluster)
        for first in range(self._num_layers):
            for last in range(first, self._num_layers):
                subject, digest, received = self._prepare(first, last)
                for submesh in meshes:
                    price = self._price(subject, digest, submesh)
                    if isinstance(price, InfeasibleError):
                        self.refusals.append(price)
                        continue
                    time = price.time_s + self._receive_s(received, submesh)
                    most = price.most_in_flight(budget)
                    yield StageChoice(first, last, submesh.num_devices, time, most, submesh)

    def _prepare(self, first: int, last: int) -> tuple[Subject, str, float]:
        """A run of layers with roles, its digest, and the bytes it receives per micro-batch."""
        stages = tuple(
            int(layer >= first) + int(layer > last) - int(first == 0)
            for layer in range(self._num_layers)
        )
        sliced = self._layered.slice(stages)[f"stage_{stages[first]}"]
        subject = prepare_stage(sliced, f"{self._layered.name} layers {first} to {last}")
        digest = hashlib.sha256(_POSITIONS.sub(r"alpa.\1", subject.merged).encode()).hexdigest()
        signature = Signature.of(subject.merged)
        inputs = zip(
            map(Slot.parse, signature.inputs.kinds),
            signature.inputs.types,
            signature.input_once,
            strict=True,
        )
        received = sum(
            tensor_bytes(type_) / (self._micro_batches if is_once else 1)
            for slot, type_, is_once in inputs
            if slot.kind is SlotKind.TRANSFER
        )
        return subject, digest, received

    def _price(
        self, subject: Subject, digest: str, submesh: Submesh
    ) -> StagePrice | InfeasibleError:
        key = (digest, submesh)
        if key not in self._prices:
            try:
                cluster = self._cluster.part(submesh.hosts, submesh.devices_per_host)
                options = PlanOptions(cluster, (submesh.mesh_shape,), solve=self._options)
                mesh = cluster.logical_mesh(submesh.mesh_shape)
                candidate = solve_on(subject, mesh, options, self._cache)
                self._prices[key] = stage_price(candidate, self._micro_batches)
            except InfeasibleError as error:
                self._prices[key] = error
            except MeshError as error:
                self._prices[key] = InfeasibleError(str(error))
        return self._prices[key]

    def _receive_s(self, received: float, submesh: Submesh) -> float:
        """Seconds in which a stage receives its input, every device its part (heuristic)."""
        if not received:
            return 0.0
        if self._cluster.num_devices > self._cluster.devices_per_domain:
            return network_transfer_seconds(received / submesh.hosts, self._cluster)
        return link_seconds(received / submesh.num_devices, self._cluster)


def stage_price(candidate: Candidate, num_micro_batches: int) -> StagePrice:
    """The price of a solved stage."""
    graph, choice = candidate.priced.graph, candidate.solution.choice
    memory = MemoryModel.of(graph)
    sizes = memory.value_bytes(choice)
    last = graph.num_forward_points - 1
    # Arguments are there all the time; what the forward phase leaves to the backward phase is kept
    # once per micro-batch in flight.
    is_argument = (graph.value_start == 0) & (graph.value_end == graph.num_points - 1)
    is_kept = (graph.value_start <= last) & (graph.value_end > last) & ~is_argument
    activation = float(np.sum(sizes[is_kept]))
    return StagePrice(
        time_s=candidate.solution.objective_s / num_micro_batches,
        memory_bytes=candidate.solution.memory_peak_bytes - activation,
        activation_bytes=activation,
    )
