"""How shardings pass through a region, for XLA's propagation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jax.experimental.custom_partitioning import ArrayMapping, CompoundFactor, SdyShardingRule
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from stablehlo_alpa.compiler import BoundaryClasses, Source
from stablehlo_alpa.partitioner.proposed import proposed_entries

NO_CLASS = -1


@dataclass(frozen=True)
class BoundaryRule:
    """Which dimensions of a region's arguments and results are split together.

    Attributes:
        inputs, outputs: per tensor and dimension its class, ``NO_CLASS`` for none.
        sizes: per class the size that may be split, the major part of each of its dimensions.
    """

    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, merged: Source) -> BoundaryRule:
        """Of a module whose functions are inlined."""
        found = BoundaryClasses.of(merged)
        return cls(found.inputs, found.outputs, found.sizes)

    def to_sdy(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> SdyShardingRule:
        """As Shardy takes it.

        Args:
            inputs: arrays or types, for their shapes.
            outputs: likewise.
        """
        whole: set[str] = set()
        compound: dict[str, int] = {}
        count = 0

        def mapping(classes: Sequence[int], shape: Sequence[int]) -> ArrayMapping:
            nonlocal count
            factors: list[Any] = []
            for number, size in zip(classes, shape, strict=True):
                count += 1
                if number == NO_CLASS:
                    factors.append(f"d{count}")
                elif self.sizes[number] == size:
                    whole.add(f"c{number}")
                    factors.append(f"c{number}")
                else:
                    compound[f"c{number}"] = self.sizes[number]
                    compound[f"d{count}"] = size // self.sizes[number]
                    factors.append(CompoundFactor(f"c{number}", f"d{count}"))
            return ArrayMapping(*factors)

        operands = tuple(map(mapping, self.inputs, (x.shape for x in inputs)))
        results = tuple(map(mapping, self.outputs, (x.shape for x in outputs)))
        sizes: Any = {name: size for name, size in compound.items() if name not in whole}
        return SdyShardingRule(operands, results, **sizes)

    def propagate(self, mesh: Mesh, inputs: Sequence[Any]) -> tuple[NamedSharding, ...]:
        """Shardings of the results that those of the arguments imply, for GSPMD.

        Args:
            mesh: of the shardings.
            inputs: ``jax.ShapeDtypeStruct`` with shardings.
        """
        axes: dict[int, tuple[str, ...]] = {}
        for classes, value in zip(self.inputs, inputs, strict=True):
            for number, entry in zip(classes, proposed_entries(mesh, value), strict=True):
                if number != NO_CLASS and entry:
                    axes.setdefault(number, entry)
        return tuple(
            NamedSharding(mesh, self._spec(mesh, classes, axes)) for classes in self.outputs
        )

    def _spec(
        self, mesh: Mesh, classes: Sequence[int], axes: dict[int, tuple[str, ...]]
    ) -> PartitionSpec:
        used: set[str] = set()
        entries: list[Any] = []
        for number in classes:
            entry = axes.get(number, ())
            parts = math.prod(mesh.shape[axis] for axis in entry)
            if used & set(entry) or not entry or self.sizes[number] % parts:
                entries.append(None)
            else:
                used |= set(entry)
                entries.append(entry)
        return PartitionSpec(*entries)
