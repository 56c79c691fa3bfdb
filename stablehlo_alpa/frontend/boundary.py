"""The flat inputs of a traced function: which are given away, hold a batch, or are state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from alpa_runtime.keys import is_key

from stablehlo_alpa.frontend.batch_arguments import BatchArguments
from stablehlo_alpa.frontend.function import Argument, Function
from stablehlo_alpa.frontend.state import Subtree, state_pairs
from stablehlo_alpa.frontend.traced_program import TracedValue

# Shapes of raw keys: threefry's, and those of the other implementations.
_RAW_KEYS = {(2,), (4,)}


@dataclass(frozen=True)
class Boundary:
    """What is known of the flat inputs; see `TracedProgram`."""

    inputs: tuple[TracedValue, ...]
    argnums: tuple[int, ...]
    donated: tuple[int, ...]
    batch: frozenset[int]
    aliases: Mapping[int, int]

    @classmethod
    def of(
        cls,
        function: Function,
        arguments: Sequence[Argument],
        traced: jax.stages.Traced,
        batches: BatchArguments,
    ) -> Boundary:
        """That of a traced call.

        Args:
            function: the function.
            arguments: of the call.
            traced: what jax makes of it.
            batches: arguments that hold a batch, as of `trace_function`.

        Raises:
            TraceError: none of the arguments is one that should hold a batch.
        """
        avals = traced.jaxpr.in_avals
        names = [
            argument.name + jax.tree_util.keystr(path)
            for argument in arguments
            for path, _ in jax.tree_util.tree_leaves_with_path(argument.value)
        ]
        declared, batch = batches.find(function, arguments)
        aliases = _aliases(arguments, avals, traced, declared)
        return cls(
            inputs=tuple(map(TracedValue.of, names, avals)),
            argnums=tuple(argument.number for argument in arguments for _ in range(argument.size)),
            donated=tuple(
                one.start + i for one in arguments for i, given in enumerate(one.donated) if given
            ),
            batch=batch if batches.prefixes else _batch(avals, arguments, aliases),
            aliases=aliases,
        )


def _subtree(start: int, leaves: Sequence[Any], structure: Any) -> Subtree:
    types = tuple((tuple(leaf.shape), leaf.dtype) for leaf in leaves)
    return Subtree(start, structure, types, jax.tree_util.treedef_is_leaf(structure))


def _children(tree: Any) -> list[Any]:
    """The top-level parts of a pytree; the tree itself when it is a leaf."""
    parts, _ = jax.tree.flatten(tree, is_leaf=lambda node: node is not tree)
    return parts


def _subtrees(parts: Sequence[Any]) -> list[Subtree]:
    found, start = [], 0
    for part in parts:
        found.append(_subtree(start, *jax.tree.flatten(part)))
        start += len(found[-1].types)
    return found


def _aliases(
    arguments: Sequence[Argument],
    avals: Sequence[Any],
    traced: jax.stages.Traced,
    batches: Sequence[Argument],
) -> dict[int, int]:
    # In the order of the parameters, so that it does not matter which are passed by keyword.
    ordered = sorted(arguments, key=lambda one: (one.number < 0, one.number))
    subtrees = []
    for one in ordered:
        own = avals[one.start : one.start + one.size]
        subtrees.append(_subtree(one.start, own, jax.tree.structure(one.value)))
    donated = [i for i, one in enumerate(ordered) if any(one.donated)]
    outputs = [_subtree(0, *jax.tree.flatten(traced.out_info))]
    if not outputs[0].is_array:
        outputs += _subtrees(_children(traced.out_info))
    return state_pairs(
        subtrees, outputs, donated, [i for i, one in enumerate(ordered) if one in batches]
    )


def _batch(
    avals: Sequence[Any], arguments: Sequence[Argument], aliases: Mapping[int, int]
) -> frozenset[int]:
    found: set[int] = set()
    for argument in arguments:
        leaves = range(argument.start, argument.start + argument.size)
        # An argument of which a part is state is no batch.
        if not any(i in aliases for i in leaves):
            found.update(i for i in leaves if avals[i].shape and not _is_key(avals[i]))
    return frozenset(found)


def _is_key(leaf: Any) -> bool:
    """Whether a leaf is a PRNG key, typed or raw (``jax.random.PRNGKey``)."""
    if is_key(leaf):
        return True
    return leaf.dtype == np.uint32 and tuple(leaf.shape) in _RAW_KEYS
