"""A method whose prescription was made from the function that it is for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from stablehlo_alpa.api.methods.method import Method
from stablehlo_alpa.frontend import Stacks, TracedProgram
from stablehlo_alpa.planning import Prescription


@dataclass(frozen=True)
class Prescribed(Method):
    """What another method prescribes for one function on one mesh.

    Attributes:
        names: of the axes of ``mesh_shape``.
        made: what is prescribed, by flat numbers of the function of the caller.
    """

    names: tuple[str, ...] | None = None
    made: Prescription = field(default_factory=Prescription, hash=False)

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        """As given."""
        return self.names

    def prescription(self, program: TracedProgram) -> Prescription:
        """As given, for every part of a stack that the program has in parts."""
        return self.made if program.stacks is None else _in_parts(self.made, program.stacks)


def _in_parts(made: Prescription, stacks: Stacks) -> Prescription:
    """What is prescribed for stacks, for their parts."""

    def dims_of(found: Iterable[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        return frozenset((n, dim) for i, dim in found for n in stacks.inputs[i].numbers)

    confinement = made.confinement
    if confinement is not None:
        confinement = replace(
            confinement,
            batch=dims_of(confinement.batch),
            axes={axis: dims_of(dims) for axis, dims in confinement.axes.items()},
            light={axis: dims_of(dims) for axis, dims in confinement.light.items()},
        )
    return replace(
        made,
        inputs={n: one for i, one in made.inputs.items() for n in stacks.inputs[i].numbers},
        outputs={n: one for i, one in made.outputs.items() for n in stacks.outputs[i].numbers},
        gathered=frozenset(n for i in made.gathered for n in stacks.outputs[i].numbers),
        confinement=confinement,
    )


def shared_options(method: Method, **changed: Any) -> dict[str, Any]:
    """What every method has, as another one takes it."""
    return {one.name: getattr(method, one.name) for one in fields(Method)} | changed
