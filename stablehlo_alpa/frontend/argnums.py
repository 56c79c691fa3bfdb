"""Positions of arguments, as ``jax.jit`` takes them."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_alpa.errors import TraceError


def positions(argnums: int | Sequence[int], num_args: int) -> tuple[int, ...]:
    """Positions from 0, of which negative ones count from the end.

    Raises:
        TraceError: one is out of range.
    """
    found = []
    for argnum in (argnums,) if isinstance(argnums, int) else argnums:
        if not -num_args <= argnum < num_args:
            raise TraceError(f"argument number {argnum} is out of range, there are {num_args}")
        found.append(argnum % num_args)
    return tuple(found)
