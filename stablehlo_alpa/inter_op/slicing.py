"""From a step to the modules of its stages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stablehlo_alpa.compiler import Module
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import TracedProgram

_LAYER = re.compile(r"alpa\.layer = (\d+)")


@dataclass(frozen=True)
class Padding:
    """What sizes of products may be padded to.

    Attributes:
        multiple: padded sizes are multiples of it.
        most_added: what may be added to a size, as a part of it.
    """

    multiple: int
    most_added: float

    def __str__(self) -> str:
        return f"pad-to={self.multiple} most-added={self.most_added}"


@dataclass(frozen=True, eq=False)
class LayeredStep:
    """A step with layers and phases.

    Attributes:
        name: of the step.
        num_layers: layers.
        remarks: what the compiler wants known.
    """

    name: str
    num_layers: int
    remarks: tuple[str, ...]
    _module: Module = field(repr=False)

    @classmethod
    def of(cls, module: Module, remarks: Sequence[str] = ()) -> LayeredStep:
        """That of a module whose operators have layers and phases."""
        layers = map(int, _LAYER.findall(module.text(locations=False)))
        return cls(module.name, 1 + max(layers, default=0), tuple(remarks), module)

    def padded_by(self, padding: Padding) -> tuple[str, ...]:
        """What would be padded."""
        option = f"multiple={padding.multiple} most-added={padding.most_added}"
        return tuple(self._module.clone().run(f"alpa-pad-dimensions{{{option}}}"))

    def slice(self, stage_of_layer: tuple[int, ...]) -> Mapping[str, Module]:
        """The modules of the stages, ``"stage_0"`` first."""
        sliced = self._module.clone()
        sliced.run(f"alpa-slice-stages{{stages={','.join(map(str, stage_of_layer))}}}")
        return sliced.submodules()


def mark_layers(
    program: TracedProgram,
    num_micro_batches: int,
    reduction: str = "mean",
    padding: Padding | None = None,
) -> LayeredStep:
    """The step with layers and phases.

    Args:
        program: the step.
        num_micro_batches: of it.
        reduction: how results of independent micro-batches are joined: ``"mean"``, ``"sum"`` or
            the name of the result that is their weight.
        padding: of sizes of a micro-batch; None leaves them as they are.

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
        f"micro-batches={num_micro_batches}{independent}"
        + ("}" if padding is None else f" {padding}}}")
    )
    module = Module(program.text, program.name)
    return LayeredStep.of(module, module.run(marking))


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
