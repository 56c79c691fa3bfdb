"""What the page of a plan shows, as plain data that a plan file can keep."""

from __future__ import annotations

import json
from dataclasses import dataclass

from alpa_runtime import ProgramError
from alpa_runtime.plain_data import decode, encode

from stablehlo_alpa.view.names import stages_text

CONTENT_VERSION = 2
MEMBER = "page.json"
"""Under which name the archive of a plan keeps the content."""

PARAMETERS = "parameters"
OPTIMISER = "optimiser and other state"
BATCH = "batch"
ACTIVATIONS = "activations"
GRADIENTS = "gradients"
RESULTS = "results"
INSIDE = "inside of programs"
MEMORY_KINDS = (PARAMETERS, OPTIMISER, BATCH, ACTIVATIONS, GRADIENTS, RESULTS, INSIDE)
"""What memory is split into. The last is what a program needs beside inputs and outputs."""


@dataclass(frozen=True)
class LinkContent:
    """Links of a level.

    Attributes:
        level: ``"host"``, ``"rack"``, ``"torus"``, ``"network"``, or ``"between parts"``.
        owner: what has one, ``"device"`` or ``"host"``.
        bandwidth: bytes per second, one direction.
        alpha_s: seconds before the first byte.
    """

    level: str
    owner: str
    bandwidth: float
    alpha_s: float


@dataclass(frozen=True)
class ClusterContent:
    """Devices of equal hosts: all, or a part of them.

    Attributes:
        device: name.
        memory_bytes: of a device.
        num_hosts, devices_per_host: how many.
        hosts_per_rack: hosts whose devices are linked as those of one are.
        torus: devices along the axes of the grid that they are linked in; empty where there is
            none.
        links: of all levels.
    """

    device: str
    memory_bytes: float
    num_hosts: int
    devices_per_host: int
    hosts_per_rack: int
    torus: tuple[int, ...]
    links: tuple[LinkContent, ...]

    @property
    def text(self) -> str:
        """``2 hosts of 8 h100-80gb``."""
        hosts = f"{self.num_hosts} host{'s' if self.num_hosts > 1 else ''}"
        return f"{hosts} of {self.devices_per_host} {self.device}"


@dataclass(frozen=True)
class PhaseContent:
    """A program of a stage.

    Attributes:
        name: ``"forward"`` and the like.
        time_s, compute_s: seconds of one run, and of it what is no communication.
        count: runs per step.
    """

    name: str
    time_s: float
    compute_s: float
    count: int


@dataclass(frozen=True)
class StageContent:
    """A stage.

    Attributes:
        mesh: number of the mesh that it runs on; several stages may have one.
        axes: names and sizes of its mesh.
        devices: positions in the cluster.
        layers: numbers; empty where the step is not cut into layers.
        phases: its programs.
        peak_bytes: per device of its mesh.
        idle: part of the step in which its mesh waits.
    """

    mesh: int
    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...]
    layers: tuple[int, ...]
    phases: tuple[PhaseContent, ...]
    peak_bytes: float
    idle: float


@dataclass(frozen=True)
class ModuleContent:
    """A module, or equal ones of several layers.

    Attributes:
        stage: number of the stage.
        name: ``GPT/layer_{0..47}``.
        compute_s, communication_s: seconds per step.
        memory_bytes: per device, where the plan needs the most.
    """

    stage: int
    name: str
    compute_s: float
    communication_s: float
    memory_bytes: float


@dataclass(frozen=True)
class TensorContent:
    """Inputs of equal layers, of one shape, type and sharding.

    Attributes:
        stage: number of the stage that reads them.
        path: where they are, ``state/params/layer_{0..47}/up/kernel``.
        kind: of `MEMORY_KINDS`.
        count: how many they are.
        shape, dtype: of each.
        axes: of each, per dimension the mesh axes that split it.
        bytes: per device, of all of them.
    """

    stage: int
    path: str
    kind: str
    count: int
    shape: tuple[int, ...]
    dtype: str
    axes: tuple[tuple[str, ...], ...]
    bytes: float


@dataclass(frozen=True)
class RunContent:
    """Something that runs on a mesh.

    Attributes:
        mesh, stage: numbers; -1 where it is of no stage.
        phase: of a stage, or ``"reshard"``, ``"other"``.
        micro_batch: number, -1 of none.
        start_s, end_s: seconds since the step began.
    """

    mesh: int
    stage: int
    phase: str
    micro_batch: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class HeldContent:
    """What a device holds for a while.

    Attributes:
        start_s, end_s: from when until when.
        bytes: one per kind of `MEMORY_KINDS`.
    """

    start_s: float
    end_s: float
    bytes: tuple[float, ...]


@dataclass(frozen=True)
class CommunicationContent:
    """Collectives of one kind over the same axes, or what a mesh sends to another.

    Attributes:
        where: ``"stage 0"``.
        kind: of the collective, or ``"send"``.
        axes: mesh axes, or the mesh that is sent to.
        level: of `LinkContent`, the slowest that it crosses.
        bytes: payload per device and step.
        count: per step.
        time_s: predicted seconds per step.
    """

    where: str
    kind: str
    axes: tuple[str, ...]
    level: str
    bytes: float
    count: float
    time_s: float


