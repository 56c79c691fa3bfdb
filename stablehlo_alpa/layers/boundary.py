"""``layer_boundary``: a mark between two layers."""

from __future__ import annotations

from typing import Any

from jax.extend.core import Primitive
from jax.interpreters import mlir

layer_boundary_p = Primitive("alpa_layer_boundary")
layer_boundary_p.multiple_results = True
layer_boundary_p.def_impl(lambda: [])
layer_boundary_p.def_abstract_eval(lambda: [])


def _lower(ctx: Any) -> list[Any]:
    """Outside a pipeline a boundary is nothing."""
    return []


mlir.register_lowering(layer_boundary_p, _lower)


def layer_boundary() -> None:
    """Ends a layer of the model and begins the next.

    To be called in the forward function between two layers, with ``ManualLayers()`` as the layers
    of ``PipeshardParallel``. Without a pipeline it does nothing.

    Example:
        >>> def loss_fn(params, batch):
        ...     x = batch["x"]
        ...     for index, layer in enumerate(params):
        ...         if index:
        ...             stablehlo_alpa.layer_boundary()
        ...         x = apply(layer, x)
        ...     return jnp.mean((x - batch["y"]) ** 2)
    """
    layer_boundary_p.bind()
