"""Proves a plan before it runs."""

from __future__ import annotations

from collections.abc import Sequence

from alpa_runtime.errors import ProgramError
from alpa_runtime.order import issue_order
from alpa_runtime.plan import Free, Instruction, Plan, Recv, Run, Send
from alpa_runtime.program import SpmdProgram, ValueSpec


def check(plan: Plan) -> None:
    """Proves that a plan can run.

    Every number names something; every buffer is filled before it is used, holds one value at a
    time, and is not used after it was freed or donated; programs get buffers of the values that
    they take; every receive has exactly one send and the other way round, between the meshes that
    both name; there is an order in which no mesh waits for ever; outputs are there at the end.

    Raises:
        ProgramError: naming the mesh, the position and the rule.
    """
    count = len(plan.meshes)
    if not len(plan.instructions) == len(plan.buffers) == count:
        raise ProgramError(
            f"{plan.name}: {count} meshes, {len(plan.instructions)} instruction lists and "
            f"{len(plan.buffers)} lists of buffers"
        )
    _check_transfers(plan)
    for mesh, instructions in enumerate(plan.instructions):
        _MeshCheck(plan, mesh).run(instructions)
    issue_order(plan.instructions)


def _check_transfers(plan: Plan) -> None:
    sends: dict[int, tuple[int, Send]] = {}
    recvs: dict[int, tuple[int, Recv]] = {}
    for mesh, instructions in enumerate(plan.instructions):
        for instruction in instructions:
            if isinstance(instruction, Send):
                if instruction.transfer in sends:
                    raise ProgramError(
                        f"{plan.name}: transfer {instruction.transfer} is sent twice"
                    )
                sends[instruction.transfer] = (mesh, instruction)
            elif isinstance(instruction, Recv):
                if instruction.transfer in recvs:
                    raise ProgramError(
                        f"{plan.name}: transfer {instruction.transfer} is received twice"
                    )
                recvs[instruction.transfer] = (mesh, instruction)
    if sends.keys() != recvs.keys():
        missing = sorted(sends.keys() ^ recvs.keys())
        raise ProgramError(f"{plan.name}: transfers {missing} lack their send or their receive")
    proved: set[tuple[int, ...]] = set()
    for number, (source, send) in sends.items():
        target, recv = recvs[number]
        if (source, target) != (recv.source, send.target):
            raise ProgramError(
                f"{plan.name}: transfer {number} goes from mesh {source} to {send.target}, and is "
                f"received by mesh {target} from {recv.source}"
            )
        if source == target:
            raise ProgramError(f"{plan.name}: transfer {number} goes from mesh {source} to itself")
        if send.resharding != recv.resharding:
            raise ProgramError(
                f"{plan.name}: transfer {number} is sent as resharding {send.resharding} and "
                f"received as {recv.resharding}"
            )
        _check_resharding(plan, number, source, send, target, recv, proved)


def _check_resharding(
    plan: Plan,
    number: int,
    source: int,
    send: Send,
    target: int,
    recv: Recv,
    proved: set[tuple[int, ...]],
) -> None:
    """Proves that the pieces of a transfer fit what is sent and what is filled; each case once."""
    where = f"{plan.name}: transfer {number}"
    for mesh, buffer in ((source, send.buffer), (target, recv.buffer)):
        if not 0 <= buffer < len(plan.buffers[mesh]):
            raise ProgramError(f"{where} names buffer {buffer} of mesh {mesh}, there is none")
    if not 0 <= send.resharding < len(plan.reshardings):
        raise ProgramError(f"{where} names resharding {send.resharding}, there is none")
    case = (
        send.resharding,
        source,
        target,
        plan.buffers[source][send.buffer],
        plan.buffers[target][recv.buffer],
    )
    if case in proved:
        return
    proved.add(case)
    made, needed = plan.value(source, send.buffer), plan.value(target, recv.buffer)
    if made.dtype != needed.dtype or made.partial or needed.partial:
        raise ProgramError(
            f"{where} sends {made.dtype}{list(made.shape)} and fills "
            f"{needed.dtype}{list(needed.shape)}; partial values cannot be sent"
        )
    if made.key_impl or needed.key_impl:
        raise ProgramError(f"{where} sends a PRNG key, which is fed to every mesh instead")
    try:
        plan.reshardings[send.resharding].check(
            made, plan.sizes(source), needed, plan.sizes(target)
        )
    except ProgramError as error:
        raise ProgramError(f"{where}: {error}") from error


