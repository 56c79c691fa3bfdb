"""Data parallelism, and with it the split of what every device would otherwise keep (ZeRO)."""

from __future__ import annotations

from dataclasses import dataclass

from stablehlo_alpa.api.batches import batch_inputs, is_key
from stablehlo_alpa.api.methods.method import Method
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.planning import Finest, Prescription, Role, SplitBatch, Whole, Wish


@dataclass(frozen=True)
class DataParallel(Method):
    """Batches are split over all devices, everything else is replicated."""

    def mesh_shapes(self, num_devices: int, num_hosts: int) -> tuple[tuple[int, ...], ...]:
        """One axis, unless a shape is given."""
        return (self.mesh_shape or (num_devices,),)

    def prescription(self, program: TracedProgram) -> Prescription:
        """Batches split on dimension 0, state as the method says, the rest whole."""
        batch, others = batch_inputs(program)
        wishes: dict[int, Wish] = {}
        for index, value in enumerate(program.inputs):
            if index in batch and value.shape:
                wishes[index] = SplitBatch()
            elif index in program.aliases:
                wishes[index] = self._state_wish
            elif is_key(value):
                wishes[index] = Whole()
            else:
                wishes[index] = self._other_wish(others.get(index, ""))
        return Prescription(inputs=wishes, splits_work=True)

    @property
    def _state_wish(self) -> Wish:
        """For parameters and optimiser state."""
        return Whole()

    def _other_wish(self, remark: str) -> Wish:
        """For what is neither state nor a batch: parameters that the program does not change."""
        return Whole(remark)


@dataclass(frozen=True)
class Zero2Parallel(DataParallel):
    """Data parallelism whose optimiser state is split wherever a dimension divides."""

    @property
    def _state_wish(self) -> Wish:
        return Finest(Role.OTHER)


@dataclass(frozen=True)
class Zero3Parallel(DataParallel):
    """Data parallelism whose optimiser state and parameters are split."""

    @property
    def _state_wish(self) -> Wish:
        return Finest()

    def _other_wish(self, remark: str) -> Wish:
        return Finest(Role.PARAMETER)
