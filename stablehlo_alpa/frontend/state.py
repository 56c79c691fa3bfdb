"""Which outputs are the next-step values of which arguments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Subtree:
    """An argument or an output: a run of flat leaves.

    Attributes:
        start: index of its first leaf among all leaves.
        tree: its structure.
        types: shape and dtype of each leaf.
        is_array: whether it is one array, without a container around it.
    """

    start: int
    tree: Any
    types: tuple[Any, ...]
    is_array: bool


def state_pairs(
    arguments: Sequence[Subtree],
    outputs: Sequence[Subtree],
    donated: Collection[int],
    batch: Collection[int],
) -> dict[int, int]:
    """Pairs arguments with the outputs that are their next-step values.

    An output with the structure, shapes and dtypes of an argument is taken for its next value: the
    first match, each at most once, donated arguments first. An argument that is a bare array and
    not donated is taken for state only when it comes first, where a training step has its state: a
    batch often has the shape of a prediction by accident.

    Args:
        arguments: one subtree per argument.
        outputs: candidates: the whole output, then its children.
        donated: positions in ``arguments`` of donated arguments.
        batch: positions of arguments that are no state.

    Returns:
        flat input index -> flat output index.
    """
    order = sorted(range(len(arguments)), key=lambda position: position not in donated)
    taken: set[int] = set()
    pairs: dict[int, int] = {}
    for position in order:
        argument = arguments[position]
        if position in batch or not argument.types:
            continue
        if argument.is_array and position not in donated and position != 0:
            continue
        for output in outputs:
            leaves = range(output.start, output.start + len(output.types))
            if taken.intersection(leaves) or output.types != argument.types:
                continue
            if output.tree != argument.tree:
                continue
            taken.update(leaves)
            pairs |= {argument.start + i: leaf for i, leaf in enumerate(leaves)}
            break
    return pairs
