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

from alpa_runtime.errors import InputError, ProgramError
from alpa_runtime.program import SpmdProgram, ValueSpec, numpy_dtype

TensorType = tuple[tuple[int, ...], str]
"""Shape and dtype name of a tensor."""


@dataclasses.dataclass(frozen=True)
class LocalModule:
    """A module whose ``main`` has known types.

    Attributes:
        name: what the merged function is called.
        text: the module.
        inputs: types of the arguments of ``main``.
        outputs: types of its results.
    """

    name: str
    text: str
    inputs: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]

    @classmethod
    def of(cls, program: SpmdProgram) -> LocalModule:
        """The module of a program."""

        def types(values: Sequence[ValueSpec]) -> tuple[TensorType, ...]:
            return tuple((program.seen_shape(value), value.dtype) for value in values)

        return cls(program.name, program.text, types(program.inputs), types(program.outputs))

    def __call__(self, *args: jax.Array) -> list[jax.Array]:
        """Calls ``main`` under a trace."""
        return local_call_p.bind(*args, module=self)

    def __repr__(self) -> str:
        # Appears in printed jaxprs, where the text would drown everything else.
        return f"<module {self.name}: {len(self.text)} characters>"


local_call_p = Primitive("alpa_local_call")
local_call_p.multiple_results = True


@local_call_p.def_abstract_eval
def _abstract_eval(*avals: Any, module: LocalModule) -> list[Any]:
    found = tuple((tuple(aval.shape), aval.dtype.name) for aval in avals)
    if found != module.inputs:
        raise ProgramError(f"{module.name} takes {module.inputs}, called with {found}")
    return [jax.core.ShapedArray(shape, numpy_dtype(dtype)) for shape, dtype in module.outputs]


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
    return list(func.CallOp(callee.results, ir.FlatSymbolRefAttr.get(name), args).results)


mlir.register_lowering(local_call_p, _lower)


def _refuse(what: str, *args: Any, module: LocalModule, **_: Any) -> NoReturn:
    raise InputError(
        f"{module.name} is {what}, but a planned program is what it was planned as: transform the "
        "function that it was made of, and plan the result"
    )


ad.primitive_jvps[local_call_p] = functools.partial(_refuse, "differentiated")
batching.primitive_batchers[local_call_p] = functools.partial(_refuse, "batched by jax.vmap")
