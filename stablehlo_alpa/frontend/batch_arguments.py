"""Which arguments hold a batch, as the user says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.function import Argument, Function


@dataclass(frozen=True)
class BatchArguments:
    """Arguments that hold a batch, whole or in part.

    Attributes:
        prefixes: per argument, by number or name, a pytree prefix of it with a boolean per leaf.
    """

    prefixes: tuple[tuple[int | str, Any], ...] = ()

    @classmethod
    def of(cls, batch_argnums: Any) -> BatchArguments:
        """From what ``parallelize`` takes.

        Args:
            batch_argnums: numbers or names of arguments; a mapping from them to prefixes of
                booleans; or one such prefix for each positional argument.

        Raises:
            TraceError: it is none of these.
        """
        if _is_name(batch_argnums):
            return cls(((batch_argnums, True),))
        if isinstance(batch_argnums, Mapping):
            prefixes = tuple(batch_argnums.items())
        elif isinstance(batch_argnums, Iterable) and not isinstance(batch_argnums, str):
            found = tuple(batch_argnums)
            named = all(map(_is_name, found))
            prefixes = tuple((one, True) for one in found) if named else tuple(enumerate(found))
        else:
            raise TraceError(
                "batch_argnums takes numbers or names of arguments, or prefixes of booleans, got "
                f"{batch_argnums!r}"
            )
        for argument, prefix in prefixes:
            _check(argument, prefix)
        if prefixes and not any(any(jax.tree.leaves(prefix)) for _, prefix in prefixes):
            raise TraceError(
                f"batch_argnums={batch_argnums!r} names no batch: leave it out, or say True of one"
            )
        return cls(prefixes)

    @property
    def arguments(self) -> tuple[int | str, ...]:
        """Those of which some part is a batch."""
        return tuple(one for one, prefix in self.prefixes if any(jax.tree.leaves(prefix)))

    def find(
        self, function: Function, arguments: Sequence[Argument]
    ) -> tuple[list[Argument], frozenset[int]]:
        """The arguments of a call that hold a batch, and which flat inputs that is.

        Raises:
            TraceError: a prefix does not fit its argument.
        """
        batches: list[Argument] = []
        leaves: set[int] = set()
        for name, prefix in self.prefixes:
            number = function.number_of(name)
            for argument in arguments:
                if argument.name != name and (number is None or argument.number != number):
                    continue
                flags = _spread(function.name, argument, prefix)
                leaves.update(argument.start + i for i, flag in enumerate(flags) if flag)
                if any(flags):
                    batches.append(argument)
        return batches, frozenset(leaves)


def _is_name(one: Any) -> bool:
    return isinstance(one, int | str) and not isinstance(one, bool)


def _check(argument: Any, prefix: Any) -> None:
    if not _is_name(argument):
        raise TraceError(
            f"batch_argnums has {argument!r}, an argument is given by its number or its name"
        )
    for leaf in jax.tree.leaves(prefix):
        if not isinstance(leaf, bool):
            raise TraceError(
                f"batch_argnums has {prefix!r} for argument {argument!r}: {leaf!r} is no boolean"
            )


def _spread(name: str, argument: Argument, prefix: Any) -> list[bool]:
    """A boolean per leaf of an argument."""
    try:
        return jax.tree.leaves(jax.tree.broadcast(prefix, argument.value))
    except ValueError as error:
        raise TraceError(
            f"batch_argnums has {prefix!r} for argument {argument.name} of {name}, which is no "
            f"prefix of {jax.tree.structure(argument.value)}: {error}"
        ) from error
