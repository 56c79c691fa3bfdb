"""How far a process is, for those who survive it."""

from __future__ import annotations

import mmap
import os
import struct
import tempfile

from alpa_runtime.plan import Free, Plan, Recv, Run, Send


class Progress:
    """How far a process is, in a file that outlives it.

    Attributes:
        path: of the file.
    """

    _LAYOUT = struct.Struct("<qqq")

    def __init__(self, path: str, memory: mmap.mmap) -> None:
        """See `create`."""
        self.path, self._memory = path, memory

    @classmethod
    def create(cls) -> Progress:
        """Makes the file."""
        handle, path = tempfile.mkstemp(prefix="alpa_progress_")
        try:
            os.write(handle, cls._LAYOUT.pack(-1, -1, -1))
            return cls(path, mmap.mmap(handle, cls._LAYOUT.size))
        finally:
            os.close(handle)

    def write(self, plan: int, step: int, position: int) -> None:
        """Notes an instruction of a step of a plan; -1 behind the last."""
        self._LAYOUT.pack_into(self._memory, 0, plan, step, position)

    @classmethod
    def read(cls, path: str) -> tuple[int, int, int]:
        """Plan, step and instruction that a process has noted last; -1 for none."""
        with open(path, "rb") as file:
            plan, step, position = cls._LAYOUT.unpack(file.read(cls._LAYOUT.size))
        return plan, step, position


def describe_instruction(plan: Plan, mesh: int, position: int) -> str:
    """An instruction, for people."""
    if position < 0:
        return "between two steps"
    match plan.instructions[mesh][position]:
        case Run(_, _, _, label):
            return label
        case Send(_, target, transfer, _):
            return f"send {transfer} to mesh {target}"
        case Recv(_, source, transfer, _):
            return f"receive {transfer} from mesh {source}"
        case Free():
            return "free"
