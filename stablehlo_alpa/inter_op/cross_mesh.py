"""Cross-mesh resharding: which device sends what to which, each element once.

Tiles of the source are matched with tiles of the destination. A tile that several destination
devices hold is cut among them, so that it crosses once, and is all-gathered there; of several
devices that hold a tile of the source, the one that has least to send sends it.

References:
    Paper, section 6, and Zhuang et al., "On Optimizing the Communication of Model Parallelism",
    MLSys 2023 (arXiv 2211.05322).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from alpa_runtime import Piece, Resharding, ValueSpec

Axes = tuple[tuple[str, int], ...]
"""Names and sizes of the axes of a mesh, outermost first."""


@dataclass(frozen=True)
class CrossMeshTransfer:
    """A value on its way to another mesh.

    Attributes:
        landing: what the destination holds before it gathers: the wanted sharding, with every tile
            cut among the devices that are to hold all of it. Uneven cuts are padded at the end.
        gathered: per dimension of ``landing`` the axes over which it is gathered.
        resharding: the pieces that cross.
    """

    landing: ValueSpec
    gathered: tuple[tuple[str, ...], ...]
    resharding: Resharding

    @property
    def needs_gather(self) -> bool:
        """Whether ``landing`` is not yet what was wanted."""
        return any(self.gathered)


def plan_transfer(
    source: ValueSpec, source_mesh: Axes, target: ValueSpec, target_mesh: Axes
) -> CrossMeshTransfer:
    """Matches the tiles of both sides.

    Args:
        source: the value as the source holds it, not partial.
        source_mesh: axes of the source.
        target: the same value as the destination wants it.
        target_mesh: axes of the destination, which shares no device with the source.
    """
    if not source.shape:
        return _scalar(target, target_mesh)
    sizes = dict(target_mesh)
    tile = target.local_shape(sizes)
    whole = [axis for axis, size in target_mesh if size > 1 and axis not in _split(target)]
    source_parts = [math.prod(dict(source_mesh)[axis] for axis in axes) for axes in source.axes]

    def cuts(split: Sequence[int]) -> list[_Cut]:
        return [
            _Cut(
                shape,
                math.prod(sizes[axis] for axis in target.axes[dim]),
                math.prod(sizes[axis] for axis, at in zip(whole, split, strict=True) if at == dim),
            )
            for dim, shape in enumerate(target.shape)
        ]

    def rank(split: Sequence[int]) -> tuple[int, int, int, Sequence[int]]:
        """The least that the busiest receiver gets, then the fewest pieces and gathers."""
        dims = cuts(split)
        pieces = (cut.num_pieces(parts) for cut, parts in zip(dims, source_parts, strict=True))
        return math.prod(cut.chunk for cut in dims), math.prod(pieces), len(set(split)), split

    best = min(itertools.product(range(len(tile)), repeat=len(whole)), key=rank)
    dims = cuts(best)
    gathered = tuple(
        tuple(axis for axis, at in zip(whole, best, strict=True) if at == dim)
        for dim in range(len(tile))
    )
    landing = ValueSpec(
        tuple(cut.padded for cut in dims),
        target.dtype,
        tuple((*axes, *more) for axes, more in zip(target.axes, gathered, strict=True)),
    )
    pieces = _balanced(_pieces(source, source_mesh, landing, target_mesh, dims))
    return CrossMeshTransfer(landing, gathered, Resharding(tuple(pieces)))


@dataclass(frozen=True)
class _Cut:
    """One dimension of the destination.

    Attributes:
        size: elements.
        parts: tiles that the wanted sharding cuts it into.
        shares: what each tile is cut into once more.
    """

    size: int
    parts: int
    shares: int

    @property
    def tile(self) -> int:
        return self.size // self.parts

    @property
    def chunk(self) -> int:
        """What a device receives, at most."""
        return -(-self.tile // self.shares)

    @property
    def padded(self) -> int:
        return self.parts * self.shares * self.chunk

    def span(self, index: int) -> range:
        """The elements that belong to a share; it is empty behind an uneven end."""
        part, share = divmod(index, self.shares)
        start = part * self.tile
        end = start + self.tile
        return range(
            min(start + share * self.chunk, end), min(start + (share + 1) * self.chunk, end)
        )

    def num_pieces(self, source_parts: int) -> int:
        """Pieces when the source is cut into so many parts."""
        step = self.size // source_parts if source_parts else 1
        spans = (self.span(index) for index in range(self.parts * self.shares))
        return sum(len(_overlapping(span, step)) for span in spans)


@dataclass(frozen=True)
class _Candidate:
    """A piece that one of several devices can send."""

    senders: tuple[int, ...]
    target: int
    source_offset: tuple[int, ...]
    target_offset: tuple[int, ...]
    shape: tuple[int, ...]


def _pieces(
    source: ValueSpec,
    source_mesh: Axes,
    landing: ValueSpec,
    target_mesh: Axes,
    dims: Sequence[_Cut],
) -> Iterator[_Candidate]:
    holders: dict[tuple[int, ...], list[int]] = {}
    for position, tile in enumerate(source.tiles(dict(source_mesh))):
        holders.setdefault(tile, []).append(position)
    steps = source.local_shape(dict(source_mesh))
    for target, share in enumerate(landing.tiles(dict(target_mesh))):
        spans = [cut.span(index) for cut, index in zip(dims, share, strict=True)]
        overlaps = [_overlapping(span, step) for span, step in zip(spans, steps, strict=True)]
        for tile in itertools.product(*overlaps):
            starts = [
                max(span.start, index * step)
                for span, index, step in zip(spans, tile, steps, strict=True)
            ]
            ends = [
                min(span.stop, (index + 1) * step)
                for span, index, step in zip(spans, tile, steps, strict=True)
            ]
            yield _Candidate(
                tuple(holders[tile]),
                target,
                tuple(
                    start - index * step
                    for start, index, step in zip(starts, tile, steps, strict=True)
                ),
                tuple(start - span.start for start, span in zip(starts, spans, strict=True)),
                tuple(end - start for start, end in zip(starts, ends, strict=True)),
            )


def _balanced(candidates: Iterator[_Candidate]) -> list[Piece]:
    """Largest first to whoever has least to send; at equal loads to the nearest position."""
    load: dict[int, int] = {}
    pieces = []
    for one in sorted(candidates, key=lambda one: (-math.prod(one.shape), one.target)):
        sender = min(one.senders, key=lambda s: (load.get(s, 0), abs(s - one.target), s))
        load[sender] = load.get(sender, 0) + math.prod(one.shape)
        pieces.append(Piece(sender, one.target, one.source_offset, one.target_offset, one.shape))
    return sorted(pieces, key=lambda piece: (piece.target, piece.target_offset))


def _scalar(target: ValueSpec, target_mesh: Axes) -> CrossMeshTransfer:
    """One device receives a scalar, the others get it from there."""
    axes = tuple(axis for axis, size in target_mesh if size > 1)
    count = math.prod(size for _, size in target_mesh)
    if not axes:
        landing = ValueSpec((), target.dtype, ())
        return CrossMeshTransfer(landing, (), Resharding((Piece(0, 0, (), (), ()),)))
    landing = ValueSpec((count,), target.dtype, (axes,))
    return CrossMeshTransfer(landing, (axes,), Resharding((Piece(0, 0, (), (0,), ()),)))


def _split(value: ValueSpec) -> set[str]:
    return {axis for axes in value.axes for axis in axes}


def _overlapping(span: range, step: int) -> range:
    """Tiles of a size that a span of elements lies in."""
    if not span or not step:
        return range(0)
    return range(span.start // step, (span.stop - 1) // step + 1)
