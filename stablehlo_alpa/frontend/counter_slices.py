"""Slices that a loop takes where its counter says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Literal

from stablehlo_alpa.frontend.jaxpr_parts import (
    as_function,
    body_of,
    carried_values,
    needed_values,
)


@dataclass(frozen=True)
class CounterSlice:
    """A slice that a loop takes where its counter says: of one block after the other.

    Attributes:
        equation: of the slice.
        dim: dimension along which blocks lie.
        begin: where the first begins in every dimension.
        length: turns.
    """

    equation: Any
    dim: int
    begin: tuple[int, ...]
    length: int

    @property
    def operand(self) -> Any:
        """What it is a slice of."""
        return self.equation.invars[0]

    def turns(self, array: Any) -> Any:
        """All slices, those of a turn along dimension 0."""
        sizes = list(self.equation.params["slice_sizes"])
        whole = [*sizes]
        whole[self.dim] *= self.length
        cut = lax.slice(array, self.begin, [b + s for b, s in zip(self.begin, whole, strict=True)])
        shape = [*sizes[: self.dim], self.length, *sizes[self.dim :]]
        return jnp.moveaxis(cut.reshape(shape), self.dim, 0)

    @property
    def num_rows(self) -> int:
        """Rows of a turn; 0 if it does not have a block of rows."""
        return int(self.equation.params["slice_sizes"][0]) if self.dim == 0 else 0

    def rows(self, array: Any) -> Any:
        """All slices, rows along dimension 0 and turns along dimension 1."""
        sizes, parts = self.equation.params["slice_sizes"], []
        for turn in range(self.length):
            begin = [*self.begin]
            begin[self.dim] += turn * sizes[self.dim]
            ends = [b + s for b, s in zip(begin, sizes, strict=True)]
            parts.append(lax.slice(array, begin, ends))
        return jnp.stack(parts, 1)


def counter_slices(equation: Any, inner: Sequence[Any], own: Sequence[int]) -> list[CounterSlice]:
    """Slices of what every turn has, at places that are known."""
    params, body = equation.params, body_of(equation)
    start = equation.invars[params["num_consts"] :]
    known = [i for i in own if isinstance(start[i], Literal)]
    carried = carried_values(equation)
    found = []
    for one in inner:
        is_slice = one.primitive.name == "dynamic_slice"
        if not is_slice or one.invars[0] not in body.invars[: params["num_consts"]]:
            continue
        atoms = [*(body.outvars[i] for i in known), *one.invars[1:]]
        if needed_values(body.eqns, atoms) - {carried[i] for i in known}:
            continue
        step = as_function(body, [carried[i] for i in known], body.eqns, atoms)
        places, now = [], [np.asarray(start[i].val, carried[i].aval.dtype) for i in known]
        for _ in range(params["length"]):
            made = _compute(step, now)
            now = made[: len(known)]
            places.append([int(place) for place in made[len(known) :]])
        block = _blocks(one, np.array(places), params["length"])
        if block is not None:
            found.append(block)
    return found


def _compute(step: Callable[..., list[Any]], operands: Sequence[Any]) -> list[Any]:
    with jax.ensure_compile_time_eval():
        return [np.asarray(one) for one in step(*operands)]


def _blocks(equation: Any, places: Any, length: int) -> CounterSlice | None:
    """A slice whose places are one block after the other; None of others."""
    sizes, shape = np.array(equation.params["slice_sizes"]), equation.invars[0].aval.shape
    steps = np.diff(places, axis=0)
    # Of a single turn, along which dimension there could be more.
    moving = np.flatnonzero(steps.any(0) if length > 1 else sizes < shape)
    if len(moving) != 1:
        return None
    dim = int(moving[0])
    is_inside = (places >= 0).all() and (places + sizes <= np.array(shape)).all()
    if not is_inside or (steps[:, dim] != sizes[dim]).any():
        return None
    return CounterSlice(equation, dim, tuple(int(one) for one in places[0]), length)
