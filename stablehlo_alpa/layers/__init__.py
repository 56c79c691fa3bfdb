"""Layers of a model: runs of operators that the pipeline never cuts.

The forward function is cut into layers where it is differentiated: `grad` and `value_and_grad`
trace it, cluster its operators, and evaluate every layer in a name scope of its own. JAX carries
the scope through differentiation, so that backward operators know their layer too. Where jax has
taken the gradients itself, layers are found in what it has made (`cut_differentiated`).
"""

from stablehlo_alpa.layers.assignment import flatten_for
from stablehlo_alpa.layers.boundary import layer_boundary
from stablehlo_alpa.layers.clustering import cluster
from stablehlo_alpa.layers.differentiated import cut_differentiated
from stablehlo_alpa.layers.grad import grad, in_layers, layer_context, value_and_grad
from stablehlo_alpa.layers.itinerary import itinerary
from stablehlo_alpa.layers.keys import key_context
from stablehlo_alpa.layers.likeness import with_own_names
from stablehlo_alpa.layers.options import (
    AutoLayers,
    FollowInputs,
    FollowModuleLayers,
    LayerOption,
    ManualLayers,
    Remat,
    WholeFunction,
)
from stablehlo_alpa.layers.scopes import GRADIENT_SCOPE, layer_scope

__all__ = [
    "GRADIENT_SCOPE",
    "AutoLayers",
    "FollowInputs",
    "FollowModuleLayers",
    "LayerOption",
    "ManualLayers",
    "Remat",
    "WholeFunction",
    "cluster",
    "cut_differentiated",
    "flatten_for",
    "grad",
    "in_layers",
    "itinerary",
    "key_context",
    "layer_boundary",
    "layer_context",
    "layer_scope",
    "value_and_grad",
    "with_own_names",
]
