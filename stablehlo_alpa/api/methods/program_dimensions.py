"""The dimensions of a function's inputs: which go together, and what products do with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from jax.sharding import PartitionSpec

from stablehlo_alpa.api.batches import batch_inputs, is_key
from stablehlo_alpa.compiler import BoundaryClasses, DimensionUse, Module
from stablehlo_alpa.frontend import TracedProgram, TracedValue
from stablehlo_alpa.planning import Dimension


@dataclass(frozen=True, eq=False)
class ProgramDimensions:
    """What is known of the dimensions of a function's inputs.

    Attributes:
        program: the function.
        batch: flat inputs that hold a batch.
        classes: of all dimensions.
    """

    program: TracedProgram
    batch: frozenset[int]
    classes: BoundaryClasses

    @classmethod
    def of(cls, program: TracedProgram) -> ProgramDimensions:
        """Looks at a traced function.

        Raises:
            CompileError: a pass refused it.
        """
        module = Module(program.text, program.name)
        module.run(f"alpa-prepare-pipeline{{{program.state_option} axes=}}")
        return cls(program, batch_inputs(program)[0], BoundaryClasses.of(module))

    @property
    def batch_size(self) -> int | None:
        """Examples in a batch; None where there is none."""
        shapes = (self.value(i).shape for i in sorted(self.batch))
        return next((shape[0] for shape in shapes if shape), None)

    @property
    def examples(self) -> frozenset[Dimension]:
        """The dimensions of batches that count examples."""
        return frozenset((i, 0) for i in self.batch if self.value(i).shape)

    @property
    def positions(self) -> frozenset[Dimension]:
        """The dimensions of batches behind those that count examples, of sequences of tokens."""
        return frozenset((i, 1) for i in self.batch if len(self.value(i).shape) > 1)

    def value(self, index: int) -> TracedValue:
        """A flat input."""
        return self.program.inputs[index]

    def others(self) -> Iterator[int]:
        """Flat inputs that are neither batches nor keys: state and frozen parameters."""
        for index, value in enumerate(self.program.inputs):
            if index not in self.batch and not is_key(value):
                yield index

    def used(self, index: int, use: DimensionUse) -> list[int]:
        """The dimensions of an input that the first product to read it uses so."""
        return [dim for dim, one in enumerate(self.classes.uses[index]) if one is use]

    def number(self, dimension: Dimension) -> int:
        """The class of a dimension, negative for none."""
        return self.classes.inputs[dimension[0]][dimension[1]]

    def size(self, dimension: Dimension) -> int:
        """Its size."""
        return self.value(dimension[0]).shape[dimension[1]]

    def spec(self, index: int, dimensions: Collection[Dimension], axis: str) -> PartitionSpec:
        """An input split over an axis on the first of some dimensions that it has."""
        rank = len(self.value(index).shape)
        split = [dim for dim in range(rank) if (index, dim) in dimensions][:1]
        return PartitionSpec(*(axis if dim in split else None for dim in range(rank)))

    def together(self, dimensions: Collection[Dimension]) -> frozenset[Dimension]:
        """The dimensions of state and frozen parameters that go together with some of them."""
        numbers = {self.number(one) for one in dimensions} - {-1}
        found = {
            (index, dim)
            for index in self.others()
            for dim, number in enumerate(self.classes.inputs[index])
            if number in numbers
        }
        return frozenset(found | set(dimensions))
