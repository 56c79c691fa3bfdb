"""A planned stage: its mesh and the programs of its phases."""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from alpa_runtime import SpmdProgram, ValueSpec

from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.intra_op import Solution
from stablehlo_alpa.planning.schedules import Schedule
from stablehlo_alpa.view import Collective

PREPARE, FORWARD, BACKWARD = "prepare", "forward", "backward"
WEIGHT, APPLY = "backward_weight", "apply_"
WHOLE = "step"


class SlotKind(enum.StrEnum):
    """What an argument or a result of a phase is, as the compiler spells it."""

    INPUT = "input"  # of the step
    OUTPUT = "output"  # of the step
    BATCH = "batch"  # the part that a micro-batch has of an input
    MICRO_BATCH = "micro_batch"  # the number of the micro-batch
    TRANSFER = "transfer"  # made by one stage, needed by others
    LOCAL = "local"  # made by one phase, needed by later ones of the same stage
    ACCUMULATOR = "accumulator"  # joined over the micro-batches


@dataclass(frozen=True)
class Slot:
    """An argument or a result of a phase.

    Attributes:
        kind: what it is.
        number: which one; locals and accumulators count by stage.
    """

    kind: SlotKind
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    @classmethod
    @functools.lru_cache(maxsize=2**14)
    def parse(cls, text: str) -> Slot:
        """Reads ``"input 3"``."""
        kind, number = text.split()
        return cls(SlotKind(kind), int(number))


NUMBER = Slot(SlotKind.MICRO_BATCH, 0)
"""The number of the micro-batch, a scalar of ``uint32``."""


def as_held(value: ValueSpec) -> ValueSpec:
    """A value as a buffer holds it: without a name, and weak types are none."""
    is_held = not value.name and not value.is_weak
    return value if is_held else replace(value, name="", is_weak=False)


@dataclass(frozen=True)
class CostedProgram:
    """A program and what it costs.

    Attributes:
        program: the program.
        time_s: predicted seconds of one run.
        inside_bytes: per device, what it needs beside its inputs and outputs.
        compute_s: seconds of one run without communication, of the program as it was lowered; of a
            whole step ``time_s`` is what its strategies take.
        collectives: of one run.
    """

    program: SpmdProgram
    time_s: float = 0.0
    inside_bytes: float = 0.0
    compute_s: float = 0.0
    collectives: tuple[Collective, ...] = ()


@dataclass(frozen=True)
class PhaseProgram(CostedProgram):
    """One phase of a stage.

    Attributes:
        name: ``"prepare"``, ``"forward"``, ``"backward"``, ``"backward_weight"``, ``"apply_0"``
            ...; ``"step"`` where it is all of a step.
        inputs, outputs: one slot per input and output of the program.
        live: names and bytes per device of what it keeps where it needs the most.
    """

    name: str = WHOLE
    inputs: tuple[Slot, ...] = ()
    outputs: tuple[Slot, ...] = ()
    live: tuple[tuple[str, float], ...] = field(default=(), repr=False)

    @property
    def runs_once(self) -> bool:
        """Once per update of the step instead of once per micro-batch."""
        return self.name in (PREPARE, WHOLE) or self.is_update

    def num_runs(self, schedule: Schedule) -> int:
        """How often it runs in a step."""
        return schedule.num_updates if self.runs_once else schedule.num_micro_batches

    @property
    def is_update(self) -> bool:
        """Behind the last micro-batch."""
        return self.name.startswith(APPLY)


@dataclass(frozen=True)
class StagePlace:
    """Where a stage runs, and what.

    Attributes:
        devices: positions in the cluster.
        submesh: hosts, and devices of each.
        layers: numbers of the layers that it runs; empty where the step is not cut into layers.
        part: number of the part of an unlike cluster that its devices are of.
    """

    devices: tuple[int, ...]
    submesh: tuple[int, int]
    layers: tuple[int, ...] = ()
    part: int = 0


def program_name(stage: int, phase: str) -> str:
    """What a plan calls the program of a phase."""
    return f"stage_{stage}_{phase}"


@dataclass(frozen=True, eq=False)
class StageBody:
    """What of a stage runs.

    Attributes:
        mesh: its logical mesh.
        place: its devices and layers.
        phases: programs in the order in which they run.
    """

    mesh: LogicalMesh
    place: StagePlace
    phases: tuple[PhaseProgram, ...]

    @property
    def devices(self) -> tuple[int, ...]:
        """Positions of its devices in the cluster."""
        return self.place.devices

    @property
    def layers(self) -> tuple[int, ...]:
        """Numbers of the layers that it runs; empty where the step is not cut into layers."""
        return self.place.layers

    @property
    def submesh(self) -> tuple[int, int]:
        """Hosts, and devices of each."""
        return self.place.submesh

    def phase(self, name: str) -> PhaseProgram | None:
        """A phase by name."""
        return next((phase for phase in self.phases if phase.name == name), None)

    @property
    def micro_batch_s(self) -> float:
        """Predicted seconds of a micro-batch."""
        return sum(phase.time_s for phase in self.phases if not phase.runs_once)


@dataclass(frozen=True, eq=False)
class PlannedStage(StageBody):
    """A stage on its submesh.

    Attributes:
        priced, solution: the intra-operator plan of all phases together.
        texts: modules by step of compilation: traced or sliced, merged, planned, and the per-device
            ones: ``"local"``, or one per phase by its name.
        remarks: what the compiler wants known, and what was prescribed and cannot be.
        done_beside: by name of a product which collective is done beside it block by block.
    """

    priced: PricedGraph = field(repr=False)
    solution: Solution = field(repr=False)
    texts: Mapping[str, str] = field(repr=False)
    remarks: tuple[str, ...] = ()
    done_beside: Mapping[str, str] = field(default_factory=dict, repr=False)

    def text(self, step: str | None = None) -> str:
        """The module at a step of compilation; by default the last, of the first phase.

        Raises:
            ShardingError: there is no such step.
        """
        if step is None:
            return self.phases[0].program.text if self.phases else self.texts["planned"]
        if step not in self.texts:
            raise ShardingError(f"step {step!r} is not known, steps are {', '.join(self.texts)}")
        return self.texts[step]
