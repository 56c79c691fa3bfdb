"""Traces a JAX function to StableHLO text in generic form, with locations."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import numpy as np
from alpa_runtime.inputs import aval_of
from alpa_runtime.keys import impl_of, is_key, key_shape
from alpa_runtime.program import HostFunction, numpy_dtype

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.callbacks import (
    CALLBACKS,
    CallbackExtraction,
    callback_name,
    equations,
)
from stablehlo_alpa.frontend.collection import paused_collection
from stablehlo_alpa.frontend.state import Subtree, state_pairs

# Shapes of raw keys: threefry's, and those of the other implementations.
_RAW_KEYS = {(2,), (4,)}


@dataclass(frozen=True)
class TracedValue:
    """One flat input or output.

    Attributes:
        name: key path, e.g. ``state.params['Dense_0']['kernel']``.
        shape: shape the module sees; for typed PRNG keys that of the key data.
        dtype: numpy-style dtype name the module sees.
        key_impl: PRNG implementation of typed keys.
        is_weak: whether the type is weak.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    key_impl: str | None = None
    is_weak: bool = False

    @property
    def num_bytes(self) -> int:
        """Bytes of the whole value."""
        return math.prod(self.shape) * numpy_dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class TracedProgram:
    """A traced function.

    Attributes:
        name: name of the function.
        text: StableHLO module in generic form with locations; arguments and results of ``main``
            are the flat inputs and outputs, one to one.
        inputs, outputs: flat values.
        in_tree: structure of ``(args, kwargs)`` without the static arguments.
        out_tree: structure of the result.
        input_argnum: for every flat input the position of its argument among all positional
            arguments (static ones counted), -1 when it came by keyword.
        donated: flat inputs that are donated.
        batch: flat inputs that hold a batch.
        aliases: flat input -> flat output that is its next-step value.
        callbacks: functions of the host that the text calls, by number.
    """

    name: str
    text: str = field(repr=False)
    inputs: tuple[TracedValue, ...]
    outputs: tuple[TracedValue, ...]
    in_tree: Any
    out_tree: Any
    input_argnum: tuple[int, ...]
    donated: tuple[int, ...]
    batch: frozenset[int]
    aliases: Mapping[int, int]
    callbacks: tuple[HostFunction, ...] = ()

    @cached_property
    def alias_option(self) -> str:
        """The state pairs as a pass option, ``in:out,in:out``."""
        return ",".join(f"{i}:{o}" for i, o in sorted(self.aliases.items()))


