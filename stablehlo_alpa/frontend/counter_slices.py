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
        if self.is_element:
            return jnp.moveaxis(cut, self.dim, 0)
        shape = [*sizes[: self.dim], self.length, *sizes[self.dim :]]
        return jnp.moveaxis(cut.reshape(shape), self.dim, 0)

    @property
    def is_element(self) -> bool:
        """Whether turns have an element each, without the dimension that it was taken of."""
        return bool(self.equation.primitive.name == "gather")

    @property
    def num_rows(self) -> int:
        """Rows of a turn; 0 if it does not have a block of rows."""
        has_rows = self.dim == 0 and not self.is_element
        return int(self.equation.params["slice_sizes"][0]) if has_rows else 0

    def rows(self, array: Any) -> Any:
        """All slices, rows along dimension 0 and turns along dimension 1."""
        sizes, parts = self.equation.params["slice_sizes"], []
        for turn in range(self.length):
            begin = [*self.begin]
            begin[self.dim] += turn * sizes[self.dim]
            ends = [b + s for b, s in zip(begin, sizes, strict=True)]
            parts.append(lax.slice(array, begin, ends))
        return jnp.stack(parts, 1)


def counter_slices(
    equation: Any, inner: Sequence[Any], own: Sequence[int], *, takes_elements: bool
) -> list[CounterSlice]:
    """Slices of what every turn has, at places that are known.

    Args:
        equation: of the loop.
        inner: equations of its body.
        own: carried values that are made of each other and of what is the same in every turn.
        takes_elements: of ``jnp.take`` too, where it takes one element of a dimension.
    """
    params, body = equation.params, body_of(equation)
    start = equation.invars[params["num_consts"] :]
    known = [i for i in own if isinstance(start[i], Literal)]
    carried = carried_values(equation)
    consts = {
        own: given.val
        for own, given in zip(body.invars, equation.invars[: params["num_consts"]], strict=False)
        if isinstance(given, Literal)
    }
    found = []
    for one in inner:
        is_slice = one.primitive.name == "dynamic_slice"
        is_slice |= takes_elements and _taken_dim(one) is not None
        if not is_slice or one.invars[0] not in body.invars[: params["num_consts"]]:
            continue
        atoms = [*(body.outvars[i] for i in known), *one.invars[1:]]
        if needed_values(body.eqns, atoms) - {carried[i] for i in known} - consts.keys():
            continue
        step = as_function(body, [*consts, *(carried[i] for i in known)], body.eqns, atoms)
        places, now = [], [np.asarray(start[i].val, carried[i].aval.dtype) for i in known]
        for _ in range(params["length"]):
            made = _compute(step, [*consts.values(), *now])
            now = made[: len(known)]
            places.append(_place(one, made[len(known) :]))
        block = _blocks(one, np.array(places), params["length"])
        if block is not None:
            found.append(block)
    return found


def _taken_dim(equation: Any) -> int | None:
    """The dimension of which a gather takes one element, and all of the others."""
    if equation.primitive.name != "gather" or equation.invars[1].aval.shape != (1,):
        return None
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    dims = numbers.collapsed_slice_dims
    whole = [*equation.invars[0].aval.shape]
    if len(dims) != 1 or dims != numbers.start_index_map or numbers.operand_batching_dims:
        return None
    whole[dims[0]] = 1
    return int(dims[0]) if tuple(whole) == tuple(sizes) else None


def _place(equation: Any, made: Sequence[Any]) -> list[int]:
    """Where a slice begins in every dimension."""
    dim = _taken_dim(equation)
    if dim is None:
        return [int(place) for place in made]
    place = [0] * equation.invars[0].aval.ndim
    place[dim] = int(made[0][0])
    return place


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
