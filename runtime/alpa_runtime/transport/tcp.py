"""A link on plain TCP: the sender pushes from a thread, the receiver reads into aligned buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax

from alpa_runtime.transport.between_processes import Place, Wanted
from alpa_runtime.transport.connections import Connections


class TcpLink:
    """Pieces as messages.

    Attributes:
        address: where other processes find this one.
    """

    def __init__(self, bind: str) -> None:
        """Listens at the address of a network interface, on a free port."""
        self._connections = Connections(bind)
        self.address = self._connections.address

    def connect(self, addresses: Mapping[Place, str], secret: bytes, place: Place) -> None:
        """See `Link`; who does not know the secret (32 bytes) is turned away."""
        self._connections.connect(addresses, secret, place)

    def offer(
        self, number: int, peer: Place, pieces: Sequence[jax.Array], targets: Sequence[int]
    ) -> None:
        """See `Link`."""
        self._connections.post(peer, number, pieces)

    def take(self, number: int, peer: Place, wanted: Sequence[Wanted]) -> Sequence[jax.Array]:
        """See `Link`; returns when all pieces are there.

        Raises:
            TransportError: the peer is gone, or sent pieces of another size.
        """
        pieces = self._connections.collect(peer, number, len(wanted))
        taken = []
        for index, one in enumerate(wanted):
            data = pieces.get(index)
            one.check_size(number, peer, index, None if data is None else data.nbytes)
            assert data is not None
            taken.append(jax.device_put(data.view(one.dtype).reshape(one.shape), one.device))
        return taken

    def close(self) -> None:
        """See `Link`."""
        self._connections.close()
