"""A plan: the programs of all meshes and the instructions that run them, as plain data."""

from __future__ import annotations

import dataclasses
import math
from typing import TypeAlias

from alpa_runtime.errors import ProgramError
from alpa_runtime.program import SpmdProgram, ValueSpec
from alpa_runtime.resharding import Resharding


@dataclasses.dataclass(frozen=True)
class PlanMesh:
    """A submesh of the cluster.

    Attributes:
        axes: names and sizes; the first axis is the outermost in the order of devices.
        devices: positions of its devices in the list of devices that the plan is run on.
    """

    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...]

    def __post_init__(self) -> None:
        size = math.prod(size for _, size in self.axes)
        if size != len(self.devices):
            raise ProgramError(f"a mesh {dict(self.axes)} has {size} devices, not {self.devices}")


@dataclasses.dataclass(frozen=True)
class Run:
    """Runs a program on buffers of the mesh.

    Attributes:
        program: its number in the plan. Inputs that it donates hold nothing afterwards.
        inputs, outputs: numbers of buffers.
        label: what runs, for traces: ``"stage 0 forward 3"``.
    """

    program: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    label: str


@dataclasses.dataclass(frozen=True)
class Send:
    """Hands a buffer to another mesh; the buffer stays.

    Attributes:
        buffer: number of the buffer.
        target: number of the mesh.
        transfer: number of the transfer, the same as that of the receive.
        resharding: number of the resharding that says which device sends what.
    """

    buffer: int
    target: int
    transfer: int
    resharding: int


@dataclasses.dataclass(frozen=True)
class Recv:
    """Fills a buffer with what another mesh has sent.

    Attributes:
        buffer: number of the buffer; its value says the sharding.
        source: number of the mesh.
        transfer: number of the transfer.
        resharding: number of the resharding, the same as that of the send.
    """

    buffer: int
    source: int
    transfer: int
    resharding: int


@dataclasses.dataclass(frozen=True)
class Free:
    """Forgets buffers.

    Attributes:
        buffers: numbers of buffers.
    """

    buffers: tuple[int, ...]


Instruction: TypeAlias = Run | Send | Recv | Free


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where an input is needed.

    Attributes:
        mesh: number of the mesh.
        buffers: one buffer that holds it whole, or one per micro-batch, or per update where a step
            makes several, which hold equal parts along dimension 0.
    """

    mesh: int
    buffers: tuple[int, ...]

    @property
    def is_cut(self) -> bool:
        """Whether every buffer holds a part."""
        return len(self.buffers) > 1


@dataclasses.dataclass(frozen=True)
class PlanInput:
    """A flat input of a step.

    Attributes:
        value: what the caller passes, the whole of it. Its axes mean nothing, unless it is partial
            over some.
        is_donated: whether the caller gives the buffers away.
        placements: the meshes that it is fed to, the one that keeps it first. Other meshes that
            need it are sent it.
    """

    value: ValueSpec
    is_donated: bool
    placements: tuple[Placement, ...]

    @property
    def meshes(self) -> tuple[int, ...]:
        """Numbers of the meshes that it is fed to."""
        return tuple(sorted({placement.mesh for placement in self.placements}))


@dataclasses.dataclass(frozen=True)
class PlanOutput:
    """A flat output of a step: a buffer of a mesh.

    Attributes:
        mesh, buffer: numbers of both.
        name: what messages call it.
    """

    mesh: int
    buffer: int
    name: str = ""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything needed to run a step on several meshes.

    Attributes:
        name: of the function.
        num_micro_batches: how many micro-batches a batch is cut into.
        schedule: name of the schedule, for people.
        meshes: the submeshes.
        programs: what they run.
        reshardings: the different ways in which values go from mesh to mesh.
        values: the different values that buffers hold.
        buffers: per mesh and buffer the number of its value.
        instructions: per mesh what it does in a step, in order.
        inputs, outputs: of the step, flat.
    """

    name: str
    num_micro_batches: int
    schedule: str
    meshes: tuple[PlanMesh, ...]
    programs: tuple[SpmdProgram, ...]
    reshardings: tuple[Resharding, ...]
    values: tuple[ValueSpec, ...]
    buffers: tuple[tuple[int, ...], ...]
    instructions: tuple[tuple[Instruction, ...], ...]
    inputs: tuple[PlanInput, ...]
    outputs: tuple[PlanOutput, ...]

    @classmethod
    def of_program(cls, program: SpmdProgram) -> Plan:
        """The plan that runs one program on one mesh, whose devices it takes in order.

        Inputs and outputs of the step are those of the program.
        """
        count, total = len(program.inputs), len(program.inputs) + len(program.outputs)
        taken, made = tuple(range(count)), tuple(range(count, total))
        return cls(
            name=program.name,
            num_micro_batches=1,
            schedule="none",
            meshes=(PlanMesh(program.mesh, tuple(range(program.num_devices))),),
            programs=(program,),
            reshardings=(),
            values=(*program.inputs, *program.outputs),
            buffers=(tuple(range(total)),),
            instructions=((Run(0, taken, made, program.name),),),
            inputs=tuple(
                PlanInput(value, index in program.donated, (Placement(0, (index,)),))
                for index, value in enumerate(program.inputs)
            ),
            outputs=tuple(
                PlanOutput(0, buffer, value.name)
                for buffer, value in zip(made, program.outputs, strict=True)
            ),
        )

    @property
    def sole_program(self) -> SpmdProgram | None:
        """The program that is all that a step does, of its inputs and outputs in their order."""
        if len(self.instructions) != 1 or len(self.instructions[0]) != 1:
            return None
        (only,) = self.instructions[0]
        if not isinstance(only, Run):
            return None
        taken = tuple((Placement(0, (buffer,)),) for buffer in only.inputs)
        made = tuple((0, buffer) for buffer in only.outputs)
        is_all = tuple(value.placements for value in self.inputs) == taken
        is_all = is_all and tuple((out.mesh, out.buffer) for out in self.outputs) == made
        return self.programs[only.program] if is_all and self.num_micro_batches == 1 else None

    @property
    def num_devices(self) -> int:
        """Devices that the plan is for."""
        return 1 + max(device for mesh in self.meshes for device in mesh.devices)

    def sizes(self, mesh: int) -> dict[str, int]:
        """Axis names and sizes of a mesh."""
        return dict(self.meshes[mesh].axes)

    def value(self, mesh: int, buffer: int) -> ValueSpec:
        """What a buffer holds; whether its type is weak, only `origin` knows."""
        return self.values[self.buffers[mesh][buffer]]

    def origin(self, mesh: int, buffer: int) -> ValueSpec:
        """What a buffer holds, as the program has it that makes it, or the caller that feeds it."""
        for instruction in self.instructions[mesh]:
            if isinstance(instruction, Run) and buffer in instruction.outputs:
                outputs = self.programs[instruction.program].outputs
                return outputs[instruction.outputs.index(buffer)]
        own = self.value(mesh, buffer)
        for fed in self.inputs:
            if Placement(mesh, (buffer,)) in fed.placements:
                return dataclasses.replace(own, is_weak=fed.value.is_weak)
        return own
