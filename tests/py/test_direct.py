"""The link that calls NCCL: peers that fail on the way, and NCCL itself where there is a GPU."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from alpa_runtime import RuntimeMeshError
from alpa_runtime.resharding import Piece, Resharding
from alpa_runtime.transport import DirectLink, Move, TransportError, Wanted, make_link
from alpa_runtime.transport.nccl import Nccl, interface_of, is_available
from alpa_runtime.transport.pieces import Packer
from host_wire import HostLibrary, HostWire
from jax.sharding import Mesh, NamedSharding, PartitionSpec

SENDER, RECEIVER = (0, 0), (1, 0)
FLOATS = np.dtype(np.float32)


class Stuck(HostWire):
    """Meets its peer, and never moves anything."""

    def is_done(self) -> bool:
        """See `Wire`."""
        return False


class Broken(HostWire):
    """Meets its peer, and fails when it is to move something."""

    def start(self, sends: Sequence[Move], receives: Sequence[Move]) -> None:
        """See `Wire`."""
        raise TransportError("the cable is cut")


def library(kind: type[HostWire]) -> HostLibrary:
    class Library(HostLibrary):
        def open(
            self, identity: bytes, num_ranks: int, first_rank: int, devices: Sequence[jax.Device]
        ) -> HostWire:
            return kind(identity, self._listening.get(identity), num_ranks, first_rank)

    return Library()


@contextlib.contextmanager
def links(
    sends: type[HostWire] = HostWire, receives: type[HostWire] = HostWire
) -> Iterator[tuple[DirectLink, DirectLink]]:
    devices = jax.devices()
    sender = DirectLink(devices[:2], "127.0.0.1", library(sends))
    receiver = DirectLink(devices[2:6], "127.0.0.1", library(receives))
    addresses = {SENDER: sender.address, RECEIVER: receiver.address}
    for place, link in ((SENDER, sender), (RECEIVER, receiver)):
        link.connect(addresses, bytes(32), place)
    try:
        yield sender, receiver
    finally:
        sender.close()
        receiver.close()


def piece(number: int, device: int) -> jax.Array:
    return jax.device_put(np.arange(4, dtype=np.float32) + number, jax.devices()[device])


def wanted(source: int, device: int, size: int = 4) -> Wanted:
    return Wanted((size,), FLOATS, jax.devices()[2 + device], source)


def test_transfers_may_be_taken_in_any_order() -> None:
    with links() as (sender, receiver):
        for number in range(6):
            pieces = [piece(number, number % 2), piece(-number, 0)]
            sender.offer(number, RECEIVER, pieces, [number % 4, 3])
        taken = {}
        for number in (3, 0, 5, 1, 4, 2):
            own = [wanted(number % 2, number % 4), wanted(0, 3)]
            taken[number] = receiver.take(number, SENDER, own)
            assert [found.devices() for found in taken[number]] == [{one.device} for one in own]
        # None was overwritten by those behind it.
        for number, (first, second) in taken.items():
            np.testing.assert_array_equal(first, np.arange(4) + np.float32(number))
            np.testing.assert_array_equal(second, np.arange(4) - np.float32(number))


def test_both_directions_at_once() -> None:
    with links() as (first, second):
        count = 50

        def answer() -> None:
            for number in range(count):
                (found,) = second.take(number, SENDER, [wanted(1, 2)])
                second.offer(number, SENDER, [found + 1], [0])

        thread = threading.Thread(target=answer)
        thread.start()
        for number in range(count):
            first.offer(number, RECEIVER, [piece(number, 1)], [2])
            own = [Wanted((4,), FLOATS, jax.devices()[0], 2)]
            (found,) = first.take(number, RECEIVER, own)
            np.testing.assert_array_equal(found, np.arange(4) + np.float32(number + 1))
        thread.join()


def test_pieces_of_another_size_are_refused_before_anything_moves() -> None:
    with links() as (sender, receiver):
        sender.offer(0, RECEIVER, [piece(0, 0)], [0])
        with pytest.raises(
            TransportError,
            match="piece 0 of transfer 0 from mesh 0 host 0 has 20 bytes, 16 bytes came",
        ):
            receiver.take(0, SENDER, [wanted(0, 0, 5)])


@pytest.mark.parametrize("fails", ["sender", "receiver"])
def test_a_wire_that_breaks_is_an_error_on_both_sides(fails: str) -> None:
    kinds = (Broken, HostWire) if fails == "sender" else (HostWire, Broken)
    with links(*kinds) as (sender, receiver):
        sender.offer(0, RECEIVER, [piece(0, 0)], [0])
        with pytest.raises(TransportError, match=r"the cable is cut|closed the connection|is gone"):
            receiver.take(0, SENDER, [wanted(0, 0)])
        for link, peer in ((sender, RECEIVER), (receiver, SENDER)):
            with pytest.raises(TransportError):
                link.take(1, peer, [wanted(0, 0)])


def test_closing_ends_a_transfer_that_is_stuck() -> None:
    with links(Stuck, Stuck) as (sender, receiver):
        sender.offer(0, RECEIVER, [piece(0, 0)], [0])
        threading.Timer(0.3, receiver.close).start()
        with pytest.raises(TransportError, match="the link was closed"):
            receiver.take(0, SENDER, [wanted(0, 0)])


def test_what_cannot_be_sent_is_an_error_for_who_waits_for_it() -> None:
    with links() as (sender, receiver):
        gone = piece(0, 0)
        gone.delete()
        sender.offer(0, RECEIVER, [gone], [0])
        with pytest.raises(TransportError, match="mesh 0 host 0 closed the connection"):
            receiver.take(0, SENDER, [wanted(0, 0)])


def test_pieces_of_a_replicated_value_lie_where_they_are_sent_from() -> None:
    mesh = Mesh(np.array(jax.devices()[:4]), ("x",))
    array = jax.device_put(np.arange(8.0), NamedSharding(mesh, PartitionSpec()))
    pieces = tuple(Piece(number, 0, (2 * number,), (0,), (2,)) for number in range(4))
    for number, cut in enumerate(Packer(Resharding(pieces), (8,))(array)):
        assert cut.devices() == {jax.devices()[number]}
        np.testing.assert_array_equal(cut, [2 * number, 2 * number + 1])


# NCCL


def test_nccl_is_for_gpus() -> None:
    with pytest.raises(RuntimeMeshError, match="nccl moves data between GPUs, the mesh has cpu"):
        make_link("nccl", jax.devices("cpu"), "127.0.0.1")


def test_interfaces_are_found_by_their_address() -> None:
    assert interface_of("127.0.0.1") == "lo"
    with pytest.raises(RuntimeMeshError, match=r"no network interface .* has address 192\.0\.2\.1"):
        interface_of("192.0.2.1")


def gpus() -> list[jax.Device]:
    with contextlib.suppress(RuntimeError):
        return jax.devices("gpu")
    return []


@pytest.mark.skipif(not gpus() or not is_available(), reason="needs a GPU and nccl4py")
@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float8_e4m3fn", "bool", "int8", "complex64"]
)
@pytest.mark.parametrize(("size", "count"), [(1, 1), (1, 200), (1 << 24, 2)])
def test_nccl_sends_to_itself(dtype: str, size: int, count: int) -> None:
    device = gpus()[0]
    nccl = Nccl([device], "127.0.0.1")
    wire = nccl.open(nccl.new_identity(), 1, 0, [device])

    def put(number: int) -> jax.Array:
        array = (np.arange(size) + number) % 2
        return jax.device_put(array.astype(getattr(ml_dtypes, dtype, dtype)), device)

    try:
        while not wire.is_open():
            pass
        for _ in range(3):
            sent = [put(number) for number in range(count)]
            landing = [jnp.zeros_like(one) for one in sent]
            jax.block_until_ready((sent, landing))
            wire.start([Move(0, 0, one) for one in sent], [Move(0, 0, one) for one in landing])
            while not wire.is_done():
                pass
            for found, one in zip(landing, sent, strict=True):
                np.testing.assert_array_equal(found, one)
    finally:
        wire.close()
