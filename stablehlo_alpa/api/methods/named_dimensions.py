"""Shardings by the names that a model gives to the dimensions of its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import jax
from jax.sharding import PartitionSpec

from stablehlo_alpa.errors import ShardingError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.option_checks import checked_sequence
from stablehlo_alpa.view.names import leaf_path_of

AxisRule: TypeAlias = tuple[str, str | tuple[str, ...] | None]
"""The name of a dimension, and the mesh axes that split it."""


def checked_rules(name: str, rules: Any) -> tuple[AxisRule, ...]:
    """Pairs of a name and mesh axes.

    Raises:
        ShardingError: one is none.
    """
    found = []
    what = "pairs of a name and mesh axes"
    for rule in checked_sequence(name, rules, what, error=ShardingError):
        pair = tuple(rule) if isinstance(rule, tuple | list) else (rule,)
        is_pair = len(pair) == 2 and isinstance(pair[0], str)
        axes = tuple(pair[1]) if is_pair and isinstance(pair[1], tuple | list) else pair[-1:]
        if not is_pair or not all(axis is None or isinstance(axis, str) for axis in axes):
            raise ShardingError(
                f"{name} has {rule!r}, must be pairs of the name of a dimension and a mesh axis, a "
                'tuple of axes or None, such as ("mlp", "model")'
            )
        found.append((pair[0], axes if isinstance(pair[1], tuple | list) else pair[1]))
    return tuple(found)


def specs_of_names(
    program: TracedProgram, rules: Sequence[AxisRule]
) -> tuple[dict[int, PartitionSpec], list[str]]:
    """The spec of every input whose dimensions are named, and what to remark.

    Args:
        program: the function; its arguments hold boxes of flax with names, in structure.
        rules: see `ManualSharding`.

    Raises:
        ShardingError: no dimension is named, or an array has one name twice, or too many names.
    """
    known = {name for name, _ in rules}
    found: dict[int, PartitionSpec] = {}
    unknown: dict[str, None] = {}
    for index, names in _named(program):
        value = program.inputs[index]
        if len(names) > len(value.shape):
            raise ShardingError(
                f"{value.name} names {len(names)} dimensions, {names}, its shape "
                f"{list(value.shape)} has {len(value.shape)}"
            )
        found[index] = _spec(value.name, names, rules)
        unknown.update({name: None for name in names if name is not None and name not in known})
    if not found:
        raise ShardingError(
            f"rules are of names of dimensions, and no argument of {program.name} has any: pass "
            "the state with its boxes (nn.with_logical_partitioning, without nn.unbox), or nnx "
            "variables with out_sharding; patterns= goes by paths instead"
        )
    if not unknown:
        return found, []
    return found, [
        f"dimensions named {', '.join(unknown)} are whole on every device: rules= says nothing of "
        "them"
    ]


def _spec(value: str, names: Sequence[str | None], rules: Sequence[AxisRule]) -> PartitionSpec:
    named = [name for name in names if name is not None]
    if len(set(named)) < len(named):
        raise ShardingError(f"{value} has one name for two dimensions, {tuple(names)}")
    entries: dict[str, tuple[str, ...]] = {}
    for name, axes in rules:
        wanted = () if axes is None else (axes,) if isinstance(axes, str) else axes
        taken = {axis for entry in entries.values() for axis in entry}
        if name in named and name not in entries and not taken & set(wanted):
            entries[name] = wanted
    split = [entries.get(name, ()) if name is not None else () for name in names]
    return PartitionSpec(*(axes or None for axes in split))


def _named(program: TracedProgram) -> Iterator[tuple[int, tuple[str | None, ...]]]:
    """Flat inputs with the names of their dimensions."""
    tree = jax.tree.unflatten(program.in_tree, range(len(program.inputs)))
    for node in jax.tree.leaves(tree, is_leaf=lambda node: _names_of(node) is not None):
        names = _names_of(node)
        leaves = jax.tree.leaves(node)
        if names is not None and len({leaf_path_of(program.inputs[i].name) for i in leaves}) == 1:
            yield from ((leaf, names) for leaf in leaves)


def _names_of(node: Any) -> tuple[str | None, ...] | None:
    """The names that a box of flax carries; None of anything else."""
    names = getattr(node, "names", None) if hasattr(node, "unbox") else None
    if names is None and callable(get := getattr(node, "get_metadata", None)):
        metadata = get()
        names = metadata.get("out_sharding") if isinstance(metadata, dict) else None
    if isinstance(names, tuple | list) and all(n is None or isinstance(n, str) for n in names):
        return tuple(names)
    return None
