"""The parts of reshardings that two processes have with each other."""

from __future__ import annotations

import dataclasses

from alpa_runtime.resharding import Piece, Resharding


@dataclasses.dataclass(frozen=True)
class HostPair:
    """What one process of the source sends to one process of the destination.

    Attributes:
        source, target: numbers of the processes within their meshes.
        resharding: the pieces between them; positions of devices count within the process.
    """

    source: int
    target: int
    resharding: Resharding


def host_pairs(
    resharding: Resharding, source_devices: int, target_devices: int
) -> tuple[HostPair, ...]:
    """Cuts a resharding by process.

    Args:
        resharding: between two meshes.
        source_devices: devices per process of the source; its processes hold them in order.
        target_devices: those of the destination.

    Returns:
        the pairs that have something to send, in order of source and target.
    """
    found: dict[tuple[int, int], list[Piece]] = {}
    for piece in resharding.pieces:
        source, sender = divmod(piece.source, source_devices)
        target, receiver = divmod(piece.target, target_devices)
        local = dataclasses.replace(piece, source=sender, target=receiver)
        found.setdefault((source, target), []).append(local)
    return tuple(
        HostPair(source, target, Resharding(tuple(pieces)))
        for (source, target), pieces in sorted(found.items())
    )
