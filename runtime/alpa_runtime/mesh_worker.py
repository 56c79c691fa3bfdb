"""One mesh's part of a plan: its instructions, prepared once, and what performs them in a step."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import Mesh

from alpa_runtime.analysis import MemoryStats, ProgramReport
from alpa_runtime.mesh_program import MeshProgram, bind_program
from alpa_runtime.plan import Free, Instruction, Plan, Recv, Run, Send
from alpa_runtime.tracing import Tracer
from alpa_runtime.transport.interface import Mail, Transport

# Launches of a mesh that may be in flight. XLA's CPU client lets 32 be and can deadlock when more
# wait (measured: 24 pass, 40 abort).
IN_FLIGHT = 24


class MeshWorker:
    """Interprets the instructions of one mesh; what changes in a step belongs to `MeshStep`.

    Attributes:
        number: of the mesh.
        instructions: each with what performs it.
        shardings: per buffer where its value lies.
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
        self.number = number
        self.shardings = tuple(plan.values[value].sharding(mesh) for value in plan.buffers[number])
        self._programs: dict[int, MeshProgram] = {}
        for one in plan.instructions[number]:
            if isinstance(one, Run) and one.program not in self._programs:
                program = plan.programs[one.program]
                if not donates:
                    program = dataclasses.replace(program, donated=())
                self._programs[one.program] = bind_program(program, mesh)
        self.instructions = tuple(
            (one, self._performer(one, transport)) for one in plan.instructions[number]
        )

    def compile(self) -> None:
        """Compiles all programs now; the first step does so otherwise."""
        for program in self._programs.values():
            program.compile()

    def memory(self) -> dict[int, MemoryStats]:
        """What it says of the memory of each alone; texts of large programs take their time."""
        return {
            number: MemoryStats.of(program.compile()) for number, program in self._programs.items()
        }

    def report(self) -> dict[int, ProgramReport]:
        """What the backend says of each program, by number."""
        return {
            number: ProgramReport.of(program.compile())
            for number, program in self._programs.items()
        }

    def inline(self, buffers: Mapping[int, Any], wanted: Sequence[int]) -> tuple[jax.Array, ...]:
        """All programs as a part of the one that ``jax.jit`` is tracing; there is no other mesh.

        Args:
            buffers: those that are filled.
            wanted: buffers that are asked for.
        """
        own, before = dict(buffers), ()
        for instruction, perform in self.instructions:
            match instruction:
                case Run(_, inputs, outputs):
                    taken = [own[i] for i in inputs]
                    # One after the other: side by side they need more memory than was planned.
                    taken, _ = jax.lax.optimization_barrier((taken, before))
                    before = perform.inline(*taken)
                    own.update(zip(outputs, before, strict=True))
                case Free(freed):
                    for buffer in freed:
                        del own[buffer]
        return tuple(own[buffer] for buffer in wanted)

    def _performer(self, instruction: Instruction, transport: Transport) -> Any:
        match instruction:
            case Run(number):
                return self._programs[number]
            case Send():
                return transport.sender(self.number, instruction)
            case Recv():
                return transport.receiver(self.number, instruction)
        return None


class MeshStep:
    """One mesh's part of one step.

    Attributes:
        buffers: what is held now.
    """

    def __init__(
        self,
        worker: MeshWorker,
        mail: Mail,
        buffers: Mapping[int, Any],
        tracer: Tracer | None = None,
    ) -> None:
        """Starts a step.

        Args:
            worker: of the mesh.
            mail: of the step, by the worker's transport.
            buffers: those that are filled.
            tracer: notes what runs.
        """
        self.buffers = dict(buffers)
        self._worker, self._mail, self._tracer = worker, mail, tracer
        self._in_flight: deque[Any] = deque()

    def perform(self, position: int) -> None:
        """Performs an instruction; they have to come in order."""
        own = self.buffers
        instruction, perform = self._worker.instructions[position]
        match instruction:
            case Run(_, inputs, outputs, label):
                results = perform(*[own[i] for i in inputs])
                own.update(zip(outputs, results, strict=True))
                if results:
                    self._wait(results)
                if self._tracer:
                    self._tracer.note(self._worker.number, label, results)
            case Send(buffer):
                perform(self._mail, own[buffer])
            case Recv(buffer):
                own[buffer] = perform(self._mail)
            case Free(freed):
                for buffer in freed:
                    del own[buffer]

    def _wait(self, results: Sequence[Any]) -> None:
        """Lets only so many launches be in flight."""
        self._in_flight.append(results[-1])
        if len(self._in_flight) >= IN_FLIGHT:
            oldest = self._in_flight.popleft()
            if not oldest.is_deleted():
                oldest.block_until_ready()
