"""Loops whose turns do not wait for each other, as those over chunks of a batch."""

from __future__ import annotations

from typing import Any

from jax.extend.core import Literal, jaxprs_in_params

from stablehlo_alpa.layers.flops import equation_flops


def has_free_turns(equation: Any) -> bool:
    """Whether an equation is a scan in which no product reads what the turn before it made.

    Layers do: their products read what is carried. What goes over examples carries sums at most.
    """
    if equation.primitive.name != "scan":
        return False
    body, start = equation.params["jaxpr"].jaxpr, equation.params["num_consts"]
    end = start + equation.params["num_carry"]
    return not _has_product_of(body, set(body.invars[start:end]))


def _has_product_of(jaxpr: Any, values: set[Any]) -> bool:
    """Whether a product reads what is made of some values."""
    made = set(values)
    for equation in jaxpr.eqns:
        read = [i for i, atom in enumerate(equation.invars) if _is_in(atom, made)]
        if not read:
            continue
        inner = [*jaxprs_in_params(equation.params)]
        if len(inner) == 1 and len(inner[0].invars) == len(equation.invars):
            if _has_product_of(inner[0], {inner[0].invars[i] for i in read}):
                return True
        elif equation_flops(equation, only_products=True):
            return True
        made.update(equation.outvars)
    return False


def _is_in(atom: Any, values: set[Any]) -> bool:
    return not isinstance(atom, Literal) and atom in values
