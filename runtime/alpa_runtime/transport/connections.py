"""Connections to all peers: messages of bytes, under numbers, from whoever knows the secret.

Integers little-endian: first ``hello`` (magic, secret, place of the sender), then per piece of a
message a header (magic, number, index, bytes) and its bytes. Whatever else comes closes the
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
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from alpa_runtime.errors import TransportError
from alpa_runtime.transport.between_processes import Place, name_of

_MAGIC = 0x41504C41
_HELLO = struct.Struct("<I32sii")
_HEADER = struct.Struct("<IQIQ")
# Largest piece that is believed; more is a damaged header. Bytes.
_LARGEST = 1 << 40
# jax takes a buffer of the host over without a copy when it is aligned so. Bytes.
_ALIGNMENT = 64
_CONNECT_S = 30.0

Bytes = npt.NDArray[np.uint8]

_Found = TypeVar("_Found")


class Connections:
    """A connection to and from every peer, each with a thread.

    Attributes:
        address: where other processes find this one.
        changed: notified when something came, or a peer was lost; guards what `wait` looks at.
    """

    def __init__(self, bind: str) -> None:
        """Listens at the address of a network interface, on a free port."""
        self._listener = socket.create_server((bind, 0))
        host, port = self._listener.getsockname()[:2]
        self.address = f"{host}:{port}"
        self.changed = threading.Condition()
        self._place: Place = (-1, -1)
        self._secret = b""
        self._is_open = True
        self._addresses: dict[Place, str] = {}
        self._outgoing: dict[Place, queue.SimpleQueue[Any]] = {}
        self._sockets: list[socket.socket] = []
        self._arrived: dict[Place, dict[int, dict[int, Bytes]]] = defaultdict(dict)
        self._lost: dict[Place, str] = {}

    def connect(self, addresses: Mapping[Place, str], secret: bytes, place: Place) -> None:
        """Says where all are; who does not know the secret (32 bytes) is turned away."""
        is_first = not self._addresses
        self._addresses, self._secret, self._place = dict(addresses), secret, place
        if is_first:
            threading.Thread(target=self._accept, daemon=True).start()

    def post(self, peer: Place, number: int, pieces: Sequence[Any]) -> None:
        """Sends arrays, jax's as soon as they are computed; returns at once.

        Raises:
            TransportError: the peer is gone.
        """
        self.check(peer)
        self._queue(peer).put((number, pieces))

    def collect(self, peer: Place, number: int, count: int) -> Mapping[int, Bytes]:
        """The pieces of a message, by index, when ``count`` of them are there.

        Raises:
            TransportError: the peer is gone.
        """

        def find() -> Mapping[int, Bytes] | None:
            arrived = self._arrived[peer]
            return arrived.pop(number) if len(arrived.get(number, ())) >= count else None

        return self.wait(peer, find)

    def wait(self, peer: Place, find: Callable[[], _Found | None]) -> _Found:
        """What ``find`` returns when it is no longer None; asked whenever something `changed`.

        Raises:
            TransportError: the peer was lost before.
        """
        with self.changed:
            while (found := find()) is None:
                self.check(peer)
                self.changed.wait()
            return found

    def check(self, peer: Place) -> None:
        """Sees whether a peer is there.

        Raises:
            TransportError: it is not, or the connections were closed.
        """
        if not self._is_open:
            raise TransportError("the link was closed")
        if peer in self._lost:
            raise TransportError(f"{name_of(peer)} {self._lost[peer]}")

    def give_up(self, peer: Place, reason: str) -> None:
        """Counts a peer as lost; it notices, by a connection that ends."""
        self._lose(peer, reason)
        if self._is_open:
            self._queue(peer).put(None)

    def close(self) -> None:
        """Ends all connections, and whatever waits."""
        self._is_open = False
        for connection in (self._listener, *self._sockets):
            # Threads that wait for it do not notice that it is closed, but that it ends.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for waiting in self._outgoing.values():
            waiting.put(None)
        with self.changed:
            self.changed.notify_all()

    def _queue(self, peer: Place) -> queue.SimpleQueue[Any]:
        """What is to be sent to a peer; connects to it the first time."""
        with self.changed:
            if peer not in self._outgoing:
                self._outgoing[peer] = queue.SimpleQueue()
                threading.Thread(target=self._push, args=(peer,), daemon=True).start()
            return self._outgoing[peer]

    def _lose(self, peer: Place, reason: str) -> None:
        with self.changed:
            self._lost.setdefault(peer, reason)
            self.changed.notify_all()

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
                    with self.changed:
                        self._arrived[peer].setdefault(number, {})[index] = data
                        self.changed.notify_all()
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
        """Sends what is posted to one peer, as soon as it is computed."""
        try:
            host, port = self._addresses[peer].rsplit(":", 1)
            with socket.create_connection((host, int(port)), _CONNECT_S) as connection:
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets.append(connection)
                connection.sendall(_HELLO.pack(_MAGIC, self._secret, *self._place))
                while (posted := self._outgoing[peer].get()) is not None:
                    number, pieces = posted
                    for index, piece in enumerate(pieces):
                        data = np.ascontiguousarray(piece).reshape(-1).view(np.uint8)
                        connection.sendall(_HEADER.pack(_MAGIC, number, index, data.nbytes))
                        connection.sendall(data.data)
                    del posted, pieces
        except (OSError, RuntimeError) as error:
            self._lose(peer, f"was lost: {error}")


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
