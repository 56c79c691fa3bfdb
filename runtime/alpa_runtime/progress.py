"""How far a process is, for those who survive it."""

from __future__ import annotations

import mmap
import os
import secrets
import struct

from alpa_runtime.plan import Free, Plan, Recv, Run, Send


class Progress:
    """How far a process is, in memory that has no name in any file system.

    Whoever finds it keeps it beyond the end of the process that writes. It ends with the last that
    has it, whatever ends them, so that there is nothing to be removed.

    Attributes:
        address: where other processes of the host find it, and what the memory is called there.
    """

    _LAYOUT = struct.Struct("<qqq")

    def __init__(self, address: tuple[str, str], memory: mmap.mmap) -> None:
        """See `create` and `find`."""
        self.address, self._memory = address, memory

    @classmethod
    def create(cls) -> Progress:
        """Makes the memory, which says that nothing is done yet."""
        name = f"alpa_progress_{secrets.token_hex(8)}"
        # Stays open: others find the memory by it.
        handle = os.memfd_create(name)
        os.write(handle, cls._LAYOUT.pack(-1, -1, -1))
        memory = mmap.mmap(handle, cls._LAYOUT.size)
        return cls((f"/proc/{os.getpid()}/fd/{handle}", name), memory)

    @classmethod
    def find(cls, address: tuple[str, str]) -> Progress | None:
        """What a living process has made; None when that is on another host."""
        path, name = address
        try:
            # Numbers of processes are those of a host. What else is there is not opened.
            if os.readlink(path) != f"/memfd:{name} (deleted)":
                return None
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            return cls(address, mmap.mmap(handle, cls._LAYOUT.size, access=mmap.ACCESS_READ))
        finally:
            os.close(handle)

    def write(self, plan: int, step: int, position: int) -> None:
        """Notes an instruction of a step of a plan; -1 behind the last."""
        self._LAYOUT.pack_into(self._memory, 0, plan, step, position)

    def read(self) -> tuple[int, int, int]:
        """Plan, step and instruction that were noted last; -1 for none."""
        plan, step, position = self._LAYOUT.unpack_from(self._memory)
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
