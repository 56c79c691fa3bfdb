"""The matrices of a model that tensor parallelism splits: by columns, then by rows.

Shoeybi et al., "Megatron-LM", 2019, section 3: of two matrices with nothing between them that mixes
features, the first is split by its output features (columns), the second by its input features
(rows); the product of both is a sum over the devices. Embedding and output layer are split by the
vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stablehlo_alpa.api.methods.patterns import listed, matching
from stablehlo_alpa.api.methods.program_dimensions import ProgramDimensions
from stablehlo_alpa.compiler import DimensionUse
from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.option_checks import checked_pattern, checked_sequence
from stablehlo_alpa.planning import Dimension
from stablehlo_alpa.view.names import leaf_path_of

SPLITS = ("column", "row", "vocabulary")


@dataclass(frozen=True)
class ColumnRow:
    """What is split.

    Attributes:
        dimensions: of parameters, with those of biases and moments that go together with them.
        num_layers: how often the most frequent pair is there; 1 without pairs.
        remarks: matrices that are left whole.
    """

    dimensions: frozenset[Dimension]
    num_layers: int = 1
    remarks: tuple[str, ...] = ()


def checked_splits(name: str, patterns: Any) -> tuple[tuple[str, str], ...]:
    """Pairs of a pattern and what it splits.

    Raises:
        ShardingError: one is none.
    """
    found = []
    what = "pairs of a regular expression and what it splits"
    for entry in checked_sequence(name, patterns, what, error=ShardingError):
        pair = tuple(entry) if isinstance(entry, tuple | list) else (entry,)
        is_pair = len(pair) == 2 and isinstance(pair[1], str) and pair[1] in SPLITS
        if not is_pair:
            raise ShardingError(
                f"{name} has {entry!r}, must be pairs of a regular expression and one of "
                + ", ".join(SPLITS)
            )
        checked_pattern(name, pair[0], error=ShardingError)
        found.append((pair[0], pair[1]))
    return tuple(found)


def named_splits(dims: ProgramDimensions, patterns: Iterable[tuple[str, str]]) -> ColumnRow:
    """What patterns name.

    Args:
        dims: of the function.
        patterns: regular expressions over paths of parameters, with "column", "row" or
            "vocabulary".

    Raises:
        ShardingError: a pattern is found in no parameter of a product, or in one without such a
            dimension.
    """
    used = [i for i in dims.others() if any(dims.classes.uses[i])]
    paths = {i: leaf_path_of(dims.value(i).name) for i in used}
    found: dict[int, int] = {}
    for pattern, split in patterns:
        for index in matching(dims.program, "patterns", pattern, paths):
            wanted = {
                "column": dims.used(index, DimensionUse.FREE),
                "row": dims.used(index, DimensionUse.CONTRACTED),
                "vocabulary": dims.used(index, DimensionUse.LOOKED_UP)
                or dims.used(index, DimensionUse.FREE),
            }[split]
            if not wanted:
                raise ShardingError(
                    f"patterns has {pattern!r} as {split}, and {dims.value(index).name} "
                    f"{list(dims.value(index).shape)} has no dimension for it: the first product "
                    f"that reads it uses its dimensions as "
                    f"{', '.join(use.name.lower() for use in dims.classes.uses[index])}"
                )
            found.setdefault(index, wanted[0])
    return ColumnRow(dims.together(list(found.items())))


def find_pairs(dims: ProgramDimensions) -> ColumnRow:
    """The column-row pairs of a function, and its vocabulary.

    The inner features of a pair are a class of dimensions that some matrices bring into a product
    and others are contracted over. A matrix is in one pair: local classes (the hidden features of
    one feed-forward network, the heads of one attention) come before those that many parameters
    have (the features between layers), which all their matrices would have to be free for.
    """
    outside = {dims.number((i, d)) for i in dims.batch for d in range(len(dims.value(i).shape))}
    columns, rows = _ends(dims, outside)
    spread = Counter(
        number for index in dims.others() for number in set(dims.classes.inputs[index])
    )
    order = {number: at for at, number in enumerate(columns)}
    taken: dict[int, int] = {}
    chosen: list[list[Dimension]] = []
    for number in sorted(set(columns) & set(rows), key=lambda n: (spread[n], order[n])):
        members = columns[number] + rows[number]
        if not any(index in taken for index, _ in members):
            taken.update(members)
            chosen.append(members)
    vocabulary = _vocabulary(dims, taken, outside)
    split = [one for members in chosen for one in members] + vocabulary
    left = [
        index for index in dims.others() if index not in dict(split) and _is_matrix(dims, index)
    ]
    remarks = (_whole(dims, left),) if left else ()
    return ColumnRow(dims.together(split), _repeats(dims, chosen), remarks)


def _whole(dims: ProgramDimensions, left: list[int]) -> str:
    """What is said of matrices in no pair."""
    read = {
        dims.number((i, d)) for i in dims.others() for d in dims.used(i, DimensionUse.CONTRACTED)
    } - {-1}
    apart = [
        index
        for index in left
        if all(dims.number((index, d)) not in read for d in dims.used(index, DimensionUse.FREE))
    ]

    def names(some: list[int]) -> str:
        return listed([dims.value(index).name for index in some])

    why = (
        f"; no product is contracted over the columns of {names(apart)} as they are: where parts "
        "are cut out of them (jnp.split of query, key and value), a reshape to heads in front of "
        "the cut makes a pair"
    )
    return (
        f"{names(left)}: in no column-row pair, whole over the tensor axis{why if apart else ''}; "
        "patterns= splits what it names"
    )


Ends = dict[int, list[Dimension]]
"""Per class the dimensions of parameters, one of each, in order."""


def _ends(dims: ProgramDimensions, outside: set[int]) -> tuple[Ends, Ends]:
    """Where the inner features of pairs begin, and where they end."""
    features = {
        use: {dims.number((i, d)) for i in dims.others() for d in dims.used(i, use)}
        for use in (DimensionUse.FREE, DimensionUse.CONTRACTED)
    }
    inner = features[DimensionUse.FREE] & features[DimensionUse.CONTRACTED] - outside - {-1}

    def ends(use: DimensionUse) -> Ends:
        found: Ends = {}
        for index in dims.others():
            # Heads come before the features of each: they are what can be split.
            own = [(index, d) for d in dims.used(index, use) if dims.number((index, d)) in inner]
            for dimension in own[:1]:
                found.setdefault(dims.number(dimension), []).append(dimension)
        return found

    return ends(DimensionUse.FREE), ends(DimensionUse.CONTRACTED)


def _vocabulary(
    dims: ProgramDimensions, taken: dict[int, int], outside: set[int]
) -> list[Dimension]:
    """Rows of tables that data look up, and the columns of output layers of as many.

    Nothing is contracted over what an output layer makes.
    """
    tables = [
        (index, dim)
        for index in dims.others()
        for dim in dims.used(index, DimensionUse.LOOKED_UP)
        if index not in taken and dims.number((index, dim)) not in outside
    ]
    sizes = {dims.size(one) for one in tables}
    read = {
        dims.number((i, d)) for i in dims.others() for d in dims.used(i, DimensionUse.CONTRACTED)
    }
    found = dict(tables)
    for index in dims.others():
        if index in taken or index in found or not _is_matrix(dims, index):
            continue
        columns = [
            dim
            for dim in dims.used(index, DimensionUse.FREE)
            if dims.size((index, dim)) in sizes and dims.number((index, dim)) not in read - {-1}
        ]
        if columns:
            found[index] = columns[0]
    return list(found.items())


def _is_matrix(dims: ProgramDimensions, index: int) -> bool:
    return bool(dims.used(index, DimensionUse.FREE) and dims.used(index, DimensionUse.CONTRACTED))


def _repeats(dims: ProgramDimensions, chosen: list[list[Dimension]]) -> int:
    """How often the most frequent pair is there; a stack of layers is as many."""
    kinds: Counter[Any] = Counter()
    for members in chosen:
        shapes = [(dims.value(index).shape, dim) for index, dim in members]
        first, _ = members[0]
        uses, shape = dims.classes.uses[first], dims.value(first).shape
        is_stack = len(shape) > 2 and uses[0] is DimensionUse.NONE
        kinds[tuple(sorted(shapes))] += shape[0] if is_stack else 1
    return max(kinds.values(), default=1)
