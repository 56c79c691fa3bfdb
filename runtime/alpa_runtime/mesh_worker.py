"""One mesh's part of a plan: its buffers, and what performs its instructions."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding

from alpa_runtime.executable import Executable
from alpa_runtime.inputs import fetched
from alpa_runtime.plan import Free, Instruction, Plan, Recv, Run, Send
from alpa_runtime.tracing import Tracer
from alpa_runtime.transport.interface import Transport

# Launches of a mesh that may be in flight. XLA's CPU client lets 32 be and can deadlock when more
# wait (measured: 24 pass, 40 abort).
IN_FLIGHT = 24


class MeshWorker:
    """Interprets the instructions of one mesh.

    Attributes:
        shardings: per buffer where its value lies.
        buffers: what is held now.
        position: of the instruction that is performed, or was performed last.
    """

    def __init__(
        self,
        plan: Plan,
        number: int,
        mesh: Mesh,
        transport: Transport,
        *,
        donates: bool = True,
    ) -> None:
        """Prepares every instruction.

        Args:
            plan: what is run.
            number: of the mesh.
            mesh: its devices.
            transport: moves values to and from other meshes.
            donates: whether programs may overwrite what they take; a trace needs it kept.
        """
        self._plan, self._number, self._mesh = plan, number, mesh
        self.shardings = tuple(
            NamedSharding(mesh, plan.values[value].logical_spec) for value in plan.buffers[number]
        )
        self.buffers: dict[int, Any] = {}
        self.position = 0
        self._donates = donates
        self._executables: dict[int, Executable] = {}
        self._in_flight: deque[Any] = deque()
        self._instructions = [
            (instruction, self._prepare(instruction, transport))
            for instruction in plan.instructions[number]
        ]

    def compile(self) -> None:
        """Compiles all programs now; the first step does so otherwise."""
        for executable in self._executables.values():
            executable.compile()

    def begin(self, buffers: Mapping[int, Any]) -> None:
        """Starts a step with these buffers filled."""
        self.buffers = dict(buffers)
        # What the step before has left may be donated now, and could not be waited for.
        self._in_flight.clear()

    def perform(self, position: int, tracer: Tracer | None = None) -> None:
        """Performs an instruction; they have to come in order."""
        self.position = position
        own = self.buffers
        instruction, perform = self._instructions[position]
        match instruction:
            case Run(_, inputs, outputs, label):
                results = perform(*[own[i] for i in inputs])
                own.update(zip(outputs, results, strict=True))
                if results:
                    self._wait(results)
                if tracer:
                    tracer.note(self._number, label, results)
            case Send(buffer):
                perform(own[buffer])
            case Recv(buffer):
                own[buffer] = perform()
            case Free(freed):
                for buffer in freed:
                    del own[buffer]

    def finish(self) -> dict[int, Any]:
        """Ends a step.

        Returns:
            the buffers that are still held.
        """
        held, self.buffers = self.buffers, {}
        return held

    def _prepare(self, instruction: Instruction, transport: Transport) -> Any:
        match instruction:
            case Run(number):
                if number not in self._executables:
                    program = self._plan.programs[number]
                    if not self._donates:
                        program = dataclasses.replace(program, donated=())
                    self._executables[number] = Executable(program, self._mesh)
                return self._executables[number]
            case Send():
                return transport.sender(self._number, instruction)
            case Recv():
                return transport.receiver(self._number, instruction)
        return None

    def _wait(self, results: Sequence[Any]) -> None:
        """Lets only so many launches be in flight."""
        self._in_flight.append(results[-1])
        if len(self._in_flight) >= IN_FLIGHT:
            oldest = self._in_flight.popleft()
            if not oldest.is_deleted():
                oldest.block_until_ready()


def put(array: Any, sharding: NamedSharding) -> jax.Array:
    """An array on a mesh, itself if it is there already."""
    if isinstance(array, jax.Array) and array.sharding == sharding:
        return array
    return jax.device_put(fetched(array), sharding)
