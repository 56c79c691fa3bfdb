"""References of jax (`jax.new_ref`), which a function makes and writes into."""

from __future__ import annotations

from typing import Any

import jax
from jax._src.core import internal_mutable_array_effect
from jax._src.state.discharge import discharge_state

from stablehlo_alpa.errors import TraceError


def without_references(name: str, closed: Any, mend: str) -> Any:
    """A jaxpr with values in place of the references that it makes itself.

    As ``jax.jit`` lowers it.

    Args:
        name: what messages call the function.
        closed: its jaxpr.
        mend: what to do in place of closing over a reference.

    Raises:
        TraceError: it closes over one.
    """
    for const in closed.consts:
        if isinstance(const, jax.Ref):
            raise TraceError(
                f"{name} reads or writes a jax.Ref of type {jax.typeof(const)} that it closes "
                f"over, which a plan cannot do: {mend}"
            )
    if internal_mutable_array_effect not in closed.effects:
        return closed
    found = discharge_state(closed)
    # Those of the function, which names of inputs come from.
    return found.replace(jaxpr=found.jaxpr.replace(debug_info=closed.jaxpr.debug_info))
