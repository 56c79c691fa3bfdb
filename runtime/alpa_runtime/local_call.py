"""A JAX primitive that calls a StableHLO function given as text.

``jax.export`` does the same for serialised portable artifacts, but those refuse CHLO operations and
cost a serialisation; the text is merged into the module being lowered as it is, so collectives keep
their channels and replica groups.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NoReturn

import jax
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func
from jax.interpreters import ad, batching, mlir

from alpa_runtime.callbacks import HostCall, HostCalls
from alpa_runtime.errors import InputError, ProgramError
from alpa_runtime.program import SpmdProgram, TensorType, ValueSpec, numpy_dtype

_CALLBACK = "alpa_callback"
# Calls of the host are neither left out nor moved to another step.
_CALLS_HOST = frozenset({jax.debug.DebugEffect()})


@dataclasses.dataclass(frozen=True)
class LocalModule:
    """A module whose ``main`` has known types.

    Attributes:
        name: what the merged function is called.
        text: the module.
        inputs: types of the arguments of ``main``.
        outputs: types of its results.
        axes: of the mesh whose devices each run it; none when it is the program of whole arrays.
        calls: the functions of the host that it calls.
    """

    name: str
    text: str
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    axes: tuple[str, ...] = ()
    calls: HostCalls | None = None

    @classmethod
    def of(cls, program: SpmdProgram, calls: HostCalls | None = None) -> LocalModule:
        """The module of a program."""

        def types(values: Sequence[ValueSpec]) -> tuple[TensorType, ...]:
            return tuple((program.seen_shape(value), value.dtype) for value in values)

        return cls(
            program.name,
            program.text,
            types(program.inputs),
            types(program.outputs),
            () if program.is_global else tuple(axis for axis, _ in program.mesh),
            calls,
        )

    def __call__(self, *args: jax.Array) -> list[jax.Array]:
        """Calls ``main`` under a trace."""
        return local_call_p.bind(*args, module=self)

    def __repr__(self) -> str:
        # Appears in printed jaxprs, where the text would drown everything else.
        return f"<module {self.name}: {len(self.text)} characters>"


local_call_p = Primitive("alpa_local_call")
local_call_p.multiple_results = True


@local_call_p.def_effectful_abstract_eval
def _abstract_eval(*avals: Any, module: LocalModule) -> tuple[list[Any], frozenset[Any]]:
    found = tuple((tuple(aval.shape), aval.dtype.name) for aval in avals)
    if found != module.inputs:
        raise ProgramError(f"{module.name} takes {module.inputs}, called with {found}")
    effects: frozenset[Any] = _CALLS_HOST if module.calls is not None else frozenset()
    return [_aval(one) for one in module.outputs], effects


def _aval(tensor: TensorType) -> Any:
    shape, dtype = tensor
    return jax.core.ShapedArray(shape, numpy_dtype(dtype))


def _check_type(
    module: LocalModule, kind: str, found: Sequence[Any], expected: Sequence[Any]
) -> None:
    if len(found) != len(expected):
        raise ProgramError(
            f"{module.name}: main has {len(found)} {kind}s, the program declares {len(expected)}"
        )
    for index, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a != b:
            raise ProgramError(f"{module.name}: {kind} {index} of main is {a}, declared {b}")


def _lower(ctx: Any, *args: Any, module: LocalModule) -> list[Any]:
    context = ctx.module_context.module.context
    try:
        parsed = ir.Module.parse(module.text, context)
    except ir.MLIRError as error:
        raise ProgramError(f"{module.name}: the text does not parse: {error}") from error
    symbols = ir.SymbolTable(parsed.operation)
    if "main" not in symbols:
        raise ProgramError(f"{module.name}: the text has no function main")
    main: Any = symbols["main"]
    callee = main.type
    results = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out]
    _check_type(module, "argument", callee.inputs, [arg.type for arg in args])
    _check_type(module, "result", callee.results, results)
    name = mlir.merge_mlir_modules(
        ctx.module_context.module, module.name, parsed, dst_symtab=ctx.module_context.symbol_table
    )
    merged = ctx.module_context.symbol_table[name]
    _link_callbacks(ctx, module, merged)
    return list(func.CallOp(callee.results, ir.FlatSymbolRefAttr.get(name), args).results)


def _link_callbacks(ctx: Any, module: LocalModule, function: Any) -> None:
    """Puts calls of the host where the text says that there are some.

    before: %1 = custom_call @alpa_callback(%0) {has_side_effect = true,
              backend_config = {index = 0, ordered = false}}
    after:  %1 = what `HostCalls.emit` of function 0 is lowered to
    """
    found: list[Any] = []

    def visit(op: Any) -> Any:
        if op.name == "stablehlo.custom_call":
            target = ir.StringAttr(op.attributes["call_target_name"]).value
            if target == _CALLBACK:
                found.append(op)
        return ir.WalkResult.ADVANCE

    function.operation.walk(visit)
    for op in found:
        config = ir.DictAttr(op.attributes["backend_config"])
        number = ir.IntegerAttr(config["index"]).value
        call = HostCall(
            number,
            is_ordered=ir.BoolAttr(config["ordered"]).value,
            is_pure="has_side_effect" not in op.attributes
            or not ir.BoolAttr(op.attributes["has_side_effect"]).value,
        )
        if module.calls is None or number >= len(module.calls.functions):
            raise ProgramError(
                f"{module.name} calls the function {config['name']} of the host, which is not "
                "there: programs that call back run in the process that planned them"
            )
        with ir.InsertionPoint(op), op.location:
            results = _lower_callback(ctx, module, call, list(op.operands))
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()


def _lower_callback(
    ctx: Any, module: LocalModule, call: HostCall, operands: Sequence[Any]
) -> list[Any]:
    calls = module.calls
    assert calls is not None
    token: list[TensorType] = [((), "int32")] if call.is_ordered else []
    avals = [_aval(one) for one in (*token, *calls.functions[call.number].operands)]
    lower = mlir.lower_fun(lambda *args: calls.emit(call, module.axes, args), multiple_results=True)
    return list(lower(ctx.replace(primitive=None, avals_in=avals, avals_out=None), *operands))


mlir.register_lowering(local_call_p, _lower)


def _refuse(what: str, *args: Any, module: LocalModule, **_: Any) -> NoReturn:
    raise InputError(
        f"{module.name} is {what}, but a planned program is what it was planned as: transform the "
        "function that it was made of, and plan the result"
    )


ad.primitive_jvps[local_call_p] = functools.partial(_refuse, "differentiated")
batching.primitive_batchers[local_call_p] = functools.partial(_refuse, "batched by jax.vmap")
