"""Inputs that lie in the memory of the host, as the module says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alpa_runtime.host_memory import HOST
from jax.extend.mlir import ir

_MEMORY_KIND = "mhlo.memory_kind"


def with_host_inputs(module: Any, on_host: Sequence[bool]) -> Any:
    """Writes at arguments of ``main`` where they lie, as jax does if they are on devices.

    Args:
        module: in jax's MLIR; it is changed.
        on_host: per argument whether it lies on the host.
    """
    if not any(on_host):
        return module
    with module.context:
        main = next(op for op in module.body.operations if _is_main(op))
        kind = ir.StringAttr.get(HOST)
        entries = []
        for own, is_there in zip(_attributes(main, len(on_host)), on_host, strict=True):
            entries.append(ir.DictAttr.get({**own, _MEMORY_KIND: kind} if is_there else own))
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
    return module


def _is_main(op: Any) -> bool:
    return "sym_name" in op.attributes and bool(op.attributes["sym_name"].value == "main")


def _attributes(function: Any, count: int) -> list[dict[str, Any]]:
    if "arg_attrs" not in function.attributes:
        return [{} for _ in range(count)]
    return [{one.name: one.attr for one in own} for own in function.attributes["arg_attrs"]]
