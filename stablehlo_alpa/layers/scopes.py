"""Names of the scopes by which the compiler knows layers and gradients."""

GRADIENT_SCOPE = "alpa_gradients"
# Around what cuts stacks of layers into parts and puts them together.
STACK_SCOPE = "alpa_stack"
# Around a loop over several layers.
TURNS_SCOPE = "alpa_turns"


def layer_scope(layer: int) -> str:
    """Name of the scope of a layer (0 is the first)."""
    return f"alpa_layer_{layer}"
