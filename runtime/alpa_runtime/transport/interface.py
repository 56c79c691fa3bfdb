"""What every transport does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import jax

from alpa_runtime.plan import Recv, Send

Mail: TypeAlias = Any
"""What a transport keeps of one step. Each step has its own: what an interrupted or failed one has
sent cannot be received by another."""

Sender: TypeAlias = Callable[[Mail, jax.Array], None]
"""Sends a value in a step. Returns as soon as the caller may give the array away (free or donate
it); the data may still be on its way then."""

Receiver: TypeAlias = Callable[[Mail], jax.Array]
"""Returns the value of a step in the sharding that the plan says. The data may still be on its way:
whatever uses the array waits for it. Called once per send, behind it or before it."""


class Transport(Protocol):
    """Performs the sends and receives of one plan.

    Both are prepared once and called in every step, so that a step only moves data.
    """

    def begin(self, step: int) -> Mail:
        """Starts a step.

        Args:
            step: its number; between processes what its transfers are counted from, so that no two
                steps use the same numbers.
        """

    def sender(self, mesh: int, send: Send) -> Sender:
        """Prepares a send of a mesh."""

    def receiver(self, mesh: int, recv: Recv) -> Receiver:
        """Prepares a receive of a mesh."""
