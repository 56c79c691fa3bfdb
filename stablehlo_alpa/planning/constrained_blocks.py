"""Programs as the compiler of their devices reads them best."""

from __future__ import annotations

from dataclasses import replace

import alpa_runtime
from alpa_runtime import SpmdProgram

from stablehlo_alpa.compiler import Module

# Other compilers of XLA order what they run by constraints that ask for nothing.
_CONSTRAINED = {"tpu"}


def with_constrained_blocks(plan: alpa_runtime.Plan, platform: str) -> alpa_runtime.Plan:
    """A plan whose programs XLA's simplifications of whole arrays leave as they are.

    Analyses read programs without such constraints: this is for what is run.

    Args:
        plan: what is run.
        platform: what jax calls the devices.

    Returns:
        the plan with ``alpa-constrain-blocks`` in its programs, where the platform's compiler makes
        better programs of them.
    """
    if platform not in _CONSTRAINED:
        return plan
    return replace(plan, programs=tuple(map(_constrained, plan.programs)))


def _constrained(program: SpmdProgram) -> SpmdProgram:
    if program.is_global:
        return program
    module = Module(program.text, program.name)
    module.run("alpa-constrain-blocks")
    return replace(program, text=module.text())
