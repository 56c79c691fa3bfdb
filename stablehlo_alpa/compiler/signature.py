"""What the main function of a module takes and returns."""

from __future__ import annotations

from dataclasses import dataclass

from stablehlo_alpa import _core
from stablehlo_alpa.compiler.module import Source, core_of
from stablehlo_alpa.store import Record


@dataclass(frozen=True)
class Values:
    """Arguments or results of a function, in order.

    Attributes:
        shardings: as `notation` has them; empty texts before a plan is applied.
        types: as `tensor_types` has them.
        kinds: what a stage calls them, ``"input 3"``; empty texts of a whole program.
        on_host: whether they lie in the memory of the host.
    """

    shardings: tuple[str, ...]
    types: tuple[str, ...]
    kinds: tuple[str, ...]
    on_host: tuple[bool, ...]


@dataclass(frozen=True)
class Signature:
    """Types, shardings and roles of a module's main function.

    Attributes:
        mesh_axes: names of the axes of its mesh; empty before a plan is applied.
        inputs, outputs: of the function.
        input_once: per input whether it is there once per step instead of once per micro-batch.
    """

    mesh_axes: tuple[str, ...]
    inputs: Values
    outputs: Values
    input_once: tuple[bool, ...]

    @classmethod
    def of(cls, module: Source) -> Signature:
        """That of a module."""
        found = _core.signature(core_of(module))

        def values(side: str) -> Values:
            return Values(
                tuple(found[f"{side}s"]),
                tuple(found[f"{side}_types"]),
                tuple(found[f"{side}_kinds"]),
                tuple(map(bool, found[f"{side}_on_host"])),
            )

        once = tuple(bool(one) for one in found["input_once"])
        return cls(tuple(found["mesh_axes"]), values("input"), values("output"), once)

    @classmethod
    def from_record(cls, record: Record) -> Signature:
        """One that was kept; see `record`."""
        inputs, outputs = (
            Values(*(tuple(side[key]) for key in ("shardings", "types", "kinds", "on_host")))
            for side in (record["inputs"], record["outputs"])
        )
        return cls(tuple(record["mesh_axes"]), inputs, outputs, tuple(record["input_once"]))

    def record(self) -> Record:
        """It, as plain data."""
        sides = {"inputs": dict(vars(self.inputs)), "outputs": dict(vars(self.outputs))}
        return {"mesh_axes": self.mesh_axes, "input_once": self.input_once} | sides
