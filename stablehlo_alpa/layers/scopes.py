"""Names of the scopes by which the compiler knows layers and gradients."""

GRADIENT_SCOPE = "alpa_gradients"


def layer_scope(layer: int) -> str:
    """Name of the scope of a layer (0 is the first)."""
    return f"alpa_layer_{layer}"
