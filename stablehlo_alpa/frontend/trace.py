"""Traces a JAX function to StableHLO text in generic form, with locations."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from alpa_runtime.host_memory import is_on_host, type_of
from alpa_runtime.keys import impl_of, is_key, key_shape
from alpa_runtime.program import HostFunction, numpy_dtype

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.accumulation import with_turns_at_once
from stablehlo_alpa.frontend.batch_arguments import BatchArguments
from stablehlo_alpa.frontend.callbacks import (
    CALLBACKS,
    CallbackExtraction,
    callback_name,
)
from stablehlo_alpa.frontend.collection import paused_collection
from stablehlo_alpa.frontend.function import Argument, Function
from stablehlo_alpa.frontend.host_inputs import with_host_inputs
from stablehlo_alpa.frontend.inner_jaxprs import equations
from stablehlo_alpa.frontend.kernel_calls import Kernel, KernelExtraction
from stablehlo_alpa.frontend.refining import refined
from stablehlo_alpa.frontend.reports import Report, take_reports
from stablehlo_alpa.frontend.rewritten import is_lowerable, lower_rewritten
from stablehlo_alpa.frontend.rules import KernelRule, registered_rules, with_rules
from stablehlo_alpa.frontend.state import Subtree, state_pairs
from stablehlo_alpa.layers.likeness import with_own_names
from stablehlo_alpa.layers.references import without_references
from stablehlo_alpa.layers.scopes import is_backward, is_mark

if TYPE_CHECKING:
    from stablehlo_alpa.frontend.stacks import Stacks

# Shapes of raw keys: threefry's, and those of the other implementations.
_RAW_KEYS = {(2,), (4,)}


@dataclass(frozen=True)
class TracedValue:
    """One flat input or output.

    Attributes:
        name: key path, e.g. ``state.params['Dense_0']['kernel']``.
        shape: shape the module sees; for typed PRNG keys that of the key data.
        dtype: numpy-style dtype name the module sees; "void" of what holds nothing (``float0``,
            the type of gradients of integers), in whose place the module has booleans.
        key_impl: PRNG implementation of typed keys.
        is_weak: whether the type is weak.
        is_on_host: whether it lies in the memory of the host.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    key_impl: str | None = None
    is_weak: bool = False
    is_on_host: bool = False

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
        input_argnum: for every flat input the position of its parameter among all positional ones
            (static ones counted), however it was passed; -1 of a keyword-only one.
        donated: flat inputs that are donated.
        batch: flat inputs that hold a batch, as declared or, where nothing is declared, as they
            seem to.
        declared_batch: those that are declared.
        num_parts: the program is that of one of so many equal parts of every batch.
        has_gradients: whether it has a backward pass.
        marks_gradients: whether that was cut into layers where it was differentiated.
        aliases: flat input -> flat output that is its next-step value.
        callbacks: functions of the host that the text calls, by number.
        reports: functions of the host that are called with outputs, behind those of ``out_tree``.
        kernels: functions that the text calls and whose author says how they are split, by number.
        trip_count_hint: how often loops run of which it is not known; None if nobody says.
        platform: what it is lowered for; empty for the default device of this process.
        stacks: what it was before stacks of layers were put into parts; None if there are none.
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
    declared_batch: frozenset[int] = frozenset()
    num_parts: int = 1
    has_gradients: bool = False
    marks_gradients: bool = False
    callbacks: tuple[HostFunction, ...] = ()
    reports: tuple[Report, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    trip_count_hint: int | None = None
    platform: str = ""
    stacks: Stacks | None = None

    @property
    def of_caller(self) -> TracedProgram:
        """The program with the inputs and outputs of the function."""
        return self if self.stacks is None else self.stacks.whole

    @cached_property
    def state_option(self) -> str:
        """State, what is given away, and the hint, as options of the pipelines of passes."""
        aliases = ",".join(f"{i}:{o}" for i, o in sorted(self.aliases.items()))
        hint = "" if self.trip_count_hint is None else f" trip-count-hint={self.trip_count_hint}"
        return f"aliases={aliases} donated={','.join(map(str, self.donated))}{hint}"

    @cached_property
    def has_void(self) -> bool:
        """Whether some input or output holds nothing."""
        return any(value.dtype == "void" for value in (*self.inputs, *self.outputs))

    def with_booleans(self, flat: Sequence[Any]) -> list[Any]:
        """Flat inputs as the module takes them: booleans in the place of what holds nothing."""
        return [
            np.zeros(value.shape, bool) if value.dtype == "void" else leaf
            for value, leaf in zip(self.inputs, flat, strict=True)
        ]

    def result(self, flat: Sequence[Any]) -> Any:
        """The result of the function of flat outputs of the module."""
        if self.has_void:
            flat = [
                np.zeros(value.shape, jax.dtypes.float0) if value.dtype == "void" else leaf
                for value, leaf in zip(self.outputs, flat, strict=True)
            ]
        return self.unflatten(flat)

    def unflatten(self, flat: Sequence[Any]) -> Any:
        """Something per flat output in the structure of the result, that of reports left out."""
        return self.out_tree.unflatten(flat[: self.out_tree.num_leaves])

    def report(self, flat: Sequence[Any]) -> None:
        """Calls the functions of the host that look at flat outputs of the module.

        Raises:
            jax.errors.JaxRuntimeError: one of them failed; those behind it are not called.
        """
        for one in self.reports:
            one.send(flat, self.name)

    def inputs_of(self, argument: int | str) -> list[int]:
        """Flat inputs of one argument, or of a part of one.

        Args:
            argument: position of its parameter, or its name, as messages spell it
                (``"state.params"``).
        """
        if isinstance(argument, int):
            return [i for i, number in enumerate(self.input_argnum) if number == argument]
        return [
            i
            for i, value in enumerate(self.inputs)
            if value.name == argument
            or (value.name.startswith(argument) and value.name[len(argument)] in ".[")
        ]


def trace(
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    static_argnums: int | Sequence[int] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    batch_argnums: Any = (),
    num_micro_batches: int = 1,
) -> TracedProgram:
    """Traces a function by itself; see `trace_function`.

    Args:
        fun: function of pytrees.
        args: positional arguments: arrays, scalars or ``jax.ShapeDtypeStruct`` in the leaves.
        kwargs: keyword arguments, likewise.
        static_argnums: positions of arguments that are compile-time constants.
        donate_argnums: positions of arguments whose buffers may be overwritten.
        batch_argnums: as in `BatchArguments.of`.
        num_micro_batches: as in `trace_function`.
    """
    function = Function(fun, static_argnums=static_argnums, donate_argnums=donate_argnums)
    return trace_function(
        function,
        args,
        kwargs,
        batches=BatchArguments.of(batch_argnums),
        num_micro_batches=num_micro_batches,
    )


def trace_function(
    function: Function,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    batches: BatchArguments = BatchArguments(),  # noqa: B008
    num_micro_batches: int = 1,
    num_sums: int | None = None,
    rules: Sequence[KernelRule] = (),
    platform: str = "",
    trip_count_hint: int | None = None,
    reports_behind: bool = False,
) -> TracedProgram:
    """Traces a call of a function in the present context of jax.

    Args:
        function: the function.
        args: positional arguments: arrays, scalars or ``jax.ShapeDtypeStruct`` in the leaves.
        kwargs: keyword arguments, likewise.
        batches: arguments that hold a batch; when empty, every argument that is neither state,
            scalar nor PRNG key.
        num_micro_batches: the function is traced for one of so many equal parts of its batches.
        num_sums: parts of the batch whose results will be added up; see `with_turns_at_once`. None
            if loops stay as they are.
        rules: of custom calls, before those that are registered.
        platform: what it is lowered for, ``"cuda"``, ``"tpu"`` or ``"cpu"``; empty for the default
            device of this process.
        trip_count_hint: how often loops run of which it is not known; None if nobody says.
        reports_behind: callbacks without results, outside of gradients, are called when the step is
            done.

    Raises:
        TraceError: an argument is no array, a batch cannot be cut, the function has side effects
            other than callbacks, a dimension is not a number, a custom call does not fit its
            rule, or jax has no lowering for the platform.
    """
    call = _Call(function, *function.abstracted(args, kwargs))
    with paused_collection():
        traced = call.trace()
        if num_micro_batches > 1:
            boundary = _boundary(call, traced, batches)
            call = call.micro_batch(boundary, num_micro_batches)
            traced = call.trace()
        boundary = _boundary(call, traced, batches)
        closed = _closed(function.name, traced, boundary, num_sums)
        taken = _Taken.of(function.name, traced, closed, reports_behind)
        text = call.text(traced, taken, rules, platform)
    return TracedProgram(
        name=function.name,
        text=text,
        inputs=boundary.inputs,
        outputs=(*_outputs(traced), *taken.outputs),
        in_tree=jax.tree.structure(function.dynamic(call.args, call.kwargs)),
        out_tree=jax.tree.structure(traced.out_info),
        input_argnum=boundary.argnums,
        donated=boundary.donated,
        batch=boundary.batch,
        aliases=boundary.aliases,
        declared_batch=boundary.batch if batches.prefixes else frozenset(),
        num_parts=num_micro_batches,
        callbacks=taken.functions,
        reports=taken.reports,
        kernels=taken.kernels,
        trip_count_hint=trip_count_hint,
        platform=platform,
        has_gradients=_has(traced, is_backward),
        marks_gradients=_has(traced, is_mark),
    )


@dataclass(frozen=True)
class _Taken:
    """What a function calls beside the compiler, taken out of it one after the other.

    Attributes:
        closed: what is left of its jaxpr; its results are those of the function, and ``outputs``.
        functions: of the host, by number.
        kernels: by number.
        reports: see `TracedProgram`.
        outputs: what they look at.
        is_other: whether loops became something else.
    """

    closed: Any
    functions: tuple[HostFunction, ...]
    kernels: tuple[Kernel, ...]
    reports: tuple[Report, ...]
    outputs: tuple[TracedValue, ...]
    is_other: bool

    @classmethod
    def of(cls, name: str, traced: jax.stages.Traced, closed: Any, reports_behind: bool) -> _Taken:
        split = KernelExtraction(closed)
        rest, reports = take_reports(split.closed) if reports_behind else (split.closed, ())
        talk = CallbackExtraction(name, rest)
        check_supported(name, talk.closed, effects=talk.effects, allows_shard_map=True)
        names = [f"operand {i} of {one.name}" for one in reports for i in range(len(one.outputs))]
        avals = talk.closed.out_avals[len(traced.jaxpr.out_avals) :]
        outputs = tuple(map(_value, names, avals))
        is_other = closed is not traced.jaxpr
        return cls(talk.closed, talk.functions, split.kernels, reports, outputs, is_other)

    @property
    def is_nothing(self) -> bool:
        """Whether the function is lowered as it is."""
        return not (self.functions or self.kernels or self.reports or self.is_other)


def _has(traced: jax.stages.Traced, is_one: Callable[[Any], bool]) -> bool:
    return any(map(is_one, equations(traced.jaxpr.jaxpr)))


def _outputs(traced: jax.stages.Traced) -> tuple[TracedValue, ...]:
    """The results of a function, named by where they are in its pytree."""
    paths = jax.tree_util.tree_flatten_with_path(traced.out_info)[0]
    return tuple(
        _value("result" + jax.tree_util.keystr(path), aval)
        for (path, _), aval in zip(paths, traced.jaxpr.out_avals, strict=True)
    )


@dataclass(frozen=True)
class _Call:
    """Arguments of a function, types in place of arrays."""

    function: Function
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def trace(self) -> jax.stages.Traced:
        return self.function.trace(self.args, self.kwargs)

    def text(
        self,
        traced: jax.stages.Traced,
        taken: _Taken,
        rules: Sequence[KernelRule],
        platform: str,
    ) -> str:
        known = {**registered_rules(), **{rule.target: rule for rule in rules}}
        try:
            module = self._lowered(traced, taken, platform)
        except NotImplementedError as error:
            where = f" for {platform}" if platform else ""
            raise TraceError(f"jax cannot lower {self.function.name}{where}: {error}") from error
        module = refined(module, traced.jaxpr)
        module = with_host_inputs(module, list(map(is_on_host, traced.jaxpr.in_avals)))
        asm: str = with_rules(module, known).operation.get_asm(
            print_generic_op_form=True, enable_debug_info=True, assume_verified=True
        )
        return with_own_names(asm)

    def _lowered(self, traced: jax.stages.Traced, taken: _Taken, platform: str) -> Any:
        if not taken.is_nothing or not is_lowerable(traced):
            arguments = self.function.arguments(traced, self.args, self.kwargs)
            out_tree = jax.tree.structure(traced.out_info)
            if taken.reports:
                out_tree = jax.tree.structure((traced.out_info, [0] * len(taken.outputs)))
            name = self.function.name
            lowered = lower_rewritten(name, taken.closed, arguments, out_tree, platform)
            return lowered.compiler_ir("stablehlo")
        return self.function.lower(self.args, self.kwargs, platform)

    def micro_batch(self, boundary: _Boundary, count: int) -> _Call:
        """The call with one of ``count`` equal parts of every batch."""
        by_name: dict[str, Any] = {value.name: i for i, value in enumerate(boundary.inputs)}

        def part(name: str, argument: Any) -> Any:
            def one(path: Any, leaf: Any) -> Any:
                whole = name + jax.tree_util.keystr(path)
                if by_name[whole] not in boundary.batch:
                    return leaf
                return _micro_batch(self.function.name, whole, leaf, count)

            return jax.tree_util.tree_map_with_path(one, argument)

        return _Call(self.function, *self.function.each(part, self.args, self.kwargs))


@dataclass(frozen=True)
class _Boundary:
    """What is known of the flat inputs; see `TracedProgram`."""

    inputs: tuple[TracedValue, ...]
    argnums: tuple[int, ...]
    donated: tuple[int, ...]
    batch: frozenset[int]
    aliases: Mapping[int, int]


def _boundary(call: _Call, traced: jax.stages.Traced, batches: BatchArguments) -> _Boundary:
    avals = traced.jaxpr.in_avals
    arguments = call.function.arguments(traced, call.args, call.kwargs)
    names = [
        argument.name + jax.tree_util.keystr(path)
        for argument in arguments
        for path, _ in jax.tree_util.tree_leaves_with_path(argument.value)
    ]
    argnums = tuple(argument.number for argument in arguments for _ in range(argument.size))
    declared, batch = batches.find(call.function, arguments)
    aliases = _aliases(arguments, avals, traced, declared)
    if not batches.prefixes:
        batch = _batch(avals, arguments, aliases)
    return _Boundary(
        inputs=tuple(_value(name, aval) for name, aval in zip(names, avals, strict=True)),
        argnums=argnums,
        donated=tuple(
            one.start + i for one in arguments for i, given in enumerate(one.donated) if given
        ),
        batch=batch,
        aliases=aliases,
    )


def _closed(name: str, traced: Any, boundary: _Boundary, num_sums: int | None) -> Any:
    """The jaxpr that is lowered; see `without_references` and `with_turns_at_once`."""
    mend = "pass ref[...] as an argument, and return its new value"
    closed = without_references(name, traced.jaxpr, mend)
    if num_sums is None:
        return closed
    names = [value.name.partition("[")[0].partition(".")[0] for value in boundary.inputs]
    return with_turns_at_once(name, closed, num_sums, boundary.batch, names)


def _micro_batch(name: str, value: str, leaf: Any, count: int) -> jax.ShapeDtypeStruct:
    if not leaf.shape or leaf.shape[0] % count:
        size = leaf.shape[0] if leaf.shape else "no dimension"
        raise TraceError(
            f"batch {value} of {name} has {size} on dimension 0, which does not divide into "
            f"{count} micro-batches; batch_argnums= says which arguments are batches"
        )
    return type_of(leaf, (leaf.shape[0] // count, *leaf.shape[1:]))


def _value(name: str, aval: Any) -> TracedValue:
    weak = bool(getattr(aval, "weak_type", False))
    impl, on_host = impl_of(aval), is_on_host(aval)
    if impl is None:
        return TracedValue(name, tuple(aval.shape), aval.dtype.name, None, weak, on_host)
    shape = (*aval.shape, *key_shape(impl))
    return TracedValue(name, shape, "uint32", impl, False, on_host)


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
                "program cannot do here; take the call out of the function, or switch it off where "
                "a library makes it (EQX_ON_ERROR=nan for checks of equinox)"
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


def _subtree(start: int, leaves: Sequence[Any], structure: Any) -> Subtree:
    types = tuple((tuple(leaf.shape), leaf.dtype) for leaf in leaves)
    return Subtree(start, structure, types, jax.tree_util.treedef_is_leaf(structure))


def _children(tree: Any) -> list[Any]:
    """The top-level parts of a pytree; the tree itself when it is a leaf."""
    parts, _ = jax.tree.flatten(tree, is_leaf=lambda node: node is not tree)
    return parts


def _subtrees(parts: Sequence[Any]) -> list[Subtree]:
    found, start = [], 0
    for part in parts:
        found.append(_subtree(start, *jax.tree.flatten(part)))
        start += len(found[-1].types)
    return found


def _aliases(
    arguments: Sequence[Argument],
    avals: Sequence[Any],
    traced: jax.stages.Traced,
    batches: Sequence[Argument],
) -> dict[int, int]:
    # In the order of the parameters, so that it does not matter which are passed by keyword.
    ordered = sorted(arguments, key=lambda one: (one.number < 0, one.number))
    subtrees = []
    for one in ordered:
        own = avals[one.start : one.start + one.size]
        subtrees.append(_subtree(one.start, own, jax.tree.structure(one.value)))
    donated = [i for i, one in enumerate(ordered) if any(one.donated)]
    outputs = [_subtree(0, *jax.tree.flatten(traced.out_info))]
    if not outputs[0].is_array:
        outputs += _subtrees(_children(traced.out_info))
    return state_pairs(
        subtrees, outputs, donated, [i for i, one in enumerate(ordered) if one in batches]
    )


def _batch(
    avals: Sequence[Any], arguments: Sequence[Argument], aliases: Mapping[int, int]
) -> frozenset[int]:
    found: set[int] = set()
    for argument in arguments:
        leaves = range(argument.start, argument.start + argument.size)
        # An argument of which a part is state is no batch.
        if not any(i in aliases for i in leaves):
            found.update(i for i in leaves if avals[i].shape and not _is_key(avals[i]))
    return frozenset(found)


def _is_key(leaf: Any) -> bool:
    """Whether a leaf is a PRNG key, typed or raw (``jax.random.PRNGKey``)."""
    if is_key(leaf):
        return True
    return leaf.dtype == np.uint32 and tuple(leaf.shape) in _RAW_KEYS
