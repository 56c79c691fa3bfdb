"""Which layer every equation of a forward function belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, jaxprs_in_params

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.layers.boundary import layer_boundary_p
from stablehlo_alpa.layers.clustering import cluster
from stablehlo_alpa.layers.equations import kinds_of, tensors_of, work_of
from stablehlo_alpa.layers.flatten import CALLS, flatten, without_unused
from stablehlo_alpa.layers.flops import equation_flops, has_matrix_product, jaxpr_flops
from stablehlo_alpa.layers.free_turns import has_free_turns
from stablehlo_alpa.layers.itinerary import itinerary
from stablehlo_alpa.layers.options import (
    AutoLayers,
    FollowInputs,
    FollowModuleLayers,
    LayerOption,
    ManualLayers,
)
from stablehlo_alpa.layers.spared import spared_work

# A scan with at least this part of the FLOPs is the model's stack of blocks (heuristic).
_STACK_SHARE = 0.25

# How much more than the mean a layer may have for the sake of calls that stay whole, and which part
# of a layer those have that are whole in any case (heuristic).
_UNEVEN, _SMALL_CALL = 0.25, 0.1

# A loop over examples stays whole, unless it has at least this part of the FLOPs: all of the model.
_WHOLE_SHARE = 0.99


def flatten_for(
    option: LayerOption, closed: ClosedJaxpr, num_results: int | None = None
) -> ClosedJaxpr:
    """The function with every equation opened that holds more than one layer, no unused ones.

    Calls that are parts of layers stay whole where layers come out about even: what is jitted for
    each block of a model is traced, differentiated and lowered once.

    Args:
        option: what makes a layer.
        closed: the function.
        num_results: see `assign`.
    """
    closed = without_unused(closed)
    flat = without_unused(flatten(closed, _counter(option, closed)))
    if isinstance(option, AutoLayers) and not is_even(option, flat, num_results):
        flat = without_unused(flatten(closed, _counter(option, closed, opens_calls=True)))
    return flat


def is_even(option: AutoLayers, flat: ClosedJaxpr, num_results: int | None = None) -> bool:
    """Whether no call that stays whole is in the way of layers of about equal FLOPs."""
    work = work_of(flat.jaxpr, flat.jaxpr.outvars[:num_results])
    is_call = [equation.primitive.name in CALLS for equation in flat.jaxpr.eqns]

    def largest(of_calls: bool) -> float:
        return max((w for w, one in zip(work, is_call, strict=True) if one is of_calls), default=0)

    limit = (1 + _UNEVEN) * sum(work) / option.num_layers
    if largest(of_calls=True) <= _SMALL_CALL * limit:
        return True
    layers = np.bincount(assign(option, flat, num_results), work)
    return bool(layers.max() <= max(limit, largest(of_calls=False)))


def assign(option: LayerOption, closed: ClosedJaxpr, num_results: int | None = None) -> list[int]:
    """Layer of every equation of a flat function, ascending from 0.

    Args:
        option: what makes a layer.
        closed: the function.
        num_results: of how many of its first results layers share the work; None for all.

    Raises:
        TraceError: the function says nothing of what the option asks for.
    """
    equations = closed.jaxpr.eqns
    match option:
        case AutoLayers():
            work = work_of(closed.jaxpr, closed.jaxpr.outvars[:num_results])
            return cluster(
                work,
                tensors_of(closed.jaxpr),
                option.num_layers,
                option.tolerance,
                kinds_of(closed.jaxpr),
                spared_work(closed.jaxpr, work, of_sums=True),
            )
        case ManualLayers():
            layers, layer = [], 0
            for equation in equations:
                layer += equation.primitive is layer_boundary_p
                layers.append(layer)
            if not layer:
                raise TraceError(
                    "ManualLayers: the differentiated function calls no layer_boundary()"
                )
            return layers
        case FollowModuleLayers():
            return _follow_modules(option, equations)
        case FollowInputs():
            return itinerary(option, closed).layers
    raise TypeError(
        f"layers must be AutoLayers(), ManualLayers() or FollowModuleLayers(), got {option!r}"
    )


def _counter(
    option: LayerOption, closed: ClosedJaxpr, *, opens_calls: bool = False
) -> Callable[[Any], int]:
    """In how many parts an equation is opened; see `flatten`.

    Args:
        option: what makes a layer.
        closed: the function.
        opens_calls: whether calls are opened that are parts of layers.
    """
    total = jaxpr_flops(closed.jaxpr)

    def turns(equation: Any) -> int:
        return int(equation.params["length"]) if equation.primitive.name == "scan" else 1

    def at_boundaries(equation: Any) -> int:
        return turns(equation) * any(map(_has_boundary, jaxprs_in_params(equation.params)))

    def calls(equation: Any) -> int:
        # What a loop uses lies on one mesh, or is brought to one.
        return int(equation.primitive.name != "scan")

    def is_over_examples(equation: Any) -> bool:
        flops = equation_flops(equation)
        return flops < _WHOLE_SHARE * total and has_free_turns(equation)

    def modules(equation: Any) -> int:
        if not _has_product(equation) or is_over_examples(equation):
            return 0
        is_whole = equation.primitive.name == "scan" and (
            equation_flops(equation) <= _STACK_SHARE * total
        )
        return 0 if is_whole else turns(equation)

    def shares(equation: Any, layers: AutoLayers) -> int:
        flops = equation_flops(equation)
        is_call = opens_calls and equation.primitive.name in CALLS
        most = _SMALL_CALL if is_call else 1 + layers.tolerance
        is_small = flops <= most * total / layers.num_layers
        if is_small or not _has_product(equation) or is_over_examples(equation):
            return 0
        return min(turns(equation), max(2, round(layers.num_layers * flops / total)))

    match option:
        case FollowInputs():
            return calls
        case ManualLayers():
            return at_boundaries
        case AutoLayers():
            return lambda equation: shares(equation, option)
    return modules


def _has_product(equation: Any) -> bool:
    return any(map(has_matrix_product, jaxprs_in_params(equation.params)))


def _has_boundary(jaxpr: Any) -> bool:
    return any(
        equation.primitive is layer_boundary_p
        or any(_has_boundary(body) for body in jaxprs_in_params(equation.params))
        for equation in jaxpr.eqns
    )


def _follow_modules(option: FollowModuleLayers, equations: Any) -> list[int]:
    layers, layer, current = [], 0, None
    for equation in equations:
        found = re.search(option.pattern, str(equation.source_info.name_stack))
        if found:
            name = found.group(1) if found.re.groups else found.group(0)
            if current is not None and name != current:
                layer += 1
            current = name
        layers.append(layer)
    if current is None:
        raise TraceError(
            f"FollowModuleLayers: no operator's name matches {option.pattern!r}; the first is "
            f"{str(equations[0].source_info.name_stack)!r}"
            if equations
            else "FollowModuleLayers: the differentiated function has no operators"
        )
    return layers
