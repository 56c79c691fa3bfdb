"""A method whose prescription was made from the function that it is for."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from stablehlo_alpa.api.methods.method import Method
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.planning import Prescription


@dataclass(frozen=True)
class Prescribed(Method):
    """What another method prescribes for one function on one mesh.

    Attributes:
        names: of the axes of ``mesh_shape``.
        made: what is prescribed.
    """

    names: tuple[str, ...] | None = None
    made: Prescription = field(default_factory=Prescription, hash=False)

    @property
    def axis_names(self) -> tuple[str, ...] | None:
        """As given."""
        return self.names

    def prescription(self, program: TracedProgram) -> Prescription:
        """As given."""
        return self.made


def shared_options(method: Method, **changed: Any) -> dict[str, Any]:
    """What every method has, as another one takes it."""
    return {one.name: getattr(method, one.name) for one in fields(Method)} | changed
