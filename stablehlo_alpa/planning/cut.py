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
        parts: per stage the part of an unlike cluster that its submesh is of; empty where there is
            one.
    """

    layers: tuple[int, ...]
    submeshes: tuple[tuple[int, int], ...]
    mesh_shapes: tuple[tuple[int, ...], ...]
    num_chunks: int = 1
    is_given: bool = False
    parts: tuple[int, ...] = ()

    @classmethod
    def of(cls, stages: Sequence[StageBody], num_chunks: int = 1, *, is_given: bool = False) -> Cut:
        """That of planned stages."""
        return cls(
            tuple(len(stage.layers) for stage in stages),
            tuple((int(stage.submesh[0]), int(stage.submesh[1])) for stage in stages),
            tuple(tuple(int(size) for size in stage.mesh.shape) for stage in stages),
            num_chunks,
            is_given,
            parts_of([stage.place.part for stage in stages]),
        )

    @property
    def places(self) -> tuple[object, ...]:
        """What says where its layers run, whatever the logical meshes."""
        return self.layers, self.submeshes, self.parts

    def __str__(self) -> str:
        """``2 on 1x4, 6 on 1x4``; ``2 on 1x4 of part 0, 6 on 1x4 of part 1``."""
        parts = [f" of part {part}" for part in self.parts] or [""] * len(self.layers)
        found = (
            f"{count} on {hosts}x{devices}{part}"
            for count, (hosts, devices), part in zip(
                self.layers, self.submeshes, parts, strict=True
            )
        )
        return ", ".join(found)


def parts_of(numbers: Sequence[int]) -> tuple[int, ...]:
    """Parts of stages as a `Cut` has them: none where all are of the first."""
    return tuple(int(one) for one in numbers) if any(numbers) else ()
