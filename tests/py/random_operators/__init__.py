"""Operators of every family, what they leave open drawn anew, and programs made of them."""

# Seeds count operators in the order in which these are read.
from random_operators import (  # isort: skip
    elementwise,
    shapes,
    slices,
    ordered,
    totals,
    products,
    control_flow,
)
from random_operators.recipes import Recipe, drawn, make
from random_operators.registry import OPERATORS

FAMILIES = (elementwise, shapes, slices, ordered, totals, products, control_flow)

__all__ = ["FAMILIES", "OPERATORS", "Recipe", "drawn", "make"]
