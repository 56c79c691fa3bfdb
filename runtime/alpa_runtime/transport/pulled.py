"""A link on ``jax.experimental.transfer``: the receiver pulls, straight into device buffers."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding

from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.transport.between_processes import Place, Wanted


def is_available() -> bool:
    """Whether this jax has what the link is made of."""
    try:
        return hasattr(importlib.import_module("jax.experimental.transfer"), "TransferServer")
    except ImportError:
        return False


class PulledLink:
    """Offers pieces under a number and keeps them until they were pulled.

    What is taken is there only later: arrays fill up while they are used. A dead peer makes what
    waits for them raise ``jax.errors.JaxRuntimeError``.

    Attributes:
        address: where other processes find this one.
    """

    def __init__(self, devices: Sequence[jax.Device], bind: str) -> None:
        """Starts a server.

        Args:
            devices: of this process.
            bind: address of the network interface to listen at, without a port.

        Raises:
            RuntimeMeshError: this jax has no transfer server.
        """
        if not is_available():
            raise RuntimeMeshError(
                f"jax {jax.__version__} has no jax.experimental.transfer; choose transport='tcp'"
            )
        transfer = importlib.import_module("jax.experimental.transfer")
        # Without an address of its own for the data the server of jaxlib 0.10.2 crashes.
        self._server = transfer.start_transfer_server(devices[0].client, f"{bind}:0", [f"{bind}:0"])
        self.address: str = self._server.address()
        self._peers: dict[Place, Any] = {}

    def connect(self, addresses: Mapping[Place, str], secret: bytes, place: Place) -> None:
        """See `Link`; jax's server has no use for a secret."""
        self._peers |= {
            peer: self._server.connect(address)
            for peer, address in addresses.items()
            if peer not in self._peers
        }

    def offer(
        self, number: int, peer: Place, pieces: Sequence[jax.Array], targets: Sequence[int]
    ) -> None:
        """See `Link`."""
        self._server.await_pull(number, list(pieces))

    def take(self, number: int, peer: Place, wanted: Sequence[Wanted]) -> Sequence[jax.Array]:
        """See `Link`."""
        shapes = [
            jax.ShapeDtypeStruct(w.shape, w.dtype, sharding=SingleDeviceSharding(w.device))
            for w in wanted
        ]
        taken: Sequence[jax.Array] = self._peers[peer].pull(number, shapes)
        return taken

    def close(self) -> None:
        """See `Link`; connections end with the process."""
        self._peers = {}
