"""What a link between devices needs from a library such as NCCL."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import jax


@dataclasses.dataclass(frozen=True)
class Move:
    """An array that a device sends or receives.

    Attributes:
        device: position of the device in its process.
        rank: of the other device in the wire.
        array: on that device alone; what is sent, or what is overwritten.
    """

    device: int
    rank: int
    array: jax.Array


class Wire(Protocol):
    """Joins the devices of two processes: first those of one as ranks, then those of the other.

    None of its functions waits. What two ranks send each other arrives in order.
    """

    def is_open(self) -> bool:
        """Whether both sides are there.

        Raises:
            TransportError: they will never be.
        """

    def start(self, sends: Sequence[Move], receives: Sequence[Move]) -> None:
        """Begins to move arrays, which are all computed; the one before has to be done."""

    def is_done(self) -> bool:
        """Whether everything that was started has been moved.

        Raises:
            TransportError: it will never be.
        """

    def close(self) -> None:
        """Ends it, and whatever is under way."""


class WireLibrary(Protocol):
    """Makes wires."""

    def new_identity(self) -> bytes:
        """What both sides of a new wire have to know."""

    def open(
        self, identity: bytes, num_ranks: int, first_rank: int, devices: Sequence[jax.Device]
    ) -> Wire:
        """One side of a wire; returns before the other is there.

        Args:
            identity: of the wire.
            num_ranks: devices of both sides.
            first_rank: of ``devices``.
            devices: of this process.
        """
