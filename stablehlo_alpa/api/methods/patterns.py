"""Shardings by regular expressions over the paths of inputs, as t5x and EasyLM write them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from typing import Any

from jax.sharding import PartitionSpec

from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.option_checks import checked_pattern, checked_sequence
from stablehlo_alpa.view.names import leaf_path_of

# Paths that a message lists before it counts the others.
_LISTED = 4


def checked_patterns(name: str, patterns: Any) -> tuple[tuple[str, PartitionSpec | None], ...]:
    """Pairs of a pattern and a spec.

    Raises:
        ShardingError: one is none, or its pattern is no regular expression.
    """
    found = []
    for entry in _pairs(name, patterns, "a regular expression and a PartitionSpec"):
        pattern, spec = entry
        checked_pattern(name, pattern, error=ShardingError)
        if spec is not None and not isinstance(spec, PartitionSpec):
            raise ShardingError(
                f"{name} has {spec!r} for {pattern!r}, must be a PartitionSpec, or None to leave "
                "it to the search"
            )
        found.append((pattern, spec))
    return tuple(found)


def specs_of_patterns(
    program: TracedProgram,
    patterns: Iterable[tuple[str, PartitionSpec | None]],
    inputs: Collection[int],
    known: Collection[int] = (),
) -> tuple[dict[int, PartitionSpec | None], list[str]]:
    """The spec of every input in whose path a pattern is found, and what to remark.

    Args:
        program: the function.
        patterns: the first that is found counts.
        inputs: the flat inputs to look at.
        known: those that something is said of already: nothing is remarked of them.

    Raises:
        ShardingError: a pattern is found nowhere, so that it is a slip.
    """
    paths = {index: leaf_path_of(program.inputs[index].name) for index in inputs}
    found: dict[int, PartitionSpec | None] = {}
    for pattern, spec in patterns:
        hits = matching(program, "patterns", pattern, paths)
        for index in hits:
            is_single = math.prod(program.inputs[index].shape) <= 1
            found.setdefault(index, PartitionSpec() if is_single and spec is not None else spec)
    missed = [
        path
        for index, path in paths.items()
        if index not in found and index not in known and math.prod(program.inputs[index].shape) > 1
    ]
    if not missed:
        return found, []
    return found, [
        f"no pattern is found in {listed(missed)}: left to the search; a last pattern "
        "('.*', PartitionSpec()) would replicate what is left"
    ]


def matching(
    program: TracedProgram, argument: str, pattern: str, paths: dict[int, str]
) -> list[int]:
    """The inputs in whose path a pattern is found.

    Raises:
        ShardingError: there is none.
    """
    hits = [index for index, path in paths.items() if re.search(pattern, path)]
    if hits:
        return hits
    others = [leaf_path_of(program.inputs[i].name) for i in sorted(program.batch - paths.keys())]
    taken = [path for path in others if re.search(pattern, path)]
    hint = (
        f"{listed(taken)} is taken for a batch: batch_argnums= names those that are"
        if taken
        else f"paths are {listed(list(paths.values()))}"
    )
    raise ShardingError(
        f"{argument} has {pattern!r}, which is found in the path of no input of {program.name}; "
        f"{hint}"
    )


def listed(names: list[str]) -> str:
    """The first names, and how many more there are."""
    rest = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def _pairs(argument: str, entries: Any, what: str) -> list[tuple[Any, Any]]:
    some = checked_sequence(argument, entries, f"pairs of {what}", error=ShardingError)
    found = [tuple(entry) if isinstance(entry, tuple | list) else (entry,) for entry in some]
    for entry in found:
        if len(entry) != 2:
            raise ShardingError(f"{argument} has {entry!r}, must be pairs of {what}")
    return found
