"""FLOPs of equations, from shapes alone."""

from __future__ import annotations

import math
from typing import Any

from jax.extend.core import jaxprs_in_params


def equation_flops(equation: Any, only_products: bool = False) -> float:
    """FLOPs of one equation of a jaxpr.

    A multiplication and an addition count as two; an elementwise operator counts one per element of
    its result; loops count their body as often as it runs, where that is known.

    Args:
        equation: of the jaxpr.
        only_products: products and convolutions count, and nothing else.
    """
    name = equation.primitive.name
    if name == "dot_general":
        return _dot_flops(equation)
    if name == "conv_general_dilated":
        return _convolution_flops(equation)
    if name == "pallas_call":
        return _pallas_flops(equation, only_products)
    bodies = list(jaxprs_in_params(equation.params))
    if bodies:
        inner = [jaxpr_flops(body, only_products) for body in bodies]
        if name == "scan":
            return float(equation.params["length"]) * sum(inner)
        return max(inner) if name == "cond" else sum(inner)
    if only_products:
        return 0.0
    return float(sum(math.prod(out.aval.shape) for out in equation.outvars if _is_array(out)))


def jaxpr_flops(jaxpr: Any, only_products: bool = False) -> float:
    """FLOPs of all equations of a jaxpr; see `equation_flops`."""
    return sum(equation_flops(equation, only_products) for equation in jaxpr.eqns)


def has_matrix_product(jaxpr: Any) -> bool:
    """Whether a dot or a convolution is somewhere in a jaxpr."""
    return any(
        equation.primitive.name in ("dot_general", "conv_general_dilated")
        or any(has_matrix_product(body) for body in jaxprs_in_params(equation.params))
        for equation in jaxpr.eqns
    )


def _is_array(variable: Any) -> bool:
    return hasattr(variable.aval, "shape")


def _pallas_flops(equation: Any, only_products: bool) -> float:
    """As its author says; otherwise those of the body, at every place of the grid."""
    estimate = equation.params["cost_estimate"]
    if estimate is not None:
        return float(estimate.flops)
    grid = equation.params["grid_mapping"].grid
    runs = math.prod(size for size in grid if isinstance(size, int))
    return runs * jaxpr_flops(equation.params["jaxpr"], only_products)


def _dot_flops(equation: Any) -> float:
    (contracted, _), _ = equation.params["dimension_numbers"]
    left = equation.invars[0].aval.shape
    depth = math.prod(left[dimension] for dimension in contracted)
    return 2.0 * depth * math.prod(equation.outvars[0].aval.shape)


def _convolution_flops(equation: Any) -> float:
    numbers = equation.params["dimension_numbers"]
    kernel = equation.invars[1].aval.shape
    # rhs_spec is (output features, input features, spatial dimensions ...); the input features of
    # a grouped kernel are those of one group.
    taps = math.prod(kernel[dimension] for dimension in numbers.rhs_spec[1:])
    return 2.0 * taps * math.prod(equation.outvars[0].aval.shape)
