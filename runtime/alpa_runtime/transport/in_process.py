"""Between meshes of one process: a device copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
from jax.sharding import Mesh, NamedSharding

from alpa_runtime.plan import Plan, Recv, Send
from alpa_runtime.resharding import Resharding
from alpa_runtime.transport.interface import Receiver, Sender
from alpa_runtime.transport.pieces import Lander, Packer

# Of a transfer: its resharding, the source, what is sent or filled, the target.
_Key: TypeAlias = tuple[int, int, int, int]


class InProcessTransport:
    """Copies at the send: the copy lies on the receiving devices before the sender goes on.

    All meshes share one; those of a step come from one thread, every receive behind its send.
    """

    def __init__(self, plan: Plan, meshes: Sequence[Mesh]) -> None:
        """Takes a plan and its meshes."""
        self._plan, self._meshes = plan, meshes
        self._moves: dict[_Key, Callable[[jax.Array], Any]] = {}
        self._lands: dict[_Key, Callable[[Any], jax.Array]] = {}
        self._filled = {
            one.transfer: one.buffer
            for own in plan.instructions
            for one in own
            if isinstance(one, Recv)
        }

    def begin(self, step: int) -> dict[int, Any]:
        """See `Transport`; by transfer, what was sent and not yet received."""
        return {}

    def sender(self, mesh: int, send: Send) -> Sender:
        """See `Transport`."""
        key = (send.resharding, mesh, self._plan.buffers[mesh][send.buffer], send.target)
        if key not in self._moves:
            arriving = self._sharding(send.target, self._filled[send.transfer])
            self._moves[key] = self._move(key, arriving)
        move, transfer = self._moves[key], send.transfer

        def send_to(mail: dict[int, Any], array: jax.Array) -> None:
            mail[transfer] = move(array)

        return send_to

    def receiver(self, mesh: int, recv: Recv) -> Receiver:
        """See `Transport`."""
        key = (recv.resharding, recv.source, self._plan.buffers[mesh][recv.buffer], mesh)
        if key not in self._lands:
            self._lands[key] = self._land(key, self._sharding(mesh, recv.buffer))
        land, transfer = self._lands[key], recv.transfer
        return lambda mail: land(mail.pop(transfer))

    def _sharding(self, mesh: int, buffer: int) -> NamedSharding:
        return self._plan.value(mesh, buffer).sharding(self._meshes[mesh])

    def _move(self, key: _Key, arriving: NamedSharding) -> Callable[[jax.Array], Any]:
        number, source, value, target = key
        resharding = self._plan.reshardings[number]
        shape = self._plan.values[value].local_shape(self._plan.sizes(source))
        if self._keeps_shards(resharding, shape, source, target):
            return lambda array: jax.device_put(array, arriving)
        pack = Packer(resharding, shape)
        devices = list(self._meshes[target].devices.flat)
        receivers = [devices[piece.target] for piece in resharding.pieces]
        return lambda array: jax.device_put(pack(array), receivers)

    def _land(self, key: _Key, sharding: NamedSharding) -> Callable[[Any], jax.Array]:
        number, source, index, target = key
        resharding, value = self._plan.reshardings[number], self._plan.values[index]
        shape = value.local_shape(self._plan.sizes(target))
        if self._keeps_shards(resharding, shape, source, target):
            return lambda array: array
        return Lander(resharding, value.shape, value.dtype, sharding)

    def _keeps_shards(
        self, resharding: Resharding, shape: tuple[int, ...], source: int, target: int
    ) -> bool:
        size = self._meshes[source].size
        return self._meshes[target].size == size and resharding.keeps_shards(shape, size)
