"""Along which dimension values have the examples of a batch, as far as shapes tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Dim: TypeAlias = int | None
"""The dimension whose slowest part are examples; None if there is none, or nobody knows."""


def example_dims(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    """Of the results of an equation.

    What has no rule has them where operands of as many dimensions do: a guess, by which loops are
    chosen that are the same in another form.

    Args:
        equation: of a jaxpr; none that calls another.
        dims: of its operands.
    """
    rule = _RULES.get(equation.primitive.name)
    if rule is not None:
        return rule(equation, dims)
    return [_alike(equation, dims, one.aval) for one in equation.outvars]


def _alike(equation: Any, dims: Sequence[Dim], result: Any) -> Dim:
    shape = getattr(result, "shape", ())
    for atom, dim in zip(equation.invars, dims, strict=True):
        if dim is None:
            continue
        own = atom.aval.shape
        if len(own) == len(shape) and own[dim] == shape[dim]:
            return dim
    return None


def _without(dim: Dim, gone: Sequence[int]) -> Dim:
    if dim is None or dim in gone:
        return None
    return dim - sum(one < dim for one in gone)


def _reduced(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    gone = equation.params.get("axes", equation.params.get("dimensions"))
    return [_without(dims[0], gone) for _ in equation.outvars]


def _transposed(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    (dim,) = dims
    return [None if dim is None else equation.params["permutation"].index(dim)]


def _broadcast(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    dim = dims[0]
    return [None if dim is None else equation.params["broadcast_dimensions"][dim]]


def _stacked(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    found = next((dim for dim in dims if dim is not None), None)
    return [None if found is None else found + int(equation.params["axis"] <= found)]


def _reshaped(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    dim = dims[0]
    if dim is None:
        return [None]
    before, after = equation.invars[0].aval.shape, equation.outvars[0].aval.shape
    front = math.prod(before[:dim])
    found = [i for i, size in enumerate(after) if math.prod(after[:i]) == front and size > 1]
    return [found[0] if found else None]


def _product(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    (sums, batches) = equation.params["dimension_numbers"]
    num_left = equation.invars[0].aval.ndim
    start = len(batches[0]) + num_left - len(sums[0]) - len(batches[0])
    for side, offset in ((0, len(batches[0])), (1, start)):
        dim = dims[side]
        if dim is None:
            continue
        if dim in batches[side]:
            return [batches[side].index(dim)]
        free = _without(dim, sorted((*sums[side], *batches[side])))
        if free is not None:
            return [offset + free]
    return [None]


def _gathered(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    """Rows of a table: the examples are those of the indices."""
    numbers, dim = equation.params["dimension_numbers"], dims[1]
    rank = equation.outvars[0].aval.ndim
    places = [i for i in range(rank) if i not in numbers.offset_dims]
    return [None if dim is None or dim >= len(places) else places[dim]]


def _convolved(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    numbers = equation.params["dimension_numbers"]
    return [numbers.out_spec[0] if dims[0] == numbers.lhs_spec[0] else None]


def _scanned(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    """What is carried keeps its dimension; stacks have examples in front where turns have parts."""
    start = equation.params["num_consts"]
    end = start + equation.params["num_carry"]
    carried = list(dims[start:end])
    front: Dim = 0 if any(dim == 0 for dim in dims[end:]) else None
    return [*carried, *(front for _ in equation.outvars[len(carried) :])]


def _repeated(equation: Any, dims: Sequence[Dim]) -> list[Dim]:
    start = equation.params["cond_nconsts"] + equation.params["body_nconsts"]
    return list(dims[start:])


_RULES: Mapping[str, Callable[[Any, Sequence[Dim]], list[Dim]]] = {
    **{f"reduce_{kind}": _reduced for kind in ("sum", "max", "min", "prod", "and", "or")},
    "argmax": _reduced,
    "argmin": _reduced,
    "squeeze": _reduced,
    "transpose": _transposed,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshaped,
    "dot_general": _product,
    "stack": _stacked,
    "gather": _gathered,
    "conv_general_dilated": _convolved,
    "scan": _scanned,
    "while": _repeated,
    "optimization_barrier": lambda _, dims: list(dims),
}