class _MeshCheck:
    """Follows the buffers of one mesh."""

    def __init__(self, plan: Plan, mesh: int) -> None:
        self._plan, self._mesh = plan, mesh
        self._live: set[int] = set()
        # Of each buffer the number of what it holds, and runs whose buffers hold what they must.
        self._held = plan.buffers[mesh]
        self._proved: set[tuple[int, str, tuple[int, ...]]] = set()
        self._where = f"{plan.name}: mesh {mesh}"

    def run(self, instructions: Sequence[Instruction]) -> None:
        plan, mesh = self._plan, self._mesh
        for index, value in enumerate(plan.inputs):
            for placement in value.placements:
                # Whole, by updates of the step, or by micro-batches.
                if not placement.buffers or plan.num_micro_batches % len(placement.buffers):
                    raise ProgramError(
                        f"{plan.name}: input {index} fills {len(placement.buffers)} buffers of "
                        f"mesh {placement.mesh}, needs a divisor of the "
                        f"{plan.num_micro_batches} micro-batches"
                    )
                if placement.mesh == mesh:
                    for buffer in placement.buffers:
                        self._fill(buffer, f"input {index}")
        for position, instruction in enumerate(instructions):
            what = f"instruction {position} ({type(instruction).__name__.lower()})"
            match instruction:
                case Run():
                    self._run(instruction, what)
                case Send(buffer):
                    self._use(buffer, what)
                case Recv(buffer):
                    self._fill(buffer, what)
                case Free(buffers):
                    for buffer in buffers:
                        self._use(buffer, what)
                        self._live.discard(buffer)
        for index, output in enumerate(plan.outputs):
            if output.mesh == mesh:
                self._use(output.buffer, f"output {index}")

    def _run(self, run: Run, what: str) -> None:
        plan = self._plan
        if not 0 <= run.program < len(plan.programs):
            raise ProgramError(f"{self._where}: {what} runs program {run.program}, there is none")
        program = plan.programs[run.program]
        if program.mesh != plan.meshes[self._mesh].axes:
            raise ProgramError(
                f"{self._where}: {what} runs {program.name}, which is for a mesh "
                f"{program.mesh_sizes}, not {dict(plan.meshes[self._mesh].axes)}"
            )
        for kind, buffers, values in (
            ("input", run.inputs, program.inputs),
            ("output", run.outputs, program.outputs),
        ):
            if len(buffers) != len(values):
                raise ProgramError(
                    f"{self._where}: {what} has {len(buffers)} {kind}s, {program.name} has "
                    f"{len(values)}"
                )
            if kind == "input" and not self._live.issuperset(buffers):
                for buffer in buffers:
                    self._use(buffer, what)
            held = tuple(self._held[buffer] for buffer in buffers if self._has(buffer))
            if (run.program, kind, held) not in self._proved:
                self._check_types(program, kind, buffers, what)
                self._proved.add((run.program, kind, held))
        donated = [run.inputs[place] for place in program.donated]
        is_repeated = len(set(run.inputs)) < len(run.inputs)
        if len(set(donated)) != len(donated) or (
            is_repeated and any(run.inputs.count(buffer) > 1 for buffer in donated)
        ):
            raise ProgramError(f"{self._where}: {what} donates a buffer that it uses twice")
        self._live.difference_update(donated)
        for buffer in run.outputs:
            self._fill(buffer, what)

    def _check_types(
        self, program: SpmdProgram, kind: str, buffers: Sequence[int], what: str
    ) -> None:
        """Whether buffers hold what a program takes or makes."""
        values = program.inputs if kind == "input" else program.outputs
        for place, (buffer, value) in enumerate(zip(buffers, values, strict=True)):
            held = self._value(buffer, what)
            if (held.shape, held.dtype, held.axes, held.partial) != (
                value.shape,
                value.dtype,
                value.axes,
                value.partial,
            ):
                raise ProgramError(
                    f"{self._where}: {what}: {kind} {place} of {program.name} is "
                    f"{value.dtype}{list(value.shape)} as {value.spec}, buffer {buffer} holds "
                    f"{held.dtype}{list(held.shape)} as {held.spec}"
                )

    def _has(self, buffer: int) -> bool:
        return 0 <= buffer < len(self._held)

    def _value(self, buffer: int, what: str) -> ValueSpec:
        if not 0 <= buffer < len(self._plan.buffers[self._mesh]):
            raise ProgramError(f"{self._where}: {what} names buffer {buffer}, there is none")
        return self._plan.value(self._mesh, buffer)

    def _use(self, buffer: int, what: str) -> None:
        self._value(buffer, what)
        if buffer not in self._live:
            raise ProgramError(f"{self._where}: {what} uses buffer {buffer}, which holds nothing")

    def _fill(self, buffer: int, what: str) -> None:
        self._value(buffer, what)
        if buffer in self._live:
            raise ProgramError(f"{self._where}: {what} fills buffer {buffer}, which is in use")
        self._live.add(buffer)
