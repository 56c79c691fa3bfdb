"""What every transport does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import jax

from alpa_runtime.plan import Recv, Send

Sender: TypeAlias = Callable[[jax.Array], None]
"""Sends a value. Returns as soon as the caller may give the array away (free or donate it); the
data may still be on its way then."""

Receiver: TypeAlias = Callable[[], jax.Array]
"""Returns the value in the sharding that the plan says. The data may still be on its way: whatever
uses the array waits for it. Called once per send, behind it or before it."""


class Transport(Protocol):
    """Performs the sends and receives of one plan.

    Both are prepared once and called in every step, so that a step only moves data. Values of one
    transfer arrive in the order in which they were sent.
    """

    def sender(self, mesh: int, send: Send) -> Sender:
        """Prepares a send of a mesh."""

    def receiver(self, mesh: int, recv: Recv) -> Receiver:
        """Prepares a receive of a mesh."""