def abstract(leaf: Any) -> jax.ShapeDtypeStruct:
    """Shape, dtype and weak type of an array-like or of a ``ShapeDtypeStruct``."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        weak = bool(getattr(leaf, "weak_type", False))
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=weak)
    aval = aval_of(leaf)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def trace(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    donate_argnums: Sequence[int] = (),
    batch_argnums: Sequence[int] = (),
    num_micro_batches: int = 1,
) -> TracedProgram:
    """Traces ``fun``.

    Args:
        fun: function of pytrees.
        args: positional arguments: arrays, scalars or ``jax.ShapeDtypeStruct`` in the leaves.
        kwargs: keyword arguments, likewise.
        static_argnums: positions of arguments that are compile-time constants.
        donate_argnums: positions of arguments whose buffers may be overwritten.
        batch_argnums: positions of arguments that hold a batch; when empty, every argument that is
            neither state, scalar nor PRNG key.
        num_micro_batches: the function is traced for one of so many equal parts of its batches.

    Raises:
        TraceError: a batch cannot be cut, the function has no array arguments, has side effects
            other than callbacks, or a dimension is not a number.
    """
    name = getattr(fun, "__name__", type(fun).__name__)
    static = set(static_argnums)
    dynamic = tuple(arg for i, arg in enumerate(args) if i not in static)
    try:
        avals, avals_kwargs = jax.tree.map(abstract, (tuple(dynamic), dict(kwargs)))
    except TypeError as error:
        raise TraceError(f"argument of {name} is no array: {error}") from error
    remaining = iter(avals)
    call_args = [arg if i in static else next(remaining) for i, arg in enumerate(args)]
    in_tree = jax.tree.structure((avals, avals_kwargs))
    paths = jax.tree_util.tree_flatten_with_path((avals, avals_kwargs))[0]
    names, argnums = _input_names(fun, paths, [i for i in range(len(args)) if i not in static])
    flat = [leaf for _, leaf in paths]
    if not flat:
        raise TraceError(f"{name} has no array arguments, nothing can be sharded")
    for value, leaf in zip(names, flat, strict=True):
        _check_static_shape(name, value, leaf.shape)

    if num_micro_batches > 1:
        whole = jax.eval_shape(lambda *a, **k: fun(*a, **k), *call_args, **avals_kwargs)
        aliases = _aliases(avals, whole, static, args, donate_argnums, batch_argnums)
        batch = _batch(flat, argnums, aliases, batch_argnums)
        flat = [
            _micro_batch(name, value, leaf, num_micro_batches) if i in batch else leaf
            for i, (value, leaf) in enumerate(zip(names, flat, strict=True))
        ]
        avals, avals_kwargs = jax.tree.unflatten(in_tree, flat)
        remaining = iter(avals)
        call_args = [arg if i in static else next(remaining) for i, arg in enumerate(args)]
    with paused_collection():
        traced = jax.jit(fun, static_argnums=tuple(sorted(static)), keep_unused=True).trace(
            *call_args, **avals_kwargs
        )
        talk = CallbackExtraction(name, traced.jaxpr)
        check_supported(name, talk.closed, effects=talk.effects, allows_shard_map=True)
        module = (talk.lower(flat) if talk.functions else traced.lower()).compiler_ir("stablehlo")
    out_paths = jax.tree_util.tree_flatten_with_path(traced.out_info)[0]
    out_tree = jax.tree.structure(traced.out_info)
    out_avals = list(traced.jaxpr.out_avals)
    donated = {i for i, argnum in enumerate(argnums) if argnum in set(donate_argnums)}
    aliases = _aliases(avals, traced.out_info, static, args, donate_argnums, batch_argnums)
    program = TracedProgram(
        name=name,
        text=module.operation.get_asm(
            print_generic_op_form=True, enable_debug_info=True, assume_verified=True
        ),
        inputs=tuple(_value(n, leaf) for n, leaf in zip(names, flat, strict=True)),
        outputs=tuple(
            _value("result" + jax.tree_util.keystr(path), aval)
            for (path, _), aval in zip(out_paths, out_avals, strict=True)
        ),
        in_tree=in_tree,
        out_tree=out_tree,
        input_argnum=argnums,
        donated=tuple(sorted(donated)),
        batch=_batch(flat, argnums, aliases, batch_argnums),
        aliases=aliases,
        callbacks=talk.functions,
    )
    return program


def _input_names(
    fun: Callable[..., Any], paths: Sequence[Any], dynamic: Sequence[int]
) -> tuple[list[str], tuple[int, ...]]:
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names, argnums = [], []
    for path, _ in paths:
        (which, key, *rest) = path
        if which.idx == 1:
            names.append(key.key + jax.tree_util.keystr(tuple(rest)))
            argnums.append(-1)
            continue
        argnum = dynamic[key.idx]
        parameter = parameters[min(argnum, len(parameters) - 1)] if parameters else None
        if parameter is None:
            base = f"arg{argnum}"
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            base = f"{parameter.name}[{argnum - len(parameters) + 1}]"
        else:
            base = parameter.name
        names.append(base + jax.tree_util.keystr(tuple(rest)))
        argnums.append(argnum)
    return names, tuple(argnums)


def _check_static_shape(name: str, value: str, shape: Sequence[Any]) -> None:
    for dimension, size in enumerate(shape):
        if not isinstance(size, int):
            raise TraceError(
                f"dimension {dimension} of argument {value} of {name} is {size}, dynamic shapes "
                "cannot be planned: every dimension must be a number"
            )


def _micro_batch(name: str, value: str, leaf: Any, count: int) -> jax.ShapeDtypeStruct:
    if not leaf.shape or leaf.shape[0] % count:
        size = leaf.shape[0] if leaf.shape else "no dimension"
        raise TraceError(
            f"batch {value} of {name} has {size} on dimension 0, which does not divide into "
            f"{count} micro-batches; batch_argnums= says which arguments are batches"
        )
    shape = (leaf.shape[0] // count, *leaf.shape[1:])
    return jax.ShapeDtypeStruct(shape, leaf.dtype, weak_type=bool(leaf.weak_type))


def _value(name: str, aval: Any) -> TracedValue:
    weak = bool(getattr(aval, "weak_type", False))
    impl = impl_of(aval)
    if impl is None:
        return TracedValue(name, tuple(aval.shape), aval.dtype.name, None, weak)
    shape = (*aval.shape, *key_shape(impl))
    return TracedValue(name, shape, "uint32", impl, False)


def check_supported(
    name: str,
    closed: Any,
    effects: Collection[Any] | None = None,
    *,
    allows_shard_map: bool = False,
) -> None:
    """Refuses what no planned program can do, as a `TraceError`.

    Args:
        name: of the function.
        closed: its jaxpr.
        effects: those that it may not have; all when None.
        allows_shard_map: whether parts of it may be split by hand.
    """
    for equation in equations(closed.jaxpr):
        primitive = equation.primitive.name
        if primitive in CALLBACKS:
            raise TraceError(
                f"{name} calls back into Python ({callback_name(equation)}), which a planned "
                "program cannot do here; take the call out of the function"
            )
        if primitive == "shard_map" and not allows_shard_map:
            raise TraceError(
                f"{name} contains a shard_map: it is sharded by hand already and cannot be "
                "planned; pass the function that shard_map was applied to"
            )
    effects = closed.effects if effects is None else effects
    if effects:
        found = ", ".join(sorted(str(effect) for effect in effects))
        raise TraceError(f"{name} has side effects ({found}), a planned program cannot have any")


def _subtree(start: int, tree: Any) -> Subtree:
    leaves, structure = jax.tree.flatten(tree)
    types = tuple((tuple(leaf.shape), leaf.dtype) for leaf in leaves)
    return Subtree(start, structure, types, jax.tree_util.treedef_is_leaf(structure))


def _children(tree: Any) -> list[Any]:
    """The top-level parts of a pytree; the tree itself when it is a leaf."""
    parts, _ = jax.tree.flatten(tree, is_leaf=lambda node: node is not tree)
    return parts


def _subtrees(parts: Sequence[Any]) -> list[Subtree]:
    found, start = [], 0
    for part in parts:
        found.append(_subtree(start, part))
        start += len(found[-1].types)
    return found


def _aliases(
    avals: Sequence[Any],
    out_info: Any,
    static: set[int],
    args: Sequence[Any],
    donate_argnums: Sequence[int],
    batch_argnums: Sequence[int],
) -> dict[int, int]:
    dynamic = [i for i in range(len(args)) if i not in static]
    outputs = [_subtree(0, out_info)]
    if not outputs[0].is_array:
        outputs += _subtrees(_children(out_info))
    return state_pairs(
        _subtrees(avals),
        outputs,
        [dynamic.index(i) for i in donate_argnums],
        [dynamic.index(i) for i in batch_argnums],
    )


def _batch(
    flat: Sequence[Any],
    argnums: Sequence[int],
    aliases: Mapping[int, int],
    batch_argnums: Sequence[int],
) -> frozenset[int]:
    if batch_argnums:
        return frozenset(i for i, argnum in enumerate(argnums) if argnum in set(batch_argnums))
    # An argument of which a part is state is no batch.
    state = {argnums[i] for i in aliases if argnums[i] >= 0}
    return frozenset(
        i
        for i, leaf in enumerate(flat)
        if i not in aliases and argnums[i] not in state and leaf.shape and not _is_key(leaf)
    )


def _is_key(leaf: Any) -> bool:
    """Whether a leaf is a PRNG key, typed or raw (``jax.random.PRNGKey``)."""
    if is_key(leaf):
        return True
    return leaf.dtype == np.uint32 and tuple(leaf.shape) in _RAW_KEYS
