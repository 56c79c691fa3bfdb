"""A link from device to device, on a library that has to be called by both sides at once.

Whoever receives asks for a transfer by number. Whoever sends answers when it is computed, with the
sizes of its pieces, and both sides start the library: no device waits for another mesh's program,
neither order nor size has to be agreed beforehand, and a peer that dies is noticed by its
connection.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from alpa_runtime.errors import TransportError
from alpa_runtime.transport.between_processes import Place, Wanted
from alpa_runtime.transport.connections import Connections
from alpa_runtime.transport.wire import Move, Wire, WireLibrary

# Between two looks at what devices do.
_POLL_S = 5e-5

# Numbers of messages. A process may ask a peer and be asked by it.
_IDENTITY = 0


def _question(count: int) -> int:
    return 2 * count + 1


def _answer(transfer: int) -> int:
    return 2 * transfer + 2


class _Channel:
    """A wire in use by one thread; others may close it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.wire: Wire | None = None
        self.asked = itertools.count()

    def close(self) -> None:
        with self.lock:
            if self.wire is not None:
                self.wire.close()
                self.wire = None


class DirectLink:
    """A wire in each direction to each peer, opened when first used.

    Attributes:
        address: where other processes find this one.
    """

    def __init__(self, devices: Sequence[jax.Device], bind: str, library: WireLibrary) -> None:
        """Listens for peers.

        Args:
            devices: of this process.
            bind: address of the network interface to listen at, without a port.
            library: moves the pieces.
        """
        self._devices, self._library = list(devices), library
        self._positions = {device: position for position, device in enumerate(devices)}
        self._connections = Connections(bind)
        self.address = self._connections.address
        self._offers: dict[Place, dict[int, Any]] = defaultdict(dict)
        self._outgoing: dict[Place, _Channel] = {}
        self._incoming: dict[Place, _Channel] = {}
        # Made behind the receive before: a GPU makes an array only when it is done with all that
        # was launched, and a receive that began with it would overlap with nothing.
        self._spare: dict[Callable[[], jax.Array], list[jax.Array]] = defaultdict(list)

    def connect(self, addresses: Mapping[Place, str], secret: bytes, place: Place) -> None:
        """See `Link`; who does not know the secret (32 bytes) is turned away."""
        self._connections.connect(addresses, secret, place)

    def offer(
        self, number: int, peer: Place, pieces: Sequence[jax.Array], targets: Sequence[int]
    ) -> None:
        """See `Link`."""
        self._connections.check(peer)
        with self._connections.changed:
            self._offers[peer][number] = (pieces, targets)
            self._connections.changed.notify_all()
        if peer not in self._outgoing:
            self._outgoing[peer] = _Channel()
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def take(self, number: int, peer: Place, wanted: Sequence[Wanted]) -> Sequence[jax.Array]:
        """See `Link`; returns when all pieces are there.

        Raises:
            TransportError: the peer is gone, or offers pieces of another size.
        """
        channel = self._incoming.setdefault(peer, _Channel())
        question = np.array([number, len(self._devices)], np.int64)
        self._connections.post(peer, _question(next(channel.asked)), [question])
        makers = [_allocator(one.shape, one.dtype, one.device) for one in wanted]
        landing = [(self._spare[make] or [make()]).pop() for make in makers]
        sizes = self._collect(peer, _answer(number), 1)[0].view(np.int64)
        for index, one in enumerate(wanted):
            found = int(sizes[index]) if index < len(sizes) else None
            one.check_size(number, peer, index, found)
        jax.block_until_ready(landing)
        receives = [
            Move(self._positions[one.device], one.source, array)
            for one, array in zip(wanted, landing, strict=True)
        ]

        def opened() -> Wire:
            identity, count = self._collect(peer, _IDENTITY, 2).values()
            (first,) = count.view(np.int64)
            return self._library.open(
                identity.tobytes(), int(first) + len(self._devices), int(first), self._devices
            )

        self._move(peer, channel, opened, (), receives)
        for make in makers:
            self._spare[make].append(make())
        return landing

    def close(self) -> None:
        """See `Link`."""
        self._connections.close()
        for channel in [*self._outgoing.values(), *self._incoming.values()]:
            channel.close()

    def _serve(self, peer: Place) -> None:
        """Sends what a peer asks for, until it is gone; runs in a thread."""
        channel = self._outgoing[peer]
        try:
            while True:
                self._answer(peer, channel)
        except Exception as error:
            # The peer waits for an answer: it has to know that none will come.
            self._connections.give_up(peer, f"cannot be sent to: {error}")
            channel.close()

    def _answer(self, peer: Place, channel: _Channel) -> None:
        """Sends one transfer."""
        question = self._collect(peer, _question(next(channel.asked)), 1)[0].view(np.int64)
        number, count = int(question[0]), int(question[1])
        pieces, targets = self._connections.wait(peer, lambda: self._offers[peer].pop(number, None))
        jax.block_until_ready(pieces)
        first = len(self._devices)
        sends = [
            Move(self._positions[next(iter(piece.devices()))], first + target, piece)
            for piece, target in zip(pieces, targets, strict=True)
        ]

        def opened() -> Wire:
            identity = self._library.new_identity()
            known = [np.frombuffer(identity, np.uint8), np.array([first], np.int64)]
            self._connections.post(peer, _IDENTITY, known)
            return self._library.open(identity, first + count, 0, self._devices)

        sizes = np.array([piece.nbytes for piece in pieces], np.int64)
        self._connections.post(peer, _answer(number), [sizes])
        self._move(peer, channel, opened, sends, ())

    def _move(
        self,
        peer: Place,
        channel: _Channel,
        opened: Callable[[], Wire],
        sends: Sequence[Move],
        receives: Sequence[Move],
    ) -> None:
        """Starts a wire, and waits for it.

        Raises:
            TransportError: the peer was lost on the way; so is the wire.
        """
        try:
            with channel.lock:
                if channel.wire is None:
                    channel.wire = opened()
                    self._poll(peer, channel.wire.is_open)
                channel.wire.start(
                    [move for move in sends if move.array.nbytes],
                    [move for move in receives if move.array.nbytes],
                )
                self._poll(peer, channel.wire.is_done)
        except BaseException as error:
            self._connections.give_up(peer, f"was lost: {error}")
            channel.close()
            raise

    def _poll(self, peer: Place, is_reached: Callable[[], bool]) -> None:
        while not is_reached():
            self._connections.check(peer)
            time.sleep(_POLL_S)

    def _collect(self, peer: Place, number: int, count: int) -> Mapping[int, Any]:
        """The pieces of a message, in order."""
        found = self._connections.collect(peer, number, count)
        if sorted(found) != list(range(count)):
            raise TransportError(f"message {number} of {peer} has pieces {sorted(found)}")
        return dict(sorted(found.items()))


@functools.lru_cache(maxsize=1024)
def _allocator(shape: tuple[int, ...], dtype: Any, device: jax.Device) -> Callable[[], jax.Array]:
    """Makes arrays that nobody else holds, to be overwritten."""
    return jax.jit(lambda: jnp.zeros(shape, dtype), out_shardings=SingleDeviceSharding(device))
