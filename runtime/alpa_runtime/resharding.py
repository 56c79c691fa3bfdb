"""How a value goes from one mesh to another, piece by piece, as plain data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from alpa_runtime.errors import ProgramError
from alpa_runtime.program import ValueSpec


@dataclasses.dataclass(frozen=True)
class Piece:
    """A box of elements that one device sends to one device of another mesh.

    Attributes:
        source, target: positions of both in the devices of their meshes.
        source_offset: where the box begins in what the sender holds.
        target_offset: where it begins in what the receiver is to hold.
        shape: of the box, at least one element. A scalar goes into a shard of one element.
    """

    source: int
    target: int
    source_offset: tuple[int, ...]
    target_offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Elements."""
        return math.prod(self.shape)


@dataclasses.dataclass(frozen=True)
class Resharding:
    """All pieces of a value.

    What the receivers hold afterwards may be larger than the value: devices whose part of an uneven
    split is short, or empty, fill up with zeros.

    Attributes:
        pieces: each element of the value is in exactly one of them.
    """

    pieces: tuple[Piece, ...]

    @property
    def size(self) -> int:
        """Elements that cross between the meshes."""
        return sum(piece.size for piece in self.pieces)

    def keeps_shards(self, local_shape: tuple[int, ...], num_devices: int) -> bool:
        """Whether every device sends all it holds to the device in its place."""
        return len(self.pieces) == num_devices and all(
            piece.source == piece.target == place
            and piece.shape == local_shape
            and not any(piece.source_offset)
            for place, piece in enumerate(self.pieces)
        )

    def check(
        self,
        sent: ValueSpec,
        source_mesh: Mapping[str, int],
        filled: ValueSpec,
        target_mesh: Mapping[str, int],
    ) -> None:
        """Proves that pieces lie within both values, overlap nowhere and are the whole value.

        Raises:
            ProgramError: naming the piece and the rule.
        """
        sides = (
            ("source", sent.local_shape(dict(source_mesh)), math.prod(source_mesh.values())),
            ("target", filled.local_shape(dict(target_mesh)), math.prod(target_mesh.values())),
        )
        for piece in self.pieces:
            _check_bounds(piece, sides)
        if self.size != math.prod(sent.shape):
            raise ProgramError(f"pieces have {self.size} elements, the value {sent.shape}")
        _check_overlap(self.pieces)


def _check_bounds(piece: Piece, sides: tuple[tuple[str, tuple[int, ...], int], ...]) -> None:
    if piece.size < 1:
        raise ProgramError(f"{piece} has no elements")
    offsets = {"source": piece.source_offset, "target": piece.target_offset}
    positions = {"source": piece.source, "target": piece.target}
    for side, shard, count in sides:
        shape, offset = piece.shape, offsets[side]
        if not shape and side == "target" and math.prod(shard) == 1:
            shape, offset = (1,) * len(shard), offset or (0,) * len(shard)
        if not 0 <= positions[side] < count:
            raise ProgramError(f"{piece} names {side} {positions[side]} of {count} devices")
        fits = len(shape) == len(offset) == len(shard) and all(
            start >= 0 and start + size <= whole
            for start, size, whole in zip(offset, shape, shard, strict=True)
        )
        if not fits:
            raise ProgramError(f"{piece} does not lie within the {side}'s shard {shard}")


def _check_overlap(pieces: tuple[Piece, ...]) -> None:
    by_target: dict[int, list[Piece]] = {}
    for piece in pieces:
        for other in by_target.setdefault(piece.target, []):
            if all(
                a < b + size_b and b < a + size_a
                for a, size_a, b, size_b in zip(
                    piece.target_offset,
                    piece.shape,
                    other.target_offset,
                    other.shape,
                    strict=False,
                )
            ):
                raise ProgramError(f"{piece} and {other} fill the same elements")
        by_target[piece.target].append(piece)
