"""Names of the scopes by which the compiler knows layers and gradients."""

from __future__ import annotations

from typing import Any

GRADIENT_SCOPE = "alpa_gradients"
# Around what cuts stacks of layers into parts and puts them together.
STACK_SCOPE = "alpa_stack"
# Around a loop over several layers.
TURNS_SCOPE = "alpa_turns"


def layer_scope(layer: int) -> str:
    """Name of the scope of a layer (0 is the first)."""
    return f"alpa_layer_{layer}"


def is_differentiated(equation: Any) -> bool:
    """Whether differentiation made an equation, or it stands around gradients."""
    return "jvp(" in str(equation.source_info.name_stack) or is_mark(equation)


def is_backward(equation: Any) -> bool:
    """Whether the outermost differentiation transposed an equation, or it stands around gradients.

    Gradients that are taken inside of a loss are forward. What is transposed and was not
    differentiated is a linear function, such as the other way of a ``custom_linear_solve``.
    """
    scope = str(equation.source_info.name_stack)
    return 0 <= scope.find("transpose(jvp(") < scope.find("jvp(") or is_mark(equation)


def is_mark(equation: Any) -> bool:
    """Whether an equation stands around gradients where micro-batches end."""
    return GRADIENT_SCOPE in str(equation.source_info.name_stack)


def is_inside_loss(equation: Any) -> bool:
    """Whether differentiation made an equation: what is in it does not stand around gradients."""
    scope = str(equation.source_info.name_stack)
    return "jvp(" in scope.partition(GRADIENT_SCOPE)[0]
