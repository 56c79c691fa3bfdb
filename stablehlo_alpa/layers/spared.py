"""What the backward phase does not compute again of a block that ends at some place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from jax.extend.core import Literal, jaxprs_in_params

from stablehlo_alpa.layers.flatten import CALLS

# Derivatives of these need none of their operands.
_LINEAR = frozenset(
    {
        "add",
        "add_any",
        "broadcast_in_dim",
        "concatenate",
        "convert_element_type",
        "copy",
        "expand_dims",
        "neg",
        "reduce_sum",
        "reshape",
        "rev",
        "select_n",
        "slice",
        "squeeze",
        "sub",
        "transpose",
    }
)
_SUMS = frozenset({"add", "add_any", "sub"})
_SCALED = frozenset({"mul", "div"})


def spared_work(
    jaxpr: Any, work: npt.ArrayLike, *, of_sums: bool = False
) -> npt.NDArray[np.float64]:
    """Per equation the work that is spared if one block ends, and another begins, in front of it.

    Operators at the end of a block whose results only linear ones read are not computed again:
    what their derivatives need was made before them. Of a layer of a decoder that is the last
    product, where the layer ends behind what is added to the residuals.

    Args:
        jaxpr: of the forward function.
        work: of its equations.
        of_sums: only what is added to another value within the block counts, and calls. Where a
            product and the activation function behind it were in two blocks, the second would hold
            the argument of that function beside its result.
    """
    size = len(jaxpr.eqns)
    # Of values, the first equation whose derivative needs them, and the first that adds another.
    needed: dict[Any, int] = {}
    summed: dict[Any, int] = {}
    repeated = {
        out
        for equation in jaxpr.eqns
        if equation.primitive.name == "broadcast_in_dim"
        for out in equation.outvars
    }
    flops = np.asarray(work, np.float64)
    change = np.zeros(size + 1)
    for number in reversed(range(size)):
        equation = jaxpr.eqns[number]
        until = min((needed.get(out, size) for out in equation.outvars), default=size)
        first_sum = min((summed.get(out, size) for out in equation.outvars), default=size)
        is_call = equation.primitive.name in CALLS
        start = first_sum if of_sums and not is_call else number
        if start < until:
            change[start + 1] += flops[number]
            change[min(until, size - 1) + 1] -= flops[number]
        place = until if _is_linear(equation) else number
        atoms = [atom for atom in equation.invars if not isinstance(atom, Literal)]
        is_sum = equation.primitive.name in _SUMS and len(set(atoms) - repeated) > 1
        adds = number if is_sum else first_sum
        for atom in atoms:
            needed[atom] = min(needed.get(atom, size), place)
            summed[atom] = min(summed.get(atom, size), adds)
    return np.asarray(np.maximum(np.cumsum(change)[:size], 0.0))


def _is_linear(equation: Any) -> bool:
    """Whether the derivative of an equation needs none of its operands."""
    name = equation.primitive.name
    if name in _SCALED:
        left, right = equation.invars
        return isinstance(right, Literal) or (name == "mul" and isinstance(left, Literal))
    bodies = list(jaxprs_in_params(equation.params))
    if bodies and name in CALLS:
        return all(_is_linear(inner) for body in bodies for inner in body.eqns)
    return name in _LINEAR
