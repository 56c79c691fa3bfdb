"""Expert parallelism: the experts of a mixture on different devices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from jax.sharding import PartitionSpec

from stablehlo_alpa.api.methods.method import Method
from stablehlo_alpa.api.methods.patterns import matching
from stablehlo_alpa.api.methods.prescribed import Prescribed, shared_options
from stablehlo_alpa.api.methods.program_dimensions import ProgramDimensions
from stablehlo_alpa.compiler import DimensionUse
from stablehlo_alpa.errors import MeshError, OptionError, ShardingError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.option_checks import (
    checked_integer,
    checked_pattern,
    checked_sequence,
    settle,
)
from stablehlo_alpa.planning import Confinement, Dimension, Near, Prescription, Role, Whole, Wish
from stablehlo_alpa.view.names import leaf_path_of

DATA, EXPERT = "data", "expert"

# By the stages of ZeRO, whose inputs are split further.
_SPLIT_FURTHER = {0: None, 1: Role.OTHER, 3: Role.ANY}


@dataclass(frozen=True)
class ExpertParallel(Method):
    """Experts are split over one axis of the mesh, batches over both axes everywhere else.

    The experts are found by the program: the dimension of a parameter that the first product which
    reads it has in all operands and in its result.

    Attributes:
        expert: devices over which experts are split; None for as many as divide both their number
            and the devices.
        patterns: regular expressions over the paths of parameters
            (``"state/params/experts_0/up"``), instead of the search. Where no product says which
            dimension counts experts, it is dimension 0.
        zero: what is split over all devices besides, that each would keep whole: 1 for the state of
            the optimiser, 3 for parameters as well (f32 masters of narrower weights are
            parameters), 0 for nothing.

    References:
        Lepikhin et al., "GShard", ICLR 2021. Rajbhandari et al., "ZeRO", SC 2020, section 5.
    """

    expert: int | None = None
    patterns: tuple[str, ...] = ()
    zero: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, checked_integer, "expert", is_optional=True, least=1)
        settle(self, checked_integer, "zero")
        if self.zero not in _SPLIT_FURTHER:
            raise OptionError(f"zero must be 0, 1 or 3, got {self.zero!r}")
        settle(self, _patterns, "patterns")
        if self.mesh_shape is not None:
            raise MeshError(
                f"mesh_shape={self.mesh_shape} follows from expert and the devices: leave it out"
            )

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Of the mesh."""
        return DATA, EXPERT

    @property
    def is_open(self) -> bool:
        """Whether the mesh depends on the number of experts."""
        return self.expert is None

    def mesh_shapes(self, num_devices: int, num_hosts: int) -> tuple[tuple[int, ...], ...]:
        """The devices that experts are split over, and as many of these as there are.

        Raises:
            MeshError: the devices do not divide.
        """
        expert = self.expert or 1
        if num_devices % expert:
            raise MeshError(f"expert={expert} does not divide {num_devices} devices")
        return ((num_devices // expert, expert),)

    def concrete(self, program: TracedProgram, num_devices: int) -> Method:
        """The method for a function, whose experts say how many devices they are split over."""
        dims = ProgramDimensions.of(program)
        experts = self._experts(dims)
        count = math.gcd(num_devices, *(dims.size(one) for one in experts))
        return Prescribed(
            **shared_options(self, mesh_shape=(num_devices // count, count)),
            names=self.axis_names,
            made=_prescription(dims, experts, self.zero),
        )

    def prescription(self, program: TracedProgram) -> Prescription:
        """Experts over one axis, batches over both."""
        dims = ProgramDimensions.of(program)
        return _prescription(dims, self._experts(dims), self.zero)

    def _experts(self, dims: ProgramDimensions) -> list[Dimension]:
        """The dimensions of parameters that count experts, one of each.

        Raises:
            ShardingError: there are none, or a pattern is found nowhere.
        """
        if not self.patterns:
            outside = {dims.number(one) for one in dims.examples | dims.positions}
            found = [
                (index, dim)
                for index in dims.others()
                for dim in dims.used(index, DimensionUse.BATCH)[:1]
                if dims.number((index, dim)) not in outside
            ]
            if not found:
                raise ShardingError(
                    f"no product of {dims.program.name} has a dimension that a parameter and all "
                    "else that goes in have in common, as the experts of a mixture: patterns= "
                    "names parameters that are split by experts"
                )
            return found
        paths = {i: leaf_path_of(dims.value(i).name) for i in dims.others() if dims.value(i).shape}
        named = {
            index: (dims.used(index, DimensionUse.BATCH) or [0])[0]
            for pattern in self.patterns
            for index in matching(dims.program, "patterns", pattern, paths)
        }
        return list(named.items())


def _patterns(name: str, given: Any) -> tuple[Any, ...]:
    """Regular expressions, or one of them."""
    some = (given,) if isinstance(given, str) else given
    found = checked_sequence(name, some, "regular expressions", error=ShardingError)
    return tuple(checked_pattern(name, pattern, error=ShardingError) for pattern in found)


def _prescription(dims: ProgramDimensions, experts: list[Dimension], zero: int) -> Prescription:
    split, role = dims.together(experts), _SPLIT_FURTHER[zero]
    further = (DATA, EXPERT) if role else ()
    wishes: dict[int, Wish] = {i: Whole() for i in range(len(dims.program.inputs))}
    wishes |= {index: Near(PartitionSpec((DATA, EXPERT))) for index, _ in dims.examples}
    for index in dims.others():
        wishes[index] = Near(dims.spec(index, split, EXPERT), further, role or Role.ANY)
    return Prescription(
        wishes,
        confinement=Confinement(
            batch=dims.examples,
            axes={DATA: dims.examples, EXPERT: dims.examples | split},
            idle=frozenset(further),
        ),
    )
