"""Traces a JAX function to StableHLO text in generic form, with locations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from alpa_runtime.host_memory import is_on_host, type_of
from alpa_runtime.program import HostFunction
from jax.extend.core import jaxprs_in_params

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend.accumulation import with_turns_at_once
from stablehlo_alpa.frontend.batch_arguments import BatchArguments
from stablehlo_alpa.frontend.boundary import Boundary
from stablehlo_alpa.frontend.callbacks import (
    CALLBACKS,
    CallbackExtraction,
    callback_name,
)
from stablehlo_alpa.frontend.checks import take_checks
from stablehlo_alpa.frontend.collection import paused_collection
from stablehlo_alpa.frontend.function import Function
from stablehlo_alpa.frontend.host_inputs import with_host_inputs
from stablehlo_alpa.frontend.inner_jaxprs import equations, inner_equations
from stablehlo_alpa.frontend.kernel_calls import Kernel, KernelExtraction
from stablehlo_alpa.frontend.opened_primitives import check_calls, with_calls_seen
from stablehlo_alpa.frontend.refining import refined
from stablehlo_alpa.frontend.reports import Report, take_reports
from stablehlo_alpa.frontend.rewritten import is_lowerable, lower_rewritten
from stablehlo_alpa.frontend.rules import KernelRule, registered_rules, with_rules
from stablehlo_alpa.frontend.traced_program import TracedProgram, TracedValue
from stablehlo_alpa.layers.differentiated import cut_differentiated
from stablehlo_alpa.layers.grad import layer_context
from stablehlo_alpa.layers.likeness import with_own_names
from stablehlo_alpa.layers.options import LayerOption
from stablehlo_alpa.layers.references import without_references
from stablehlo_alpa.layers.scopes import is_backward, is_inside_loss, is_mark

# What to do in place of an effect, by the primitive that has it.
_MENDS = {
    "inspect_sharding": "the plan has the shardings: plan.explain(operator), plan.output_shardings",
    "check": "parallelize what checkify.checkify makes of the function",
}


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
        reports_behind: checks, and callbacks without results outside of gradients, are called when
            the step is done.

    Raises:
        TraceError: an argument is no array, a batch cannot be cut, the function has side effects
            other than callbacks, a dimension is not a number, a custom call does not fit its
            rule, or jax has no lowering for the platform.
    """
    call = _Call(function, *function.abstracted(args, kwargs))
    with paused_collection():
        traced = call.trace()
        if num_micro_batches > 1:
            boundary = call.boundary(traced, batches)
            call = call.micro_batch(boundary, num_micro_batches)
            traced = call.trace()
        boundary = call.boundary(traced, batches)
        closed, checks = _checked(traced.jaxpr, reports_behind)
        closed = _in_layers(_closed(function.name, closed, boundary, num_sums))
        taken = _Taken.of(function.name, traced, closed, checks, reports_behind)
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
    def of(
        cls,
        name: str,
        traced: jax.stages.Traced,
        closed: Any,
        checks: Sequence[Report],
        reports_behind: bool,
    ) -> _Taken:
        split = KernelExtraction(closed)
        rest, reports = take_reports(split.closed) if reports_behind else (split.closed, ())
        reports = (*checks, *reports)
        talk = CallbackExtraction(name, rest)
        check_supported(name, talk.closed, effects=talk.effects, allows_shard_map=True)
        names = [f"operand {i} of {one.name}" for one in reports for i in range(len(one.outputs))]
        avals = talk.closed.out_avals[len(traced.jaxpr.out_avals) :]
        outputs = tuple(map(TracedValue.of, names, avals))
        is_other = closed is not traced.jaxpr
        return cls(talk.closed, talk.functions, split.kernels, reports, outputs, is_other)

    @property
    def is_nothing(self) -> bool:
        """Whether the function is lowered as it is."""
        return not (self.functions or self.kernels or self.reports or self.is_other)


