"""What transports between processes share: who sends which pieces, under which number."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import jax
import numpy as np

from alpa_runtime.device_mesh import make_mesh
from alpa_runtime.errors import TransportError
from alpa_runtime.plan import Plan, Recv, Run, Send
from alpa_runtime.program import numpy_dtype
from alpa_runtime.resharding import Piece, Resharding
from alpa_runtime.transport.hosts import HostPair, host_pairs
from alpa_runtime.transport.interface import Receiver, Sender
from alpa_runtime.transport.pieces import Lander, Packer

# Processes of a mesh; leaves room for 2**42 transfers in a number.
_MOST_HOSTS = 1 << 10

Place: TypeAlias = tuple[int, int]
"""A process: number of the mesh, and of the process in it."""


def name_of(peer: Place) -> str:
    """A process, in words."""
    return f"mesh {peer[0]} host {peer[1]}"


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A piece that a process is to receive.

    Attributes:
        shape: of the piece.
        dtype: numpy dtype, jax's extension types included.
        device: where it is to lie.
        source: position of the device that sends it in its process.
    """

    shape: tuple[int, ...]
    dtype: Any
    device: jax.Device
    source: int = 0

    def check_size(self, number: int, peer: Place, index: int, found: int | None) -> None:
        """Compares it with what came.

        Args:
            number: of the transfer.
            peer: who sends.
            index: of the piece in the transfer.
            found: bytes that came; None for nothing.

        Raises:
            TransportError: they are not as many.
        """
        size = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        if found != size:
            came = "nothing" if found is None else f"{found} bytes"
            raise TransportError(
                f"piece {index} of transfer {number} from {name_of(peer)} has {size} bytes, "
                f"{came} came"
            )


class Link(Protocol):
    """Moves lists of arrays between processes.

    Attributes:
        address: where other processes find this one.
    """

    address: str

    def connect(self, addresses: Mapping[Place, str], secret: bytes, place: Place) -> None:
        """Says where all processes are, what only they know, and which of them this is.

        Called again, with the same secret, when there are more of them.
        """

    def offer(
        self, number: int, peer: Place, pieces: Sequence[jax.Array], targets: Sequence[int]
    ) -> None:
        """Sends; returns before the data has left, and keeps it until then.

        Args:
            number: of the transfer.
            peer: who receives.
            pieces: each on the device that sends it.
            targets: per piece the position of the device that receives it in its process.
        """

    def take(self, number: int, peer: Place, wanted: Sequence[Wanted]) -> Sequence[jax.Array]:
        """Receives what the peer offers under the number."""

    def close(self) -> None:
        """Ends all connections."""


class ProcessTransport:
    """Transfers of one process of one mesh, over a link.

    Attributes:
        link: moves the pieces; another one takes its place when it was closed.
    """

    def __init__(
        self,
        plan: Plan,
        place: Place,
        devices: Sequence[jax.Device],
        num_hosts: tuple[int, ...],
        names: tuple[int, ...],
        link: Link,
    ) -> None:
        """Takes a link.

        Args:
            plan: what is run.
            place: number of the mesh in the plan, and of this process in it.
            devices: of the mesh, those of other processes included.
            num_hosts: processes of each mesh; each has as many of its devices.
            names: per mesh of the plan the number by which the link knows it.
            link: moves the pieces.
        """
        self._plan, self._place, self._num_hosts, self._names = plan, place, num_hosts, names
        self._mesh = make_mesh(plan.meshes[place[0]].axes, devices)
        self._devices = [d for d in devices if d.process_index == jax.process_index()]
        self.link = link
        # Most instructions differ from others only in the number of the transfer.
        self._packs = functools.cache(self._prepare_packs)
        self._lands = functools.cache(self._prepare_lands)
        self._donated = {
            one.inputs[place]
            for one in plan.instructions[self._place[0]]
            if isinstance(one, Run)
            for place in plan.programs[one.program].donated
        }

    def begin(self, step: int) -> int:
        """See `Transport`; transfers are counted from the number, those of others lie beyond."""
        return step

    def sender(self, mesh: int, send: Send) -> Sender:
        """See `Transport`."""
        value = self._plan.buffers[mesh][send.buffer]
        packs = self._packs(send.resharding, send.target, value, send.buffer in self._donated)

        def offer(step: int, array: jax.Array) -> None:
            for pair, pack, targets in packs:
                number = _number(step + send.transfer, pair)
                peer = (self._names[send.target], pair.target)
                self.link.offer(number, peer, pack(array), targets)

        return offer

    def receiver(self, mesh: int, recv: Recv) -> Receiver:
        """See `Transport`."""
        value = self._plan.buffers[mesh][recv.buffer]
        wanted, land = self._lands(recv.resharding, recv.source, value)

        def take(step: int) -> jax.Array:
            pieces: list[jax.Array] = []
            for pair, shapes in wanted:
                number = _number(step + recv.transfer, pair)
                peer = (self._names[recv.source], pair.source)
                pieces += self.link.take(number, peer, shapes)
            return land(pieces)

        return take

    def _prepare_packs(
        self, number: int, target: int, index: int, copies: bool
    ) -> list[tuple[HostPair, Packer, tuple[int, ...]]]:
        """What cuts a value into the pieces for each process of another mesh, and their targets."""
        mesh, host = self._place
        shape = self._plan.values[index].local_shape(self._plan.sizes(mesh))
        return [
            (
                pair,
                Packer(pair.resharding, shape, copies=copies),
                tuple(piece.target for piece in pair.resharding.pieces),
            )
            for pair in self._pairs(number, mesh, target)
            if pair.source == host
        ]

    def _prepare_lands(
        self, number: int, source: int, index: int
    ) -> tuple[list[tuple[HostPair, list[Wanted]]], Lander]:
        """What is to come from each process of another mesh, and what makes a value of it."""
        mesh, host = self._place
        value = self._plan.values[index]
        pairs = [pair for pair in self._pairs(number, source, mesh) if pair.target == host]
        wanted = [
            (pair, [self._wanted(piece, value.dtype) for piece in pair.resharding.pieces])
            for pair in pairs
        ]
        everything = Resharding(tuple(p for pair in pairs for p in pair.resharding.pieces))
        sharding = value.sharding(self._mesh)
        return wanted, Lander(everything, value.shape, value.dtype, sharding, self._devices)

    def _pairs(self, number: int, source: int, target: int) -> tuple[HostPair, ...]:
        sizes = [
            len(self._plan.meshes[mesh].devices) // self._num_hosts[mesh]
            for mesh in (source, target)
        ]
        return host_pairs(self._plan.reshardings[number], *sizes)

    def _wanted(self, piece: Piece, dtype: str) -> Wanted:
        return Wanted(piece.shape, numpy_dtype(dtype), self._devices[piece.target], piece.source)


def _number(transfer: int, pair: HostPair) -> int:
    """What a pair of processes calls a transfer: less than 2**62, so that links may double it."""
    return (transfer * _MOST_HOSTS + pair.source) * _MOST_HOSTS + pair.target
