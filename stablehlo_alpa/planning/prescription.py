"""What is prescribed for the inputs and outputs of a program before the search, as plain data.

A method says what it wants from the traced program alone; `planning.pins` says what that means for
the strategies of a graph on a mesh.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from jax.sharding import PartitionSpec


@dataclass(frozen=True)
class Exactly:
    """Held as the spec says; an error where it cannot be.

    Attributes:
        spec: mesh axes per dimension; an ``UNCONSTRAINED`` dimension is left to the search.
    """

    spec: PartitionSpec


@dataclass(frozen=True)
class SplitBatch:
    """Dimension 0 split over all mesh axes, as far as it divides and strategies do so."""


@dataclass(frozen=True)
class Whole:
    """The same on every device.

    Attributes:
        remark: what to tell the user of it; nothing when empty.
    """

    remark: str = ""


class Role(Enum):
    """What a program does with an input; the graph knows it."""

    ANY = "any"
    # A product or a look-up is reached from it.
    PARAMETER = "parameter"
    OTHER = "other"


@dataclass(frozen=True)
class Finest:
    """Split over as many devices as some strategy does.

    Attributes:
        role: inputs of another role are whole instead.
    """

    role: Role = Role.ANY


@dataclass(frozen=True)
class Near:
    """Held as the spec says, as far as dimensions divide and strategies do so; a remark if not.

    Attributes:
        spec: mesh axes per dimension.
        finest: axes that split it further, any dimension of it, wherever some strategy does so;
            nothing is remarked where none does.
        role: inputs of another role are not split further.
    """

    spec: PartitionSpec
    finest: tuple[str, ...] = ()
    role: Role = Role.ANY


@dataclass(frozen=True)
class Preferred:
    """Held as the spec says where a strategy does so, free otherwise; nothing is remarked.

    Attributes:
        spec: mesh axes per dimension.
    """

    spec: PartitionSpec


Wish: TypeAlias = Exactly | Near | SplitBatch | Whole | Finest | Preferred


Dimension: TypeAlias = tuple[int, int]
"""A flat input and one of its dimensions."""


@dataclass(frozen=True)
class Confinement:
    """Mesh axes that split, inside of a program, only what goes together with given dimensions.

    Two dimensions go together where a chain of operators keeps them so: the batch of an input with
    that of every activation, the output features of a matrix with the input features of the next.

    Attributes:
        batch: dimensions of inputs that count examples; an operator that works on examples has a
            dimension that goes with one of them.
        axes: name of a mesh axis -> dimensions of inputs; an operator that works on examples splits
            over the axis only what goes with one of them. An axis that is not named is free.
        light: more of them, for operators that are no products; those that can are split over the
            axis.
        idle: axes that are free in operators that do not work on examples: those of the optimiser.
    """

    batch: frozenset[Dimension]
    axes: Mapping[str, frozenset[Dimension]]
    light: Mapping[str, frozenset[Dimension]] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Prescription:
    """What is prescribed for a program; what is not named is left to the search.

    Attributes:
        inputs, outputs: by number of the flat input or output.
        splits_work: every operator with FLOPs takes a strategy that splits them the most; left to
            the search where batches cannot be split over all devices.
        gathered: outputs that whoever calls the program gathers where they are split; the search
            is charged for it.
        confinement: of mesh axes inside of the program; operators with FLOPs split them the most.
        remarks: what the method wants known.
    """

    inputs: Mapping[int, Wish] = field(default_factory=dict)
    outputs: Mapping[int, Wish] = field(default_factory=dict)
    splits_work: bool = False
    gathered: frozenset[int] = frozenset()
    confinement: Confinement | None = None
    remarks: tuple[str, ...] = ()
