"""The door to flax and optax, which only the zoo needs."""

from __future__ import annotations

from stablehlo_alpa.errors import ModelError

try:
    import optax
    from flax import linen as nn
except ImportError as error:
    raise ModelError(
        f"models of the zoo need flax and optax, {error.name} is not installed: "
        "pip install 'stablehlo-alpa[zoo]'"
    ) from error

__all__ = ["nn", "optax"]
