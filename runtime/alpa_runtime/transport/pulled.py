"""Between processes: the receiver pulls over a socket, by ``jax.experimental.transfer``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding

from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.plan import PipelinePlan, Recv, Run, Send
from alpa_runtime.program import numpy_dtype
from alpa_runtime.resharding import Piece, Resharding
from alpa_runtime.transport.hosts import HostPair, host_pairs
from alpa_runtime.transport.interface import Receiver, Sender
from alpa_runtime.transport.pieces import Lander, Packer

Place = tuple[int, int]
"""A process: number of the mesh, and of the process in it."""


def is_available() -> bool:
    """Whether this jax has what the transport is made of."""
    try:
        return hasattr(importlib.import_module("jax.experimental.transfer"), "TransferServer")
    except ImportError:
        return False


class PulledTransport:
    """Transfers of one process of one mesh.

    A send offers its pieces under a number and returns; it keeps them until they were pulled. A
    receive asks for them and returns arrays that fill up. A dead peer makes what waits for them
    raise ``jax.errors.JaxRuntimeError``.

    Attributes:
        address: where other processes find this one.
    """

    def __init__(
        self, plan: PipelinePlan, place: Place, mesh: Mesh, num_hosts: tuple[int, ...], bind: str
    ) -> None:
        """Starts a server.

        Args:
            plan: what is run.
            place: this process.
            mesh: its mesh, devices of other processes included.
            num_hosts: processes of each mesh; each has as many of its devices.
            bind: address of the network interface to listen at, without a port.

        Raises:
            RuntimeMeshError: this jax has no transfer server.
        """
        if not is_available():
            raise RuntimeMeshError(
                f"jax {jax.__version__} has no jax.experimental.transfer; choose transport='tcp'"
            )
        transfer = importlib.import_module("jax.experimental.transfer")
        self._plan, self._place, self._mesh, self._num_hosts = plan, place, mesh, num_hosts
        self._devices = [d for d in mesh.devices.flat if d.process_index == jax.process_index()]
        client = self._devices[0].client
        self._server = transfer.start_transfer_server(client, f"{bind}:0", [f"{bind}:0"])
        self.address: str = self._server.address()
        self._peers: dict[Place, Any] = {}
        self._step = 0
        self._num_transfers = 1 + max(
            (one.transfer for own in plan.instructions for one in own if isinstance(one, Send)),
            default=0,
        )
        self._donated = {
            one.inputs[place]
            for one in plan.instructions[self._place[0]]
            if isinstance(one, Run)
            for place in plan.programs[one.program].donated
        }

    def connect(self, addresses: Mapping[Place, str]) -> None:
        """Says where the other processes are."""
        self._peers = {
            place: self._server.connect(address)
            for place, address in addresses.items()
            if place[0] != self._place[0]
        }

    def begin(self, step: int) -> None:
        """Starts a step; numbers of steps are never used twice."""
        self._step = step

    def sender(self, mesh: int, send: Send) -> Sender:
        """See `Transport`."""
        value = self._plan.value(mesh, send.buffer)
        shape = value.local_shape(self._plan.sizes(mesh))
        copies = send.buffer in self._donated
        packs = [
            (pair, Packer(pair.resharding, shape, copies=copies))
            for pair in self._pairs(send.resharding, mesh, send.target)
            if pair.source == self._place[1]
        ]

        def offer(array: jax.Array) -> None:
            for pair, pack in packs:
                self._server.await_pull(self._number(send.transfer, pair), pack(array))

        return offer

    def receiver(self, mesh: int, recv: Recv) -> Receiver:
        """See `Transport`."""
        value = self._plan.value(mesh, recv.buffer)
        dtype = numpy_dtype(value.dtype)
        pairs = [
            pair
            for pair in self._pairs(recv.resharding, recv.source, mesh)
            if pair.target == self._place[1]
        ]
        wanted = [
            (pair, [self._wanted(piece, dtype) for piece in pair.resharding.pieces])
            for pair in pairs
        ]
        everything = Resharding(tuple(p for pair in pairs for p in pair.resharding.pieces))
        sharding = NamedSharding(self._mesh, value.logical_spec)
        land = Lander(everything, value.shape, value.dtype, sharding, self._devices)

        def pull() -> jax.Array:
            pieces: list[jax.Array] = []
            for pair, shapes in wanted:
                peer = self._peers[recv.source, pair.source]
                pieces += peer.pull(self._number(recv.transfer, pair), shapes)
            return land(pieces)

        return pull

    def _pairs(self, number: int, source: int, target: int) -> tuple[HostPair, ...]:
        sizes = [
            len(self._plan.meshes[mesh].devices) // self._num_hosts[mesh]
            for mesh in (source, target)
        ]
        return host_pairs(self._plan.reshardings[number], *sizes)

    def _wanted(self, piece: Piece, dtype: Any) -> jax.ShapeDtypeStruct:
        sharding = SingleDeviceSharding(self._devices[piece.target])
        return jax.ShapeDtypeStruct(piece.shape, dtype, sharding=sharding)

    def _number(self, transfer: int, pair: HostPair) -> int:
        """What a pair of processes calls a transfer of a step."""
        most = max(self._num_hosts)
        number = self._step * self._num_transfers + transfer
        return (number * most + pair.source) * most + pair.target
