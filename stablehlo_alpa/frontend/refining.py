"""Sizes of functions that were exported with symbolic shapes, once they are called with numbers."""

from __future__ import annotations

import io
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr
from jax.extend.mlir import ir, refine_polymorphic_shapes
from jax.interpreters.mlir import make_ir_context

from stablehlo_alpa.frontend.inner_jaxprs import equations


def refined(module: Any, closed: ClosedJaxpr) -> Any:
    """A module in which every size is a number, as what ``jax.jit`` compiles.

    What ``jax.export`` made for symbolic shapes is lowered with dynamic ones, wherever it is called
    from, and with assertions about the symbols, which jax has checked where it was called.

    Args:
        module: in jax's MLIR, with static arguments; it is left as it is.
        closed: what it was lowered from.
    """
    if not any(map(_is_symbolic, equations(closed.jaxpr))):
        return module
    code = io.BytesIO()
    module.operation.write_bytecode(file=code)
    found = refine_polymorphic_shapes(
        mlir_module=code.getvalue(),
        enable_shape_assertions=True,
        validate_static_shapes=True,
        enable_shardy=jax.config.jax_use_shardy_partitioner,  # type: ignore[attr-defined]
    )
    with make_ir_context():
        return ir.Module.parse(found)


def _is_symbolic(equation: Any) -> bool:
    """Whether an equation calls a function that was exported for sizes that are no numbers."""
    exported = equation.params.get("exported")
    return exported is not None and any(
        not isinstance(size, int)
        for aval in (*exported.in_avals, *exported.out_avals)
        for size in aval.shape
    )
