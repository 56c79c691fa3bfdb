"""How a step is cut into stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stablehlo_alpa.planning.stage import StageBody


@dataclass(frozen=True)
class Cut:
    """Layers on submeshes.

    Attributes:
        layers: per stage how many layers it has.
        submeshes: per stage hosts and devices of each.
        mesh_shapes: per stage its logical mesh.
        num_chunks: stages per mesh.
        is_given: whether the stages were given, in place of searched.
    """

    layers: tuple[int, ...]
    submeshes: tuple[tuple[int, int], ...]
    mesh_shapes: tuple[tuple[int, ...], ...]
    num_chunks: int = 1
    is_given: bool = False

    @classmethod
    def of(cls, stages: Sequence[StageBody], num_chunks: int = 1, *, is_given: bool = False) -> Cut:
        """That of planned stages."""
        return cls(
            tuple(len(stage.layers) for stage in stages),
            tuple((int(stage.submesh[0]), int(stage.submesh[1])) for stage in stages),
            tuple(tuple(int(size) for size in stage.mesh.shape) for stage in stages),
            num_chunks,
            is_given,
        )

    def __str__(self) -> str:
        """``2 on 1x4, 6 on 1x4``."""
        found = (
            f"{count} on {hosts}x{devices}"
            for count, (hosts, devices) in zip(self.layers, self.submeshes, strict=True)
        )
        return ", ".join(found)
