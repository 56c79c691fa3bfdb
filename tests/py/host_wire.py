"""A stand-in for NCCL in the memory of the host, which is as strict as NCCL is.

Both sides have to start at once, nothing is matched but by order, and sizes have to agree.
"""

from __future__ import annotations

import ctypes
import secrets
import socket
import struct
import threading
from collections.abc import Sequence
from typing import Any

import jax
from alpa_runtime.transport import Move, TransportError

_FRAME = struct.Struct("<iiQ")
IDENTITY_SIZE = 128


class HostLibrary:
    """Wires over sockets of the host, whose names are in no file system."""

    def __init__(self) -> None:
        self._listening: dict[bytes, socket.socket] = {}

    def new_identity(self) -> bytes:
        """See `WireLibrary`."""
        name = f"\0wire_{secrets.token_hex(16)}".encode()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(name)
        listener.listen(1)
        identity = name.ljust(IDENTITY_SIZE, b"\0")
        self._listening[identity] = listener
        return identity

    def open(
        self, identity: bytes, num_ranks: int, first_rank: int, devices: Sequence[jax.Device]
    ) -> HostWire:
        """See `WireLibrary`."""
        return HostWire(identity, self._listening.get(identity), num_ranks, first_rank)


class HostWire:
    """A socket, and a thread for whatever is under way."""

    def __init__(
        self, identity: bytes, listener: socket.socket | None, num_ranks: int, first_rank: int
    ) -> None:
        self._num_ranks, self._first_rank = num_ranks, first_rank
        self._socket: socket.socket | None = None
        self._listener = listener
        self._error = ""
        self._working = self._run(lambda: self._meet(identity))

    def is_open(self) -> bool:
        """See `Wire`."""
        return self._has_ended()

    def start(self, sends: Sequence[Move], receives: Sequence[Move]) -> None:
        """See `Wire`."""
        assert not self._working.is_alive()
        for move in [*sends, *receives]:
            assert move.rank in range(self._num_ranks)
            assert move.array.nbytes > 0
            assert not move.array.is_deleted()
        pointers = {move.array.unsafe_buffer_pointer() for move in receives}
        assert len(pointers) == len(receives)
        self._working = self._run(lambda: self._perform(sends, receives))

    def is_done(self) -> bool:
        """See `Wire`."""
        return self._has_ended()

    def _has_ended(self) -> bool:
        if self._working.is_alive():
            return False
        if self._error:
            raise TransportError(self._error)
        return True

    def close(self) -> None:
        """See `Wire`."""
        for one in (self._socket, self._listener):
            if one is not None:
                one.close()

    def _run(self, work: Any) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except Exception as error:
                self._error = f"{type(error).__name__}: {error}"

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def _meet(self, identity: bytes) -> None:
        if self._listener is not None:
            self._socket, _ = self._listener.accept()
        else:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(identity.rstrip(b"\0"))

    def _perform(self, sends: Sequence[Move], receives: Sequence[Move]) -> None:
        assert self._socket is not None
        for move in sends:
            data = ctypes.string_at(move.array.unsafe_buffer_pointer(), move.array.nbytes)
            own = self._first_rank + move.device
            self._socket.sendall(_FRAME.pack(own, move.rank, len(data)) + data)
        waiting: dict[tuple[int, int], list[Move]] = {}
        for move in receives:
            waiting.setdefault((move.rank, self._first_rank + move.device), []).append(move)
        for _ in receives:
            source, target, size = _FRAME.unpack(self._read(_FRAME.size))
            assert waiting.get((source, target)), f"{source} to {target}: {sorted(waiting)}"
            move = waiting[source, target].pop(0)
            assert move.array.nbytes == size
            ctypes.memmove(move.array.unsafe_buffer_pointer(), self._read(size), size)

    def _read(self, size: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < size:
            got = self._socket.recv(size - len(data))
            if not got:
                raise OSError("the other side is gone")
            data += got
        return bytes(data)
