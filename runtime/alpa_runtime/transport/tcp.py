"""A link on plain TCP: the sender pushes from a thread, the receiver reads into aligned buffers.

Messages, integers little-endian: first ``hello`` (magic, secret, place of the sender), then per
piece a header (magic, number, index, bytes) and its bytes. Whatever else comes closes the
connection it came on.
"""

from __future__ import annotations

import contextlib
import hmac
import queue
import socket
import struct
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from alpa_runtime.transport.between_processes import Place, Wanted
from alpa_runtime.transport.interface import TransportError

_MAGIC = 0x41504C41
_HELLO = struct.Struct("<I32sii")
_HEADER = struct.Struct("<IQIQ")
# Largest piece that is believed; more is a damaged header. Bytes.
_LARGEST = 1 << 40
# jax takes a buffer of the host over without a copy when it is aligned so. Bytes.
_ALIGNMENT = 64
_CONNECT_S = 30.0

Bytes = npt.NDArray[np.uint8]


class TcpLink:
    """Connections to every peer, each with a thread.

    Attributes:
        address: where other processes find this one.
    """

    def __init__(self, bind: str) -> None:
        """Listens at the address of a network interface, on a free port."""
        self._listener = socket.create_server((bind, 0))
        host, port = self._listener.getsockname()[:2]
        self.address = f"{host}:{port}"
        self._place: Place = (-1, -1)
        self._secret = b""
        self._is_open = True
        self._addresses: dict[Place, str] = {}
        self._outgoing: dict[Place, queue.SimpleQueue[Any]] = {}
        self._sockets: list[socket.socket] = []
        self._arrived: dict[Place, dict[int, dict[int, Bytes]]] = defaultdict(dict)
        self._lost: dict[Place, str] = {}
        self._changed = threading.Condition()

    def connect(self, addresses: Mapping[Place, str], secret: bytes, place: Place) -> None:
        """See `Link`; who does not know the secret (32 bytes) is turned away."""
        self._addresses, self._secret, self._place = dict(addresses), secret, place
        threading.Thread(target=self._accept, daemon=True).start()

    def offer(self, number: int, peer: Place, pieces: Sequence[jax.Array]) -> None:
        """See `Link`."""
        if peer not in self._outgoing:
            self._outgoing[peer] = queue.SimpleQueue()
            threading.Thread(target=self._push, args=(peer,), daemon=True).start()
        self._check(peer)
        self._outgoing[peer].put((number, pieces))

    def take(self, number: int, peer: Place, wanted: Sequence[Wanted]) -> Sequence[jax.Array]:
        """See `Link`; returns when all pieces are there.

        Raises:
            TransportError: the peer is gone, or sent pieces of another size.
        """
        with self._changed:
            while len(self._arrived[peer].get(number, ())) < len(wanted):
                self._check(peer)
                self._changed.wait()
            pieces = self._arrived[peer].pop(number)
        taken = []
        for index, one in enumerate(wanted):
            data = pieces.get(index)
            size = int(np.prod(one.shape, dtype=np.int64)) * one.dtype.itemsize
            if data is None or data.nbytes != size:
                found = "nothing" if data is None else f"{data.nbytes} bytes"
                raise TransportError(
                    f"piece {index} of transfer {number} from mesh {peer[0]} host {peer[1]} has "
                    f"{size} bytes, {found} came"
                )
            taken.append(jax.device_put(data.view(one.dtype).reshape(one.shape), one.device))
        return taken

    def close(self) -> None:
        """See `Link`."""
        self._is_open = False
        for connection in (self._listener, *self._sockets):
            # Threads that wait for it do not notice that it is closed, but that it ends.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for waiting in self._outgoing.values():
            waiting.put(None)
        with self._changed:
            self._changed.notify_all()

    # Threads

    def _accept(self) -> None:
        while self._is_open:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(connection,), daemon=True).start()

    def _read(self, connection: socket.socket) -> None:
        """Takes the messages of one peer."""
        with connection:
            connection.settimeout(_CONNECT_S)
            peer = self._hello(connection)
            if peer is None:
                return
            connection.settimeout(None)
            self._sockets.append(connection)
            reason = "closed the connection"
            try:
                while (header := _receive(connection, _HEADER.size)) is not None:
                    magic, number, index, size = _HEADER.unpack(header.tobytes())
                    if magic != _MAGIC or size > _LARGEST:
                        reason = "sent something that is no message"
                        break
                    data = _receive(connection, size)
                    if data is None:
                        raise EOFError
                    with self._changed:
                        self._arrived[peer].setdefault(number, {})[index] = data
                        self._changed.notify_all()
            except EOFError:
                reason = "broke off within a message"
            except (OSError, MemoryError) as error:
                # A damaged header may ask for more memory than there is.
                reason = f"was lost: {error}"
            self._lose(peer, reason)

    def _hello(self, connection: socket.socket) -> Place | None:
        """Who it is; None for whoever does not know the secret."""
        try:
            hello = _receive(connection, _HELLO.size)
        except (OSError, EOFError):
            return None
        if hello is None:
            return None
        magic, secret, mesh, host = _HELLO.unpack(hello.tobytes())
        knows = hmac.compare_digest(secret, self._secret)
        return (mesh, host) if magic == _MAGIC and knows else None

    def _push(self, peer: Place) -> None:
        """Sends what is offered to one peer, as soon as it is computed."""
        try:
            host, port = self._addresses[peer].rsplit(":", 1)
            with socket.create_connection((host, int(port)), _CONNECT_S) as connection:
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(connection)
                connection.sendall(_HELLO.pack(_MAGIC, self._secret, *self._place))
                while (offered := self._outgoing[peer].get()) is not None:
                    number, pieces = offered
                    for index, piece in enumerate(pieces):
                        data = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
                        connection.sendall(_HEADER.pack(_MAGIC, number, index, data.nbytes))
                        connection.sendall(data.data)
                    del offered, pieces
        except (OSError, RuntimeError) as error:
            self._lose(peer, f"was lost: {error}")

    def _lose(self, peer: Place, reason: str) -> None:
        with self._changed:
            self._lost.setdefault(peer, reason)
            self._changed.notify_all()

    def _check(self, peer: Place) -> None:
        if not self._is_open:
            raise TransportError("the link was closed")
        if peer in self._lost:
            raise TransportError(f"mesh {peer[0]} host {peer[1]} {self._lost[peer]}")


def _receive(connection: socket.socket, size: int) -> Bytes | None:
    """So many bytes, in a buffer that jax can take over; None when the peer ends before them.

    Raises:
        EOFError: the peer ends within them.
    """
    buffer = np.empty(size + _ALIGNMENT, np.uint8)
    start = -buffer.ctypes.data % _ALIGNMENT
    data: Bytes = buffer[start : start + size]
    view = data.data
    while view:
        count = connection.recv_into(view)
        if not count and view.nbytes == size:
            return None
        if not count:
            raise EOFError
        view = view[count:]
    return data