@dataclass(frozen=True)
class AlternativeContent:
    """A plan beside this one.

    Attributes:
        name: what it is.
        step_s: predicted; None where there is none.
        is_baseline: made by a method for comparison; else looked at by the search.
        is_chosen: whether it is this plan.
        reason: why there is none.
    """

    name: str
    step_s: float | None
    is_baseline: bool = False
    is_chosen: bool = False
    reason: str = ""


@dataclass(frozen=True)
class OperatorContent:
    """Operators of equal layers with one strategy.

    Attributes:
        stage: number of the stage.
        name: ``GPT/layer_{0..47}/up/dot_general``.
        op: kind.
        strategy: shardings of operands and results.
        collectives: what the strategy itself runs.
        count: how many they are.
        time_s: seconds per step of all of them, resharding of operands included.
        memory_bytes: per device, of their tensors.
    """

    stage: int
    name: str
    op: str
    strategy: str
    collectives: str
    count: int
    time_s: float
    memory_bytes: float


@dataclass(frozen=True)
class PageContent:
    """All of a page.

    Attributes:
        model: name of the step.
        method: as Python spells it; empty where it is not known.
        schedule: its name; ``"none"`` where there is nothing to order.
        num_micro_batches: of a step.
        recomputed: what the backward phase computes again; empty for nothing.
        step_s: predicted seconds of a step.
        bound_s: no other stages take less; None where that was not asked. It is of the search's
            own measure, which `gap` is of as well.
        gap: how far the best stages can be below those found, as a part.
        peak_bytes: of the fullest device.
        parts: the devices; several parts where they are unlike, numbered one after the other.
        between: links between parts; None where there is one.
        stages: in order.
        modules, tensors, communication, operators: of all stages.
        runs: of a step, as they are predicted.
        held: per mesh, over the step.
        alternatives: what the search looked at, and baselines.
        remarks: what the user should know.
        measured: runs of a step that was traced; empty where none was.
    """

    model: str
    method: str
    schedule: str
    num_micro_batches: int
    recomputed: str
    step_s: float
    bound_s: float | None
    gap: float | None
    peak_bytes: float
    parts: tuple[ClusterContent, ...]
    between: LinkContent | None
    stages: tuple[StageContent, ...]
    modules: tuple[ModuleContent, ...]
    tensors: tuple[TensorContent, ...]
    runs: tuple[RunContent, ...]
    held: tuple[tuple[HeldContent, ...], ...]
    communication: tuple[CommunicationContent, ...]
    alternatives: tuple[AlternativeContent, ...]
    operators: tuple[OperatorContent, ...]
    remarks: tuple[str, ...]
    measured: tuple[RunContent, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether every device has room."""
        return all(one.peak_bytes <= self.memory_bytes(one.mesh) for one in self.stages)

    @property
    def cluster_text(self) -> str:
        """``2 hosts of 8 a100-40gb + 4 hosts of 8 v100-16gb``."""
        return " + ".join(part.text for part in self.parts)

    def memory_bytes(self, mesh: int) -> float:
        """What a device of a mesh has."""
        device, ends = self.stages[self.stages_of(mesh)[0]].devices[0], 0
        for part in self.parts:
            ends += part.num_hosts * part.devices_per_host
            if device < ends:
                return part.memory_bytes
        raise ValueError(f"device {device} of mesh {mesh} is of no part, there are {ends}")

    @property
    def fullest(self) -> StageContent:
        """The stage whose devices have least of their memory left, as a part of it."""
        return max(self.stages, key=lambda one: one.peak_bytes / self.memory_bytes(one.mesh))

    @property
    def num_meshes(self) -> int:
        """Meshes that its stages run on."""
        return 1 + max(stage.mesh for stage in self.stages)

    def stages_of(self, mesh: int) -> list[int]:
        """Numbers of the stages of a mesh."""
        return [number for number, stage in enumerate(self.stages) if stage.mesh == mesh]

    def mesh_name(self, mesh: int) -> str:
        """``stage 3``, or ``stages 0, 4`` where a mesh has several."""
        return stages_text(self.stages_of(mesh))

    def dump(self) -> str:
        """As JSON."""
        return json.dumps({"version": CONTENT_VERSION, "page": encode(self)})

    @classmethod
    def parse(cls, text: str | bytes, where: str) -> PageContent:
        """Reads what `dump` has written.

        Args:
            text: JSON.
            where: what messages call it.

        Raises:
            ProgramError: it is of another version, or damaged.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise ProgramError(f"what {where} shows is damaged: {error}") from error
        version = data.get("version") if isinstance(data, dict) else None
        if version != CONTENT_VERSION:
            raise ProgramError(
                f"what {where} shows is of version {version!r}, this is version "
                f"{CONTENT_VERSION}: plan it again"
            )
        found: PageContent = decode(cls, data.get("page"), "page")
        return found
