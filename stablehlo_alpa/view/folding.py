"""Equal layers as one row: names that differ in numbers alone, ``layer_{0..47}/mlp/up``."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_NUMBER = re.compile(r"(\d+)")
# The mark of a pipeline's layer. It counts along with the layers of the model, one ahead or behind.
_MARK = re.compile(r"alpa_layer_\d+")
# An operator by its place in the function, and what is said of it.
_SAID = re.compile(r"(\S*/\S*): (.*)", re.DOTALL)
_BRACES = re.compile(r"\{(\d+(?:\.\.\d+)?(?:,\d+(?:\.\.\d+)?)*)\}")


@dataclass(frozen=True)
class Fold:
    """Names that are shown as one.

    Attributes:
        name: with the numbers that differ in braces.
        members: positions among the names that were folded, ascending.
    """

    name: str
    members: tuple[int, ...]


def fold(names: Sequence[str], keys: Sequence[Hashable] | None = None) -> list[Fold]:
    """Folds names that differ in numbers alone, in the order in which their patterns begin.

    Args:
        names: may occur more than once.
        keys: one per name, only equal ones are folded; None folds all.

    Example:
        >>> [fold.name for fold in fold(["a_0/w", "a_1/w", "a_3/w", "b"])]
        ['a_{0,1,3}/w', 'b']
    """
    groups: dict[tuple[Hashable, Hashable], dict[tuple[str, ...], list[int]]] = {}
    for position, name in enumerate(names):
        pieces = _NUMBER.split(name)
        group = groups.setdefault((tuple(pieces[::2]), keys[position] if keys else None), {})
        group.setdefault(tuple(pieces[1::2]), []).append(position)
    folds = []
    # Where groups of one pattern begin: they stand together.
    begins: dict[Hashable, int] = {}
    for (pattern, _), found in groups.items():
        first = begins.setdefault(pattern, min(i for places in found.values() for i in places))
        for numbers in _cover(sorted(found, key=lambda key: [int(n) for n in key])):
            members = sorted(i for key in _product(numbers) for i in found[key])
            pieces = _NUMBER.split(names[members[0]])
            pieces[1::2] = [_range_text(values) for values in numbers]
            folds.append((first, Fold("".join(pieces), tuple(members))))
    return [one for _, one in sorted(folds, key=lambda pair: (pair[0], pair[1].members[0]))]


def fold_remarks(remarks: Sequence[str]) -> list[str]:
    """Remarks with what is said of the same operator of many layers as one.

    Example:
        >>> fold_remarks(["f/layer_0/dot: stays whole", "f/layer_1/dot: stays whole", "2 hosts"])
        ['f/layer_{0,1}/dot: stays whole', '2 hosts']

    Marks of a pipeline's layers are one as well, ``alpa_layer_*``: layer 3 of the model may be in
    its layer 2.
    """
    matches = [_SAID.fullmatch(remark) for remark in remarks]
    places = [match[1] if match else "" for match in matches]
    texts = [match[2] if match else one for match, one in zip(matches, remarks, strict=True)]
    folds = fold([_MARK.sub("alpa_layer_*", place) for place in places], texts)
    folds.sort(key=lambda one: one.members[0])
    said = []
    for one in folds:
        marks = {mark for i in one.members for mark in _MARK.findall(places[i])}
        name = one.name.replace("alpa_layer_*", *marks) if len(marks) == 1 else one.name
        said.append((name, texts[one.members[0]]))
    return [f"{place}: {text}" if place else text for place, text in said]


def _cover(vectors: Sequence[tuple[str, ...]]) -> list[tuple[tuple[str, ...], ...]]:
    """Vectors of numbers as products of sets, a set per place."""
    if not vectors[0]:
        return [()]
    rests: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in vectors:
        rests.setdefault(first, []).append(tuple(rest))
    alike: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for first, found in rests.items():
        alike.setdefault(tuple(found), []).append(first)
    return [
        (tuple(firsts), *cover) for found, firsts in alike.items() for cover in _cover(list(found))
    ]


def _product(sets: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    if not sets:
        return [()]
    return [(first, *rest) for first in sets[0] for rest in _product(sets[1:])]


def _range_text(values: Sequence[str]) -> str:
    """``3``, ``{0..47}`` or ``{0..3,7}``, of ascending numbers."""
    runs: list[list[str]] = []
    for value in values:
        if runs and int(value) == int(runs[-1][-1]) + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    texts = [
        run[0] if len(run) == 1 else f"{run[0]}{',' if len(run) == 2 else '..'}{run[-1]}"
        for run in runs
    ]
    return texts[0] if len(values) == 1 else "{" + ",".join(texts) + "}"


def unfold(name: str) -> list[str]:
    """The names that a fold stands for.

    Example:
        >>> unfold("a_{0,2..3}/w")
        ['a_0/w', 'a_2/w', 'a_3/w']
    """
    match = _BRACES.search(name)
    if match is None:
        return [name]
    numbers: list[str] = []
    for run in match[1].split(","):
        first, _, last = run.partition("..")
        # 08..10 keeps its noughts.
        ends = range(int(first), int(last or first) + 1)
        numbers += [str(number).zfill(len(first)) for number in ends]
    rests = unfold(name[match.end() :])
    return [f"{name[: match.start()]}{number}{rest}" for number in numbers for rest in rests]
