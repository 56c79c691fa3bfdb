"""The TCP link against peers that are broken, hostile or cut off, message by message."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from alpa_runtime.transport import TcpLink, TransportError, Wanted
from hypothesis import given, settings
from hypothesis import strategies as st

SECRET = bytes(range(32))
MAGIC = 0x41504C41
HELLO = struct.Struct("<I32sii")
HEADER = struct.Struct("<IQIQ")
RECEIVER, GOOD, BAD = (0, 0), (1, 0), (2, 0)


@contextlib.contextmanager
def links() -> Iterator[tuple[TcpLink, TcpLink]]:
    """A link that receives, and one that sends to it as it should."""
    receiver, good = TcpLink("127.0.0.1"), TcpLink("127.0.0.1")
    addresses = {RECEIVER: receiver.address, GOOD: good.address}
    receiver.connect(addresses, SECRET, RECEIVER)
    good.connect(addresses, SECRET, GOOD)
    try:
        yield receiver, good
    finally:
        receiver.close()
        good.close()


def wanted(size: int) -> list[Wanted]:
    return [Wanted((size,), np.dtype(np.float32), jax.devices()[0])]


def assert_still_works(receiver: TcpLink, good: TcpLink, number: int) -> None:
    data = np.arange(64, dtype=np.float32) + number
    good.offer(number, RECEIVER, [jax.device_put(data)], [0])
    np.testing.assert_array_equal(receiver.take(number, GOOD, wanted(64))[0], data)


def send(address: str, data: bytes) -> None:
    host, port = address.rsplit(":", 1)
    # Whoever is turned away may find the connection closed already.
    with socket.create_connection((host, int(port)), 10) as to, contextlib.suppress(OSError):
        to.sendall(data)


def taken(receiver: TcpLink, peer: tuple[int, int], number: int, size: int) -> Any:
    """What is received, or the error; never nothing."""
    found: list[Any] = []

    def take() -> None:
        try:
            found.append(receiver.take(number, peer, wanted(size)))
        except TransportError as error:
            found.append(error)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(30)
    assert found, "take neither returned nor raised"
    return found[0]


def message(number: int, index: int, data: bytes) -> bytes:
    return HEADER.pack(MAGIC, number, index, len(data)) + data


HELLO_OF_BAD = HELLO.pack(MAGIC, SECRET, *BAD)
SIXTEEN = np.arange(4, dtype=np.float32).tobytes()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=4))
def test_who_does_not_know_the_secret_changes_nothing(strangers: list[bytes]) -> None:
    with links() as (receiver, good):
        for number, data in enumerate(strangers):
            send(receiver.address, data)
            assert_still_works(receiver, good, number)


@st.composite
def damaged(draw: Any) -> bytes:
    """A good message of a known peer, cut short or with some bytes changed, and what follows."""
    data = bytearray(message(0, 0, SIXTEEN))
    for _ in range(draw(st.integers(0, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    end = draw(st.integers(0, len(data)))
    return bytes(data[:end]) + draw(st.binary(max_size=40))


@settings(deadline=None, max_examples=150)
@given(damaged())
def test_damaged_messages_of_a_peer_are_an_error_or_what_was_sent(data: bytes) -> None:
    with links() as (receiver, good):
        send(receiver.address, HELLO_OF_BAD + data)
        found = taken(receiver, BAD, 0, 4)
        if not isinstance(found, TransportError):
            assert found[0].shape == (4,)
        else:
            assert "mesh 2 host 0" in str(found)
        # Other peers are not concerned.
        assert_still_works(receiver, good, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "closed the connection"),
        (message(0, 0, SIXTEEN)[:-3], "broke off within a message"),
        (HEADER.pack(MAGIC, 0, 0, 16)[:7], "broke off within a message"),
        (HEADER.pack(MAGIC + 1, 0, 0, 16), "sent something that is no message"),
        (HEADER.pack(MAGIC, 0, 0, 1 << 60), "sent something that is no message"),
        (HEADER.pack(MAGIC, 0, 0, 1 << 39), "broke off|was lost"),
        (message(0, 0, SIXTEEN * 2), "has 16 bytes, 32 bytes came"),
        (message(0, 5, SIXTEEN), "has 16 bytes, nothing came"),
    ],
)
def test_the_error_says_why(data: bytes, reason: str) -> None:
    with links() as (receiver, _):
        send(receiver.address, HELLO_OF_BAD + data)
        with pytest.raises(TransportError, match=rf"mesh 2 host 0 .*({reason})"):
            raise taken(receiver, BAD, 0, 4)


def test_closing_wakes_who_waits() -> None:
    with links() as (receiver, _):
        threading.Timer(0.2, receiver.close).start()
        assert "the link was closed" in str(taken(receiver, GOOD, 0, 4))


def test_closed_links_leave_no_threads_or_files() -> None:
    before = set(threading.enumerate())
    for number in range(5):
        with links() as (receiver, good):
            assert_still_works(receiver, good, number)
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread
