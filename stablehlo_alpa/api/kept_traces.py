"""Traces of functions of which it is known what they are made of: the models of the zoo.

What a Python function computes cannot be read off it: it depends on what it closes over, on modules
and on global values. So a trace is kept only of a function that says what it was made of, by an
attribute ``RECIPE`` that is set by whoever made it from nothing else. All other functions are
traced, and what is kept begins with the text of the trace.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from stablehlo_alpa.api.settings import Settings
from stablehlo_alpa.frontend import Function, TracedProgram, TracedValue
from stablehlo_alpa.frontend.rules import registered_rules
from stablehlo_alpa.frontend.signature import avals_of, context
from stablehlo_alpa.store import Store, recipe_of

_PLAIN = (
    *("name", "text", "input_argnum", "donated", "num_parts", "has_gradients"),
    *("marks_gradients", "trip_count_hint", "platform"),
)


def known_content(
    function: Function,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    settings: Settings,
    way: tuple[Any, ...],
) -> tuple[Any, ...] | None:
    """All that a trace depends on; None where that is not known.

    Args:
        function: what is traced.
        args: its arguments, types in place of arrays.
        kwargs: keyword arguments, likewise.
        settings: how it is parallelised.
        way: how it is cut into layers.
    """
    recipe = recipe_of(function.fun)
    around = _around()
    if recipe is None or around is None or function.static_argnums:
        return None
    leaves, structure = jax.tree.flatten((args, kwargs))
    types = [(shape, str(dtype), *rest) for shape, dtype, *rest in avals_of(leaves)]
    asked = (settings.batches, settings.method.num_parts, settings.find_platform())
    given = (function.donated, settings.trip_count_hint, registered_rules(), settings.rules)
    return (recipe, str(structure), types, asked, given, way, around)


def _around() -> str | None:
    """The context of jax; None where it has more in it than it prints."""
    names, *others = context()
    found = repr(([one for one in names if not _is_no_axes(one)], others))
    return None if " at 0x" in found else found


def _is_no_axes(part: Any) -> bool:
    """Whether a part of the context says that nobody is within a ``vmap`` or a ``shard_map``."""
    names = ("axis_sizes", "spmd_axis_names", "explicit_mesh_axis_names")
    return all(hasattr(part, name) and not len(getattr(part, name)) for name in names)


def load_trace(
    store: Store, content: tuple[Any, ...] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> TracedProgram | None:
    """A trace that was kept; None where none was.

    Args:
        store: where it would be.
        content: of `known_content`.
        args: arguments of the call.
        kwargs: keyword arguments of the call.
    """
    if content is None or not store.is_on:
        return None
    record = store.get(_key(store, content))
    if record is None:
        return None
    plain = {name: record[name] for name in _PLAIN}
    plain |= {name: tuple(record[name]) for name in ("input_argnum", "donated")}
    return TracedProgram(
        **plain,
        inputs=_values(record["inputs"]),
        outputs=_values(record["outputs"]),
        in_tree=jax.tree.structure((args, dict(kwargs))),
        out_tree=_result(record["result"], args),
        batch=frozenset(record["batch"]),
        declared_batch=frozenset(record["declared"]),
        aliases=dict(record["aliases"]),
    )


def keep_trace(
    store: Store,
    content: tuple[Any, ...] | None,
    program: TracedProgram,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> None:
    """Keeps a trace whose content is known, if it is text and its result is made of arguments.

    Args:
        store: where it is kept.
        content: of `known_content`.
        program: the trace.
        args: arguments of the call.
        kwargs: keyword arguments of the call.
    """
    if (
        content is None
        or not store.is_on
        or program.callbacks
        or program.reports
        or program.kernels
    ):
        return
    result = _described(program, args)
    if result is None or program.in_tree != jax.tree.structure((args, dict(kwargs))):
        return
    record = {name: getattr(program, name) for name in _PLAIN}
    record |= {
        "inputs": list(map(dataclasses.asdict, program.inputs)),
        "outputs": list(map(dataclasses.asdict, program.outputs)),
        "result": result,
        "batch": sorted(program.batch),
        "declared": sorted(program.declared_batch),
        "aliases": sorted(program.aliases.items()),
    }
    store.put(_key(store, content), record)


def _key(store: Store, content: tuple[Any, ...]) -> str:
    return store.key("trace", *content)


def _values(records: list[Any]) -> tuple[TracedValue, ...]:
    return tuple(TracedValue(**(one | {"shape": tuple(one["shape"])})) for one in records)


def _described(program: TracedProgram, args: tuple[Any, ...]) -> list[int] | None:
    """Per part of the result the argument that has its structure, -1 of an array; or None.

    Structures themselves cannot be kept: they have classes of Python in them.
    """
    structures = list(map(jax.tree.structure, args))
    places = []
    for part in program.out_tree.children():
        if jax.tree_util.treedef_is_leaf(part):
            places.append(-1)
        elif part in structures:
            places.append(structures.index(part))
        else:
            return None
    return places if _result(places, args) == program.out_tree else None


def _result(places: list[int], args: tuple[Any, ...]) -> Any:
    """The structure of a tuple of arrays and of parts like arguments."""
    return jax.tree.structure(tuple(0 if at < 0 else args[at] for at in places))
