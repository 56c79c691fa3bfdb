"""``grad`` and ``value_and_grad`` of a function cut into layers, with marked gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from stablehlo_alpa.layers.assignment import assign, flatten_for
from stablehlo_alpa.layers.blocks import block_starts
from stablehlo_alpa.layers.keys import split_keys
from stablehlo_alpa.layers.likeness import find_likenesses
from stablehlo_alpa.layers.options import LayerOption, Remat, WholeFunction
from stablehlo_alpa.layers.recomputation import recomputing
from stablehlo_alpa.layers.references import without_references
from stablehlo_alpa.layers.scopes import GRADIENT_SCOPE, layer_scope

# What `grad` does while a function is traced for a pipeline. Part of the key of jax's caches of
# traces: a function that was traced without a pipeline is traced again.
layer_context: Any = jax.make_user_context(None)


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **options: Any,
) -> Callable[..., Any]:
    """``jax.value_and_grad``, telling a pipeline where the gradients are.

    Under ``parallelize(..., method=PipeshardParallel(...))`` the function is cut into layers. What
    comes out is that of the whole batch, however many micro-batches there are, unless
    ``micro_batches="independent"`` asks for something else. Anywhere else it is
    ``jax.value_and_grad``.

    Args:
        fun: a function whose first result is a scalar, a loss over its batch.
        argnums: the arguments to differentiate by.
        has_aux: whether ``fun`` returns a pair of the scalar and auxiliary data.
        **options: the other options of ``jax.value_and_grad``.
    """

    @functools.wraps(fun, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        option = layer_context.value
        if not isinstance(option, LayerOption):
            return jax.value_and_grad(fun, argnums, has_aux, **options)(*args, **kwargs)
        layered = _layered(fun, option, num_results=1)
        return mark_gradients(
            jax.value_and_grad(layered, argnums, has_aux, **options)(*args, **kwargs)
        )

    return wrapped


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **options: Any,
) -> Callable[..., Any]:
    """``jax.grad``, telling a pipeline where the gradients are; see ``value_and_grad``."""
    both = value_and_grad(fun, argnums, has_aux, **options)

    @functools.wraps(fun, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if not isinstance(layer_context.value, LayerOption):
            return jax.grad(fun, argnums, has_aux, **options)(*args, **kwargs)
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrapped


def in_layers(fun: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function, called ``name``, that is cut into layers itself where the context asks for it."""

    @functools.wraps(fun)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        wanted = layer_context.value
        if isinstance(wanted, WholeFunction):
            with layer_context(None):
                return _layered(fun, wanted.option)(*args, **kwargs)
        return fun(*args, **kwargs)

    wrapped.__name__ = name
    return wrapped


def mark_gradients(tree: Any) -> Any:
    """Puts a barrier in the scope of gradients around all arrays: micro-batches end there."""
    leaves, structure = jax.tree.flatten(tree)
    places = [index for index, leaf in enumerate(leaves) if _is_array(leaf)]
    with jax.named_scope(GRADIENT_SCOPE):
        marked = jax.lax.optimization_barrier([leaves[index] for index in places])
    return jax.tree.unflatten(structure, _replaced(leaves, places, marked))


def _is_array(leaf: Any) -> bool:
    """Whether jax traces it; numbers of Python, functions and names are handed through."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic) or hasattr(leaf, "__jax_array__")


def _replaced(leaves: Sequence[Any], places: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Leaves, some of which are others."""
    full = list(leaves)
    for place, value in zip(places, values, strict=True):
        full[place] = value
    return full


def _layered(
    fun: Callable[..., Any], option: LayerOption, num_results: int | None = None
) -> Callable[..., Any]:
    """The function, evaluated layer by layer, each in its name scope; see `assign`."""

    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        traced = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.Array | np.ndarray)]
        returned: list[Any] = []

        def flat(*arrays: Any) -> list[Any]:
            full = _replaced(leaves, traced, arrays)
            inner_args, inner_kwargs = jax.tree.unflatten(structure, full)
            found, tree = jax.tree.flatten(fun(*inner_args, **inner_kwargs))
            places = [i for i, leaf in enumerate(found) if _is_array(leaf)]
            # Tracers would outlive their trace.
            returned[:] = _replaced(found, places, [None] * len(places)), tree, places
            return [found[place] for place in places]

        arrays = [leaves[i] for i in traced]
        mend = "return its new value beside the loss (has_aux=True)"
        # Gradients that the loss takes itself are part of it.
        with layer_context(None):
            closed = without_references("a loss", jax.make_jaxpr(flat)(*arrays), mend)
        flattened = flatten_for(option, closed, num_results)
        layers = assign(option, flattened, num_results)
        # Constants are numbers of the host, which rules of gradients cannot index with tracers.
        consts = [c if isinstance(c, jax.Array) else jnp.asarray(c) for c in closed.consts]
        values = split_keys([*consts, *arrays])
        results = _evaluate(flattened, layers, values, option.recomputations[0])
        found, tree, places = returned
        return jax.tree.unflatten(tree, _replaced(found, places, results))

    return run


def _evaluate(
    closed: ClosedJaxpr, layers: Sequence[int], args: Sequence[Any], remat: Remat
) -> list[Any]:
    jaxpr = closed.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    last_use = {atom: len(layers) for atom in jaxpr.outvars if not isinstance(atom, Literal)}
    for index, equation in enumerate(jaxpr.eqns):
        for atom in equation.invars:
            if not isinstance(atom, Literal):
                last_use[atom] = max(last_use.get(atom, 0), index)
    starts = [i for i in range(len(layers)) if not i or layers[i] != layers[i - 1]]
    if remat is True:
        # What is between the blocks of a layer is kept as well.
        starts = [
            start + place
            for start, end in pairwise([*starts, len(layers)])
            for place in block_starts(_part(jaxpr, start, end, last_use)[2].jaxpr)
        ]
    parts = [_part(jaxpr, *ends, last_use) for ends in pairwise([*starts, len(layers)])]
    likenesses = find_likenesses([part for _, _, part in parts])
    runs: dict[int, Callable[..., Any]] = {}
    for start, (inputs, outputs, part), likeness in zip(starts, parts, likenesses, strict=True):
        if likeness.first not in runs:
            runs[likeness.first] = recomputing(part, remat)
        scopes = filter(None, (layer_scope(layers[start]), likeness.scope))
        with jax.named_scope("/".join(scopes)):
            results = runs[likeness.first](*(values[variable] for variable in inputs))
        values.update(zip(outputs, results, strict=True))
    return [atom.val if isinstance(atom, Literal) else values[atom] for atom in jaxpr.outvars]


def _part(
    jaxpr: Any, start: int, end: int, last_use: dict[Any, int]
) -> tuple[list[Any], list[Any], ClosedJaxpr]:
    """Equations ``start..end - 1`` as a function: what goes in, what is used after it."""
    equations = jaxpr.eqns[start:end]
    made: dict[Any, None] = {}
    needed: dict[Any, None] = {}
    for equation in equations:
        for atom in equation.invars:
            if not isinstance(atom, Literal) and atom not in made:
                needed[atom] = None
        made.update(dict.fromkeys(equation.outvars))
    outputs = [variable for variable in made if last_use.get(variable, -1) >= end]
    effects = set().union(*(equation.effects for equation in equations))
    names = jaxpr.debug_info.with_unknown_names()
    part = Jaxpr((), list(needed), outputs, equations, effects, names)
    return list(needed), outputs, ClosedJaxpr(part, ())
