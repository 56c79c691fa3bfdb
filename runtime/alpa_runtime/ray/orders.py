"""What the processes are asked for in a step of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from alpa_runtime.array_store import Held
from alpa_runtime.inputs import Fed
from alpa_runtime.mesh_process import StepOrder
from alpa_runtime.plan_part import Assignment
from alpa_runtime.ray.arrays import DistributedArray
from alpa_runtime.ray.feeder import Feeder, arrays_apart
from alpa_runtime.ray.handles import Handles
from alpa_runtime.transport import Place


class Orders:
    """Writes the orders of one plan.

    Attributes:
        feeder: cuts inputs into what each process needs.
    """

    def __init__(self, number: int, assigned: Assignment, handles: Handles) -> None:
        """Takes a plan, its number, and the arrays of the session."""
        self._number, self._assigned, self._handles = number, assigned, handles
        self._places = assigned.places
        self.feeder = Feeder(assigned.plan, {mesh: len(own) for mesh, own in self._places.items()})

    def feeds(self, args: Sequence[Any], owner: Any) -> list[dict[int, Any]]:
        """What each mesh is fed.

        Args:
            args: of the step; handles are of this session.
            owner: of what was fed before.
        """
        plan, meshes = self._assigned.plan, self._assigned.meshes
        feeds: list[dict[int, Any]] = [{} for _ in plan.meshes]
        for index, (arg, value) in enumerate(zip(args, plan.inputs, strict=True)):
            there = arg.sharding.mesh if isinstance(arg, DistributedArray) else None
            kept = [mesh for mesh in value.meshes if meshes[mesh] == there]
            for mesh in kept:
                feeds[mesh][index] = Held(arg.number)
            others = [mesh for mesh in value.meshes if mesh not in kept]
            if others:
                is_fed = isinstance(arg, Fed) and arg.owner is owner
                content = arg.content if is_fed else self.feeder.content(index, arg, others)
                for mesh, sent in content.items():
                    feeds[mesh][index] = sent
        return feeds

    def written(
        self, feeds: Sequence[Mapping[int, Any]], numbers: Sequence[int]
    ) -> Callable[[int, int], dict[Place, tuple[Any, ...]]]:
        """What makes the orders of a step, of its number and that of its first transfer.

        Args:
            feeds: of each mesh.
            numbers: per output that of the array which it is.
        """
        plan = self._assigned.plan
        outputs: list[dict[int, int]] = [{} for _ in plan.meshes]
        for index, number in enumerate(numbers):
            outputs[plan.outputs[index].mesh][index] = number

        def orders(step: int, first_transfer: int) -> dict[Place, tuple[Any, ...]]:
            made: dict[Place, tuple[Any, ...]] = {}
            for mesh, places in self._places.items():
                dropped = self._handles.take_dropped(self._assigned.meshes[mesh])
                for place in places:
                    plain, arrays = arrays_apart(feeds[mesh], place[1])
                    order = StepOrder(
                        self._number, step, first_transfer, plain, outputs[mesh], dropped
                    )
                    made[place] = (order, *arrays)
            return made

        return orders