def _has(traced: jax.stages.Traced, is_one: Callable[[Any], bool]) -> bool:
    return any(map(is_one, equations(traced.jaxpr.jaxpr)))


def _marks_inside(equation: Any) -> bool:
    """Whether gradients that are taken inside of a loss are marked as those of the step."""
    if not is_inside_loss(equation):
        return False
    return is_mark(equation) or any(map(is_mark, inner_equations(equation)))


def _outputs(traced: jax.stages.Traced) -> tuple[TracedValue, ...]:
    """The results of a function, named by where they are in its pytree."""
    paths = jax.tree_util.tree_flatten_with_path(traced.out_info)[0]
    return tuple(
        TracedValue.of("result" + jax.tree_util.keystr(path), aval)
        for (path, _), aval in zip(paths, traced.jaxpr.out_avals, strict=True)
    )


@dataclass(frozen=True)
class _Call:
    """Arguments of a function, types in place of arrays."""

    function: Function
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def trace(self) -> jax.stages.Traced:
        traced = self.function.trace(self.args, self.kwargs)
        if isinstance(layer_context.value, LayerOption) and _has(traced, _marks_inside):
            # Gradients of ours inside of those that jax takes are no place where micro-batches end.
            with layer_context(None):
                return self.function.trace(self.args, self.kwargs)
        return traced

    def boundary(self, traced: jax.stages.Traced, batches: BatchArguments) -> Boundary:
        arguments = self.function.arguments(traced, self.args, self.kwargs)
        return Boundary.of(self.function, arguments, traced, batches)

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
        check_calls(self.function.name, asm)
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

    def micro_batch(self, boundary: Boundary, count: int) -> _Call:
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


def _checked(closed: Any, reports_behind: bool) -> tuple[Any, tuple[Report, ...]]:
    """A jaxpr whose calls of the host are seen, and its checks where these are behind the step."""
    closed = with_calls_seen(closed)
    return take_checks(closed) if reports_behind else (closed, ())


def _closed(name: str, closed: Any, boundary: Boundary, num_sums: int | None) -> Any:
    """The jaxpr that is lowered; see `without_references` and `with_turns_at_once`."""
    mend = "pass ref[...] as an argument, and return its new value"
    closed = without_references(name, closed, mend)
    if num_sums is None:
        return closed
    names = [value.name.partition("[")[0].partition(".")[0] for value in boundary.inputs]
    return with_turns_at_once(name, closed, num_sums, boundary.batch, names)


def _in_layers(closed: Any) -> Any:
    """A step whose gradients jax has taken, in the layers that are asked for; others are kept."""
    option = layer_context.value
    if not isinstance(option, LayerOption) or any(map(is_mark, equations(closed.jaxpr))):
        return closed
    return cut_differentiated(option, closed) or closed


def _micro_batch(name: str, value: str, leaf: Any, count: int) -> jax.ShapeDtypeStruct:
    if not leaf.shape or leaf.shape[0] % count:
        size = leaf.shape[0] if leaf.shape else "no dimension"
        raise TraceError(
            f"batch {value} of {name} has {size} on dimension 0, which does not divide into "
            f"{count} micro-batches; batch_argnums= says which arguments are batches"
        )
    return type_of(leaf, (leaf.shape[0] // count, *leaf.shape[1:]))


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
    effects = frozenset(closed.effects if effects is None else effects)
    if effects:
        found = ", ".join(sorted(str(effect) for effect in effects))
        makers = (one for one in equations(closed.jaxpr) if not effects.isdisjoint(one.effects))
        inner = [one for one in makers if not any(True for _ in jaxprs_in_params(one.params))]
        maker = inner[0].primitive.name if inner else "unknown"
        mend = _MENDS.get(maker, "return what it is about from the function")
        raise TraceError(
            f"{name} has side effects ({maker}: {found}), a planned program cannot have any; {mend}"
        )
