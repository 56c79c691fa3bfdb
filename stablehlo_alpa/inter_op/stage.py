"""A planned stage: its submesh and the programs of its phases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from alpa_runtime import SpmdProgram, ValueSpec

from stablehlo_alpa.cluster import LogicalMesh
from stablehlo_alpa.cost import PricedGraph
from stablehlo_alpa.intra_op import Solution

PREPARE, FORWARD, BACKWARD = "prepare", "forward", "backward"
WEIGHT, APPLY = "backward_weight", "apply_"


@dataclass(frozen=True)
class Slot:
    """What an argument or a result of a phase is.

    Attributes:
        kind: ``"input"`` and ``"output"`` of the step, ``"batch"`` (the part that a micro-batch has
            of an input), ``"micro_batch"`` (its number), ``"transfer"`` (made by one stage, needed
            by others), ``"local"`` (made by one phase, needed by later ones of the same stage) or
            ``"accumulator"`` (what is joined over the micro-batches).
        number: which one; locals and accumulators count by stage.
    """

    kind: str
    number: int

    def __str__(self) -> str:
        return f"{self.kind} {self.number}"

    @classmethod
    def parse(cls, text: str) -> Slot:
        """Reads ``"input 3"``."""
        kind, number = text.split()
        return cls(kind, int(number))


NUMBER = Slot("micro_batch", 0)
"""The number of the micro-batch, a scalar of ``uint32``."""


def as_held(value: ValueSpec) -> ValueSpec:
    """A value as a buffer holds it: without a name, and weak types are none."""
    return replace(value, name="", is_weak=False)


@dataclass(frozen=True)
class PhaseProgram:
    """One phase of a stage.

    Attributes:
        name: ``"prepare"``, ``"forward"``, ``"backward"``, ``"backward_weight"``, ``"apply_0"`` ...
        program: what runs; inputs and outputs as in the slots.
        inputs, outputs: one slot each.
        time_s: predicted seconds of one run.
        inside_bytes: per device, what it needs beside its inputs and outputs.
    """

    name: str
    program: SpmdProgram
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    time_s: float = 0.0
    inside_bytes: float = 0.0

    @property
    def runs_once(self) -> bool:
        """Once per step instead of once per micro-batch."""
        return self.name == PREPARE or self.is_update

    @property
    def is_update(self) -> bool:
        """Behind the last micro-batch."""
        return self.name.startswith(APPLY)


@dataclass(frozen=True, eq=False)
class PlannedStage:
    """A stage on its submesh.

    Attributes:
        mesh: its logical mesh.
        devices: positions of its devices in the cluster.
        phases: programs in the order in which they run.
        priced, solution: the intra-operator plan of all phases together.
        texts: modules by stage of compilation: sliced, merged, planned.
    """

    mesh: LogicalMesh
    devices: tuple[int, ...]
    phases: tuple[PhaseProgram, ...]
    priced: PricedGraph = field(repr=False)
    solution: Solution = field(repr=False)
    texts: Mapping[str, str] = field(repr=False)

    def phase(self, name: str) -> PhaseProgram | None:
        """A phase by name."""
        return next((phase for phase in self.phases if phase.name == name), None)
