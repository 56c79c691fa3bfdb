"""From a step to the modules of its stages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stablehlo_alpa.compiler import run_passes, submodules
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import TracedProgram

_LAYER = re.compile(r"alpa\.layer = (\d+)")


@dataclass(frozen=True)
class LayeredStep:
    """A step with layers and phases.

    Attributes:
        name: of the step.
        text: its module.
        remarks: what the compiler wants known.
    """

    name: str
    text: str
    remarks: tuple[str, ...] = ()

    @property
    def num_layers(self) -> int:
        """Layers."""
        return 1 + max((int(number) for number in _LAYER.findall(self.text)), default=0)

    def slice(self, stage_of_layer: tuple[int, ...]) -> Mapping[str, str]:
        """The modules of the stages, ``"stage_0"`` first."""
        stages = ",".join(str(stage) for stage in stage_of_layer)
        slicing = f"builtin.module(alpa-slice-stages{{stages={stages}}})"
        return submodules(run_passes(self.text, slicing, self.name)[0])


def mark_layers(
    program: TracedProgram, num_micro_batches: int, reduction: str = "mean"
) -> LayeredStep:
    """The step with layers and phases.

    Args:
        program: the step.
        num_micro_batches: of it.
        reduction: how results of independent micro-batches are joined: ``"mean"``, ``"sum"`` or
            the name of the result that is their weight.

    Raises:
        CompileError: the step cannot be cut so.
        TraceError: no result has the name.
    """
    is_part = program.num_parts > 1
    indices = program.batch if is_part else program.declared_batch
    batch = ",".join(str(index) for index in sorted(indices))
    independent = f" independent={_joining(program, reduction)}" if is_part else ""
    marking = (
        f"alpa-layers-pipeline{{{program.state_option} batch={batch} "
        f"micro-batches={num_micro_batches}{independent}}}"
    )
    text, remarks = run_passes(program.text, f"builtin.module({marking})", program.name)
    return LayeredStep(program.name, text, tuple(remarks))


def _joining(program: TracedProgram, reduction: str) -> str:
    """As the compiler takes it."""
    if reduction in ("mean", "sum"):
        return reduction
    names = [value.name for value in program.outputs]
    if reduction not in names:
        raise TraceError(
            f'reduction is {reduction!r}, must be "mean", "sum" or the name of the result of '
            f"{program.name} that is the weight of a micro-batch: "
            + ", ".join(names[:8])
            + (", ..." if len(names) > 8 else "")
        )
    return str(names.index(reduction))
