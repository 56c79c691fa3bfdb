"""A collective, and what a device sends in it."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Kind(enum.StrEnum):
    """What devices exchange; spelt as StableHLO spells it."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    RAGGED_ALL_TO_ALL = "ragged_all_to_all"
    COLLECTIVE_PERMUTE = "collective_permute"
    COLLECTIVE_BROADCAST = "collective_broadcast"


@dataclass(frozen=True)
class Collective:
    """Equal collectives.

    Attributes:
        kind: what is exchanged.
        group_size: devices that take part together; 2 for a permutation.
        payload_bytes: per device and execution: the local operand, of all_gather the local result.
        count: executions.
    """

    kind: Kind
    group_size: int
    payload_bytes: float
    count: float = 1

    @property
    def total_bytes(self) -> float:
        """Payload of all executions."""
        return self.payload_bytes * self.count

    @property
    def sent_bytes(self) -> float:
        """Bytes that one device sends in all executions with a bandwidth-optimal algorithm.

        With n devices and payload b: all_reduce 2b(n-1)/n, all_gather, reduce_scatter and
        all_to_all b(n-1)/n (Thakur, Rabenseifner and Gropp, IJHPCA 19, 2005); what goes to one
        device, or to devices that only the data tell, b.
        """
        share = (self.group_size - 1) / self.group_size
        match self.kind:
            case Kind.ALL_REDUCE:
                return 2 * self.total_bytes * share
            case Kind.ALL_GATHER | Kind.REDUCE_SCATTER | Kind.ALL_TO_ALL:
                return self.total_bytes * share
        return self.total_bytes


def sent_bytes(collectives: Iterable[Collective]) -> float:
    """Bytes that one device sends in all of them."""
    return sum(one.sent_bytes for one in collectives)
