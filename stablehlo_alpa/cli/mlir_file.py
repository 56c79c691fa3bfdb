"""StableHLO modules from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.mlir import ir

from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import TracedProgram, TracedValue


def read_program(path: Path) -> TracedProgram:
    """Reads a StableHLO module as a program of flat inputs and outputs.

    Raises:
        TraceError: the file is no text, does not parse, or has no function ``main`` of static
            tensors.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TraceError(f"{path} is no text, must be a module of StableHLO: {error}") from error
    # Every dialect that JAX emits is registered in the context of what it lowers.
    lowered: Any = jax.jit(lambda: 0).lower().compiler_ir("stablehlo")
    with lowered.context as context:
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(content)
        except ir.MLIRError as error:
            raise TraceError(f"{path} does not parse: {error}") from error
        main = [op for op in module.body.operations if _symbol(op) == "main"]
        if not main:
            raise TraceError(f"{path} has no function main")
        kind = ir.FunctionType(ir.TypeAttr(main[0].operation.attributes["function_type"]).value)
        inputs = [_value(path, f"arg{i}", type_) for i, type_ in enumerate(kind.inputs)]
        outputs = [_value(path, f"result{i}", type_) for i, type_ in enumerate(kind.results)]
        if not inputs:
            raise TraceError(f"{path}: main has no arguments, nothing can be sharded")
        text = str(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True))
    return TracedProgram(
        name=path.stem,
        text=text,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        in_tree=jax.tree.structure((tuple(range(len(inputs))), {})),
        out_tree=jax.tree.structure(tuple(range(len(outputs)))),
        input_argnum=tuple(range(len(inputs))),
        donated=(),
        batch=frozenset(i for i, value in enumerate(inputs) if value.shape),
        aliases={},
    )


def _symbol(op: Any) -> str | None:
    attributes = op.operation.attributes
    return str(attributes["sym_name"]).strip('"') if "sym_name" in attributes else None


def _value(path: Path, name: str, type_: Any) -> TracedValue:
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        raise TraceError(f"{path}: {name} of main is {type_}, it must be a tensor of static shape")
    aval = jax.ShapeDtypeStruct(tuple(type_.shape), _dtype(path, name, type_.element_type))
    return TracedValue(name, aval.shape, aval.dtype.name)


def _dtype(path: Path, name: str, element: Any) -> Any:
    spelled = str(element)
    for prefix, family in (("bf", "bfloat"), ("f", "float"), ("ui", "uint"), ("i", "int")):
        bits = spelled.removeprefix(prefix)
        if spelled.startswith(prefix) and bits.isdigit():
            return jnp.dtype("bool" if spelled == "i1" else family + bits)
    raise TraceError(f"{path}: {name} of main has element type {spelled}, which has no numpy dtype")
