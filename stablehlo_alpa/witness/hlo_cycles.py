"""Cycles that XLA's compiler for TPU counts for the kernels of an optimised HLO module."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stablehlo_alpa.witness.hlo_loops import trip_count
from stablehlo_alpa.witness.hlo_text import HloModule, Instruction

_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')


def kernel_cycles(hlo: str) -> float:
    """Cycles of the kernels of one call of a module; 0 where its compiler counts none.

    Each kernel has its estimate, ``estimated_cycles``, by which XLA for TPU orders what it runs.
    What runs beside kernels has none: collectives, and copies to and from the vector memory. Loops
    count by their trip counts, once where these cannot be told; of a conditional the branch that
    takes longest counts.

    Args:
        hlo: text of the module, e.g. of ``jax.stages.Compiled.as_text()``.

    Raises:
        HloError: the text is not understood.
    """
    module = HloModule.parse(hlo)
    return _of(module, module.entry)


def _of(module: HloModule, computation: str) -> float:
    own = module.computations[computation]
    return sum(_executed(module, one, own) for one in own)


def _executed(module: HloModule, one: Instruction, computation: Sequence[Instruction]) -> float:
    if one.opcode == "while":
        turn = sum(_of(module, name) for name in one.computations("body", "condition"))
        return turn * (trip_count(module, one, computation) or 1) if turn else 0.0
    if one.opcode == "conditional":
        names = one.computations("branch_computations", "true_computation", "false_computation")
        return max((_of(module, name) for name in names), default=0.0)
    if one.opcode == "call":
        return sum(_of(module, name) for name in one.computations("to_apply"))
    found = _CYCLES.search(one.rest)
    return float(found.group(1)) if found else 0.0
